//! The files of an instance in `/run/skipstep/NAME/`: its lock, its memory, and its rule sets with
//! the addresses of their tables. Each file is written under another name and renamed, so a reader
//! finds a complete file.

use std::fs::{self, File};
use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use nix::fcntl::Flock;

use crate::error::{Context, Error, Result};
use crate::lists::Lists;
use crate::lock::{PATIENCE, is_same_file, wait};
use crate::private;
use crate::record::{Memory, Record};
use crate::trial::Trial;

/// Folder of all instances.
const ROOT: &str = "/run/skipstep";

/// Makes the folder of all instances, which only root can read, and returns its path.
pub(crate) fn root() -> Result<PathBuf> {
    let path = PathBuf::from(ROOT);
    private::folder(&path)?;
    Ok(path)
}

/// Makes an empty folder for processes that must see no files, and returns its path. A process
/// changes its root to this folder before it gives up its rights.
///
/// # Errors
/// Fails if another user owns the folder, or if a system call fails.
pub fn empty_folder() -> Result<PathBuf> {
    let path = root()?.join("empty");
    private::folder(&path)?;
    Ok(path)
}

/// First bytes of a rule set's file; the digit is the version.
const RULES_HEAD: &[u8; 8] = b"rules 4\n";

/// Number of times that a reader tries again when a rule set is replaced during the read.
const RETRIES: usize = 10;

/// Size of the write buffer, in bytes.
const WRITTEN_AT_ONCE: usize = 1 << 18;

/// The folder of an instance.
#[derive(Debug, Clone)]
pub struct RunDir {
    path: PathBuf,
}

/// The lock of an instance, held during a change. The kernel releases it when the process ends.
pub struct Lock {
    _file: Flock<File>,
}

/// A rule set and its open files. While they are open, their inodes are not reused, so they can be
/// compared.
pub struct FoundRecord {
    record: Record,
    generation: u32,
    rules: File,
    lists: File,
}

impl FoundRecord {
    /// Returns the rule set, if its files were not replaced meanwhile.
    pub fn if_still_there(self, run: &RunDir) -> Option<Record> {
        let are_same = is_same_file(&self.rules, &run.rules(self.generation))
            && is_same_file(&self.lists, &run.lists(self.generation));
        are_same.then_some(self.record)
    }

    /// Returns the rule set as it was read.
    pub fn into_record(self) -> Record {
        self.record
    }
}

/// A rule set that was written under temporary names, with the final names of its files.
pub struct Draft {
    rules: PathBuf,
    lists: PathBuf,
}

impl RunDir {
    /// Returns the folder of instance `name`, which need not exist.
    pub fn new(name: &str) -> Self {
        RunDir { path: Path::new(ROOT).join(name) }
    }

