//! The files of an instance in `/run/skipstep/NAME/`: its lock, its memory and its rule sets, with the addresses of
//! their tables beside them. Each is written under another name and renamed, so a reader finds a whole one.

use std::fs::{self, File};
use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use nix::fcntl::{Flock, FlockArg};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::{Context, Error, Result};
use crate::lists::Lists;
use crate::record::{Memory, Record};

const ROOT: &str = "/run/skipstep";

/// How often a reader looks again when a rule set was replaced under it.
const RETRIES: usize = 10;

/// Bytes of a file that are written at once.
const WRITTEN_AT_ONCE: usize = 1 << 18;

/// The folder.
#[derive(Debug, Clone)]
pub struct RunDir {
    path: PathBuf,
}

/// Held while an instance is changed. Gone with the process that holds it, however it ends.
pub struct Lock {
    _file: Flock<File>,
}

/// A rule set, and the files it was found in: as long as these are open no others can be taken for them.
pub struct Found {
    record: Record,
    generation: u32,
    rules: File,
    lists: File,
}

impl Found {
    /// The rule set, if nobody has replaced its files meanwhile.
    pub fn if_still_there(self, run: &RunDir) -> Option<Record> {
        let are_same = is_same_file(&self.rules, &run.rules(self.generation))
            && is_same_file(&self.lists, &run.lists(self.generation));
        are_same.then_some(self.record)
    }
}

/// A rule set that was written where nobody looks for it, and the names that its files are to have.
pub struct Draft {
    rules: PathBuf,
    lists: PathBuf,
}

impl RunDir {
    /// The folder of instance `name`, which need not exist.
    pub fn new(name: &str) -> Self {
        RunDir { path: Path::new(ROOT).join(name) }
    }

