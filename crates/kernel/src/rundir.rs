//! The files of an instance in `/run/skipstep/NAME/`: its lock, its memory and its rule sets, with the addresses of
//! their tables beside them. Each is written under another name and renamed, so a reader finds a whole one.

use std::fs::{self, File};
use std::io;
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

/// The folder.
#[derive(Debug, Clone)]
pub struct RunDir {
    path: PathBuf,
}

/// Held while an instance is changed. Gone with the process that holds it, however it ends.
pub struct Lock {
    _file: Flock<File>,
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
        read(&self.path.join("memory.json"))
    }

    /// Keeps what outlives rule sets.
    pub fn set_memory(&self, memory: &Memory) -> Result<()> {
        write(&self.path.join("memory.json"), memory)
    }

    /// The rule set in force; `generation` says which that is.
    pub fn record(&self, generation: impl Fn() -> u32) -> Result<Record> {
        let mut result = self.record_of(generation());
        for _ in 0..RETRIES {
            match &result {
                Err(error) if error.is_not_found() => result = self.record_of(generation()),
                _ => break,
            }
        }
        result
    }

    fn record_of(&self, generation: u32) -> Result<Record> {
        let mut record: Record = read(&self.rules(generation))?;
        let path = self.lists(generation);
        let bytes = fs::read(&path).context(|| format!("{}: read", path.display()))?;
        let lists = Lists::from_bytes(&bytes).ok_or_else(|| Error::Record {
            cause: "these are no lists of addresses".to_owned(),
            path,
        })?;
        lists.put(&mut record);
        Ok(record)
    }

    /// Keeps a rule set under its generation.
    pub fn set_record(&self, record: &mut Record) -> Result<()> {
        let lists = Lists::take(record);
        // who finds the record finds these
        let written = replace(&self.lists(record.generation), &lists.to_bytes())
            .and_then(|()| write(&self.rules(record.generation), record));
        lists.put(record);
        written
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

fn read<T: DeserializeOwned>(path: &Path) -> Result<T> {
    let text = fs::read(path).context(|| format!("{}: read", path.display()))?;
    serde_json::from_slice(&text)
        .map_err(|cause| Error::Record { path: path.to_owned(), cause: cause.to_string() })
}

fn write<T: Serialize>(path: &Path, value: &T) -> Result<()> {
    let text = serde_json::to_vec(value)
        .map_err(|cause| Error::Record { path: path.to_owned(), cause: cause.to_string() })?;
    replace(path, &text)
}

fn replace(path: &Path, bytes: &[u8]) -> Result<()> {
    let unfinished = path.with_extension("new");
    fs::write(&unfinished, bytes).context(|| format!("{}: write", unfinished.display()))?;
    fs::rename(&unfinished, path).context(|| format!("{}: write", path.display()))
}