    /// Returns the name of the instance.
    pub fn name(&self) -> String {
        self.path.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    /// True if the folder exists.
    pub fn exists(&self) -> bool {
        self.path.exists()
    }

    /// Makes the folder unless it exists.
    fn make(&self) -> Result<()> {
        root()?;
        private::folder(&self.path)
    }

    /// Removes all rights of other users to the folder and its files. An earlier version or a wide
    /// umask may have given them some.
    ///
    /// # Errors
    /// Fails if another user owns a file of the folder, or if a system call fails.
    pub fn mend(&self) -> Result<()> {
        if !self.exists() {
            return Ok(());
        }
        root()?;
        private::mend(&self.path)
    }

    /// Waits a limited time for the lock of the instance.
    ///
    /// # Errors
    /// Fails if another process has held the lock all the time, or if the folder or file cannot be
    /// made.
    pub fn lock(&self) -> Result<Lock> {
        let path = self.path.join("lock");
        let open = || {
            // a process that removed the instance meanwhile has removed its folder
            self.make()?;
            private::file(&path)
        };
        Ok(Lock { _file: wait(&path, PATIENCE, open)? })
    }

    /// True if the instance has a memory.
    pub fn is_known(&self) -> bool {
        self.path.join("memory.json").exists()
    }

    /// Returns the records that outlive rule sets.
    ///
    /// # Errors
    /// Fails if the file cannot be read or parsed.
    pub fn memory(&self) -> Result<Memory> {
        let (path, mut file) = open(self.path.join("memory.json"))?;
        serde_json::from_slice(&read_all(&path, &mut file)?)
            .map_err(|cause| Error::Record { path, cause: cause.to_string() })
    }

    /// Saves the records that outlive rule sets.
    ///
    /// # Errors
    /// Fails if the file cannot be written.
    pub fn set_memory(&self, memory: &Memory) -> Result<()> {
        let path = self.path.join("memory.json");
        let text = serde_json::to_vec(memory).map_err(io::Error::from);
        write(&draft_of(&path), &text.context(|| format!("{}: write", path.display()))?)?;
        put_in_place(&path)
    }

    /// Returns the record of the rule set in force; `generation` returns its number.
    ///
    /// # Errors
    /// Fails if the files cannot be read or parsed, or if they were replaced during every attempt.
    pub fn record(&self, generation: impl Fn() -> u32) -> Result<Record> {
        let mut result = self.find(generation());
        for _ in 0..RETRIES {
            match &result {
                Err(error) if error.is_not_found() => result = self.find(generation()),
                _ => break,
            }
        }
        result.map(|found| found.record)
    }

    /// Returns the record of a generation, with its open files.
    ///
    /// # Errors
    /// Fails if a file cannot be read, or if another version wrote it.
    pub fn find(&self, generation: u32) -> Result<FoundRecord> {
        let (path, mut rules) = open(self.rules(generation))?;
        let mut record = Record::from_bytes(&read_all(&path, &mut rules)?).ok_or_else(|| {
            Error::Record { cause: "not rules of this version of skipstep".to_owned(), path }
        })?;
        let (path, mut lists) = open(self.lists(generation))?;
        if !record.put_lists(&read_all(&path, &mut lists)?) {
            let cause = "not lists of addresses".to_owned();
            return Err(Error::Record { cause, path });
        }
        // a generation after a trial has the files of the generation before the trial
        record.generation = generation;
        Ok(FoundRecord { record, generation, rules, lists })
    }

    /// Saves the record of a generation.
    ///
    /// # Errors
    /// Fails if a file cannot be written or renamed.
    pub fn set_record(&self, record: &mut Record) -> Result<()> {
        let lists = Lists::take(record);
        let drafted = self.draft(record, &lists);
        lists.put(record);
        self.keep(drafted?)
    }

    /// Writes a rule set and the lists taken from it under temporary names.
    ///
    /// # Errors
    /// Fails if a file cannot be written.
    pub fn draft(&self, record: &Record, lists: &Lists) -> Result<Draft> {
        let (rules, lists_path) = (self.rules(record.generation), self.lists(record.generation));
        write(&draft_of(&lists_path), &lists.to_bytes())?;
        write_rules(&draft_of(&rules), record)?;
        Ok(Draft { rules, lists: lists_path })
    }

    /// Gives the files of a draft their final names.
    ///
    /// # Errors
    /// Fails if a file cannot be renamed.
    pub fn keep(&self, draft: Draft) -> Result<()> {
        // the lists first, because a reader that finds the rules expects them
        put_in_place(&draft.lists)?;
        put_in_place(&draft.rules)
    }

    /// Makes the record of one generation the record of another one, too.
    ///
    /// # Errors
    /// Fails if a file cannot be linked, removed or renamed.
    pub fn link_record(&self, from: u32, to: u32) -> Result<()> {
        for (from, to) in [(self.lists(from), self.lists(to)), (self.rules(from), self.rules(to))] {
            let draft = draft_of(&to);
            remove_if_there(&draft)?;
            fs::hard_link(&from, &draft).context(|| format!("{}: link", to.display()))?;
            // a killed process may have left a file of this name, with another rule set
            put_in_place(&to)?;
            // if both names have the same file already, rename does nothing
            remove_if_there(&draft)?;
        }
        Ok(())
    }

    /// True if the instance has a trial that no process has ended.
    pub fn has_trial(&self) -> bool {
        self.trial_file().exists()
    }

    /// Returns the trial that no process has ended, if there is one.
    ///
    /// # Errors
    /// Fails if the file cannot be read or parsed.
    pub fn trial(&self) -> Result<Option<Trial>> {
        let (path, mut file) = match open(self.trial_file()) {
            Err(error) if error.is_not_found() => return Ok(None),
            opened => opened?,
        };
        serde_json::from_slice(&read_all(&path, &mut file)?)
            .map_err(|cause| Error::Record { path, cause: cause.to_string() })
    }

    /// Saves a trial.
    ///
    /// # Errors
    /// Fails if the file cannot be written.
    pub fn set_trial(&self, trial: &Trial) -> Result<()> {
        let path = self.trial_file();
        let text = serde_json::to_vec(trial).map_err(io::Error::from);
        write(&draft_of(&path), &text.context(|| format!("{}: write", path.display()))?)?;
        put_in_place(&path)
    }

    /// Removes the trial.
    ///
    /// # Errors
    /// Fails if the file cannot be removed.
    pub fn remove_trial(&self) -> Result<()> {
        let path = self.trial_file();
        fs::remove_file(&path).context(|| format!("{}: remove", path.display()))
    }

    /// Removes the records of other generations.
    ///
    /// # Errors
    /// Fails if the folder cannot be read, or if a file cannot be removed.
    pub fn forget_all_but(&self, generations: &[u32]) -> Result<()> {
        let keep: Vec<PathBuf> = generations
            .iter()
            .flat_map(|generation| [self.rules(*generation), self.lists(*generation)])
            .collect();
        let entries = fs::read_dir(&self.path).context(|| self.path.display().to_string())?;
        for entry in entries.flatten() {
            let path = entry.path();
            let name = entry.file_name();
            let name = name.to_string_lossy();
            let is_of_one = name.starts_with("rules.") || name.starts_with("lists.");
            if is_of_one && !keep.contains(&path) {
                fs::remove_file(&path).context(|| format!("{}: remove", path.display()))?;
            }
        }
        Ok(())
    }

    /// Marks that a change has begun, which a killed process leaves unfinished.
    ///
    /// # Errors
    /// Fails if the file cannot be written.
    pub fn begin(&self) -> Result<()> {
        let path = self.unfinished();
        write(&path, &[])
    }

    /// True if a change has begun and not ended.
    pub fn is_unfinished(&self) -> bool {
        self.unfinished().exists()
    }

    /// Removes the mark of a change that has begun.
    ///
    /// # Errors
    /// Fails if the file cannot be removed.
    pub fn end(&self) -> Result<()> {
        let path = self.unfinished();
        fs::remove_file(&path).context(|| format!("{}: remove", path.display()))
    }

    /// Removes the folder with all its files, if it exists.
    ///
    /// # Errors
    /// Fails if a file cannot be removed.
    pub fn remove(&self) -> Result<()> {
        match fs::remove_dir_all(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            other => other.context(|| format!("{}: remove", self.path.display())),
        }
    }

    /// Returns the folder of the sockets for diverted packets.
    pub fn divert(&self) -> PathBuf {
        self.path.join("divert")
    }

    /// Returns the folder of the files of owners of anchors.
    pub fn owners(&self) -> PathBuf {
        self.path.join("owners")
    }

    fn rules(&self, generation: u32) -> PathBuf {
        self.path.join(format!("rules.{generation}.bin"))
    }

    fn lists(&self, generation: u32) -> PathBuf {
        self.path.join(format!("lists.{generation}.bin"))
    }

    fn trial_file(&self) -> PathBuf {
        self.path.join("trial.json")
    }

    fn unfinished(&self) -> PathBuf {
        self.path.join("unfinished")
    }
}

fn open(path: PathBuf) -> Result<(PathBuf, File)> {
    let file = File::open(&path).context(|| format!("{}: read", path.display()))?;
    Ok((path, file))
}

fn read_all(path: &Path, file: &mut File) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).context(|| format!("{}: read", path.display()))?;
    Ok(bytes)
}