    /// Name of the instance.
    pub fn name(&self) -> String {
        self.path.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    /// Whether the folder is there.
    pub fn exists(&self) -> bool {
        self.path.exists()
    }

    /// Waits until nobody else changes the instance.
    pub fn lock(&self) -> Result<Lock> {
        fs::create_dir_all(&self.path).context(|| format!("{}: create", self.path.display()))?;
        let path = self.path.join("lock");
        loop {
            let file = File::create(&path).context(|| format!("{}: open", path.display()))?;
            let file = Flock::lock(file, FlockArg::LockExclusive)
                .map_err(|(_, error)| io::Error::from(error))
                .context(|| format!("{}: lock", path.display()))?;
            if is_same_file(&file, &path) {
                return Ok(Lock { _file: file });
            }
            // the instance was removed while we waited, and the folder with it
            fs::create_dir_all(&self.path)
                .context(|| format!("{}: create", self.path.display()))?;
        }
    }

    /// Whether anything is remembered.
    pub fn is_known(&self) -> bool {
        self.path.join("memory.json").exists()
    }

    /// What outlives rule sets.
    pub fn memory(&self) -> Result<Memory> {
        let (path, mut file) = open(self.path.join("memory.json"))?;
        parse(&path, &read_all(&path, &mut file)?)
    }

    /// Keeps what outlives rule sets.
    pub fn set_memory(&self, memory: &Memory) -> Result<()> {
        let path = self.path.join("memory.json");
        write_json(&draft_of(&path), memory)?;
        put_in_place(&path)
    }

    /// The rule set in force; `generation` says which that is.
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

    /// The rule set of a generation, with the files it was found in.
    pub fn find(&self, generation: u32) -> Result<Found> {
        let (path, mut rules) = open(self.rules(generation))?;
        let mut record: Record = parse(&path, &read_all(&path, &mut rules)?)?;
        let (path, mut lists) = open(self.lists(generation))?;
        let read = Lists::from_bytes(&read_all(&path, &mut lists)?).ok_or_else(|| {
            Error::Record { cause: "these are no lists of addresses".to_owned(), path }
        })?;
        read.put(&mut record);
        Ok(Found { record, generation, rules, lists })
    }

    /// Keeps a rule set under its generation.
    pub fn set_record(&self, record: &mut Record) -> Result<()> {
        let lists = Lists::take(record);
        let drafted = self.draft(record, &lists);
        lists.put(record);
        self.keep(drafted?)
    }

    /// Writes a rule set, from which its lists were taken, where nobody looks for it.
    pub fn draft(&self, record: &Record, lists: &Lists) -> Result<Draft> {
        let (rules, lists_path) = (self.rules(record.generation), self.lists(record.generation));
        write(&draft_of(&lists_path), &lists.to_bytes())?;
        write_json(&draft_of(&rules), record)?;
        Ok(Draft { rules, lists: lists_path })
    }

    /// Keeps a rule set that was drafted.
    pub fn keep(&self, draft: Draft) -> Result<()> {
        // who finds the record finds these
        put_in_place(&draft.lists)?;
        put_in_place(&draft.rules)
    }

    /// Removes the rule sets of other generations.
    pub fn forget_all_but(&self, generation: u32) -> Result<()> {
        let keep = [self.rules(generation), self.lists(generation)];
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

    /// Marks that a loader began to write, and may be killed before it cleaned up.
    pub fn begin(&self) -> Result<()> {
        let path = self.unfinished();
        fs::write(&path, []).context(|| format!("{}: write", path.display()))
    }

    /// Whether some loader began and did not end.
    pub fn is_unfinished(&self) -> bool {
        self.unfinished().exists()
    }

    /// Marks that nothing is left to clean up.
    pub fn end(&self) -> Result<()> {
        let path = self.unfinished();
        fs::remove_file(&path).context(|| format!("{}: remove", path.display()))
    }

    /// Removes the folder with all its files.
    pub fn remove(&self) -> Result<()> {
        match fs::remove_dir_all(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            other => other.context(|| format!("{}: remove", self.path.display())),
        }
    }

    /// The folder of the sockets for diverted packets.
    pub fn divert(&self) -> PathBuf {
        self.path.join("divert")
    }

    /// The folder of the files that owners of anchors hold.
    pub fn owners(&self) -> PathBuf {
        self.path.join("owners")
    }

    fn rules(&self, generation: u32) -> PathBuf {
        self.path.join(format!("rules.{generation}.json"))
    }

    fn lists(&self, generation: u32) -> PathBuf {
        self.path.join(format!("lists.{generation}.bin"))
    }

    fn unfinished(&self) -> PathBuf {
        self.path.join("unfinished")
    }
}

fn is_same_file(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let inode = |metadata: io::Result<fs::Metadata>| metadata.map(|m| (m.dev(), m.ino())).ok();
    inode(file.metadata()) == inode(fs::metadata(path))
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

fn parse<T: DeserializeOwned>(path: &Path, text: &[u8]) -> Result<T> {
    serde_json::from_slice(text)
        .map_err(|cause| Error::Record { path: path.to_owned(), cause: cause.to_string() })
}

/// Under which name a file is written before it gets its own.
fn draft_of(path: &Path) -> PathBuf {
    path.with_extension("new")
}

fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    fs::write(path, bytes).context(|| format!("{}: write", path.display()))
}

/// The text is not made as a whole: that of 100,000 rules has 20 MB.
fn write_json<T: Serialize>(path: &Path, value: &T) -> Result<()> {
    let file = File::create(path).context(|| format!("{}: write", path.display()))?;
    let mut file = BufWriter::with_capacity(WRITTEN_AT_ONCE, file);
    serde_json::to_writer(&mut file, value)
        .map_err(io::Error::from)
        .and_then(|()| file.flush())
        .context(|| format!("{}: write", path.display()))
}

fn put_in_place(path: &Path) -> Result<()> {
    fs::rename(draft_of(path), path).context(|| format!("{}: write", path.display()))
}