/// Returns the name under which a file is written before it gets its final name.
fn draft_of(path: &Path) -> PathBuf {
    path.with_extension("new")
}

fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    let written = private::new_file(path).and_then(|mut file| file.write_all(bytes));
    written.context(|| format!("{}: write", path.display()))
}

/// Writes a rule set as a head and its postcard encoding. JSON would take every pfctl five times as
/// long to read.
fn write_rules(path: &Path, record: &Record) -> Result<()> {
    let written = || {
        let mut file = BufWriter::with_capacity(WRITTEN_AT_ONCE, private::new_file(path)?);
        file.write_all(RULES_HEAD)?;
        postcard::to_io(record, file).map_err(io::Error::other)?.flush()
    };
    written().context(|| format!("{}: write", path.display()))
}

impl Record {
    /// Returns the bytes of a rule set's file.
    ///
    /// # Errors
    /// Fails if a part of the rule set cannot be encoded.
    pub fn to_bytes(&self) -> io::Result<Vec<u8>> {
        postcard::to_extend(self, RULES_HEAD.to_vec()).map_err(io::Error::other)
    }

    /// Parses a rule set's file; `None` if it is malformed or of another version.
    pub fn from_bytes(bytes: &[u8]) -> Option<Record> {
        let (record, rest) = postcard::take_from_bytes(bytes.strip_prefix(RULES_HEAD)?).ok()?;
        rest.is_empty().then_some(record)
    }

    /// Takes the addresses of tables out of the rule set. Returns the bytes of their file.
    pub fn take_lists(&mut self) -> Vec<u8> {
        Lists::take(self).to_bytes()
    }

    /// Puts the addresses of tables, given as the bytes of their file, into the rule set. Returns
    /// false if the bytes are malformed.
    pub fn put_lists(&mut self, bytes: &[u8]) -> bool {
        let lists = Lists::from_bytes(bytes);
        lists.map(|lists| lists.put(self)).is_some()
    }
}

fn remove_if_there(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed.context(|| format!("{}: remove", path.display())),
    }
}

fn put_in_place(path: &Path) -> Result<()> {
    fs::rename(draft_of(path), path).context(|| format!("{}: write", path.display()))
}

#[cfg(test)]
mod tests {
    use skipstep_pfconf::Context;
    use skipstep_ruleset::interface::Host;

    use super::*;
    use crate::record::OrphanedRule;

    /// A rule set with one statement of every kind.
    const RULES: &str = r#"
        set limit states 1000
        set skip on lo
        table <t> persist { 192.0.2.0/24, !192.0.2.1 }
        anchor "a/*" in on em0
        match out on em0 inet nat-to 198.51.100.1 port 1024:2048 source-hash 0x000102030405060708090a0b0c0d0e0f
        match in scrub (no-df, random-id, min-ttl 4, max-mss 1400) set prio (2, 5) tag T
        block return-icmp (3, 9) log (all, to pflog1) quick inet6 proto icmp6 icmp6-type echoreq
        pass in quick on ! em0 proto tcp from <t> to 10.0.0.0/8 port 1:5 flags S/SA user >= 7 \
            modulate state (max 5, source-track rule, max-src-conn-rate 3/4, \
            overload <bad> flush global, tcp.first 7) label "x" rtable 3 tagged T
        pass in proto udp to port { 53, 123 } rdr-to 10.1.1.1 probability 50% once
        pass in inet af-to inet6 from 2001:db8::1
        pass out proto tcp received-on em1 route-to 192.0.2.1
    "#;

    /// Guards the format: postcard writes no names, so a reader of another version would decode
    /// nonsense. If this test fails, change the digit of [`RULES_HEAD`] and `PF_ABI_VERSION`, and
    /// then the expected values.
    #[test]
    fn the_record_format_belongs_to_its_version() {
        let bytes = postcard::to_stdvec(&record()).unwrap();
        let fnv = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
        let hash = bytes.iter().fold(0xcbf2_9ce4_8422_2325, fnv);
        assert_eq!((RULES_HEAD, bytes.len(), hash), (b"rules 4\n", 895, 0x49a9_4535_121b_52be));
    }

    /// Returns the record of [`RULES`].
    fn record() -> Record {
        let host = Host::default();
        let loaded = skipstep_pfconf::load(RULES, &Context::new(&host));
        let ruleset = loaded.unwrap_or_else(|why| panic!("{:?}", why.diagnostics)).ruleset;
        let orphan = OrphanedRule { hash: Some("a29e".into()), ..OrphanedRule::default() };
        Record { ruleset, orphans: [(7, orphan)].into(), ..Record::default() }
    }

    #[test]
    fn a_file_that_was_damaged_is_refused_or_read_and_nothing_else_happens() {
        let bytes = [&RULES_HEAD[..], &postcard::to_stdvec(&record()).unwrap()].concat();
        assert_eq!(Record::from_bytes(&bytes), Some(record()));
        for place in 0..bytes.len() {
            for bit in 0..8 {
                let mut damaged = bytes.clone();
                damaged[place] ^= 1 << bit;
                let refused = Record::from_bytes(&damaged).is_none();
                assert!(refused || place >= RULES_HEAD.len(), "{place}");
            }
        }
    }

    #[test]
    fn a_linked_record_replaces_one_that_a_killed_process_left() {
        let folder = tempfile::tempdir().unwrap();
        let run = RunDir { path: folder.path().to_owned() };
        for (generation, skip) in [(1, "em0"), (5, "em1")] {
            let mut record = Record { generation, ..Record::default() };
            record.ruleset.options.skip.push(skip.to_owned());
            run.set_record(&mut record).unwrap();
        }
        for _ in 0..2 {
            run.link_record(1, 5).unwrap();
            let linked = run.find(5).unwrap().into_record();
            assert_eq!(
                (linked.generation, &linked.ruleset.options.skip[..]),
                (5, &["em0".to_owned()][..])
            );
            assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 4);
        }
    }

    #[test]
    fn rule_sets_survive_a_round_trip() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rules");
        let record = Record { generation: 7, ..Record::default() };
        write_rules(&path, &record).unwrap();
        let bytes = fs::read(&path).unwrap();
        assert_eq!(Record::from_bytes(&bytes), Some(record));
        assert_eq!(Record::from_bytes(&bytes[..bytes.len() - 1]), None);
        assert_eq!(Record::from_bytes(&[&bytes[..], &[0]].concat()), None);
    }
}
