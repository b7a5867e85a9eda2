//! Anchors that belong to a process: `PROGRAM/PID` and paths that begin with `PROGRAM/PID.`. They
//! are removed when the process ends in any way, and so is the ring that the process reads. A
//! living process holds a lock on a file of this name. Another process that can take the lock knows
//! that the owner is dead, and removes its anchors and its ring.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use nix::fcntl::{Flock, FlockArg};
use skipstep_abi::limits::{DROP_READERS, LOGS};
use skipstep_ruleset::Ruleset;

use crate::error::{Context, Result};
use crate::instance::Instance;
use crate::lock::is_held_by_stranger;
use crate::rundir::RunDir;
use crate::{host, private};

/// The ownership of anchors and of a ring, held by their process.
pub struct Owner {
    /// First part of the paths of its anchors.
    prefix: String,
    path: PathBuf,
    lock: Flock<File>,
    /// The ring that the process reads.
    ring: Option<Ring>,
}

/// A ring that a process reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ring {
    /// Its place in the map of readers: n of pflogN, or the place of a reader of dropped packets.
    pub place: u32,
    /// The kernel's id of the ring. The place may have the ring of another process by now.
    pub id: u32,
}

impl Ring {
    /// Reads the ring that the file of an owner names.
    fn named_in(path: &Path) -> Option<Ring> {
        let text = fs::read_to_string(path).ok()?;
        let (place, id) = text.split_once(' ')?;
        let ring = Ring { place: place.parse().ok()?, id: id.parse().ok()? };
        (ring.place < LOGS + DROP_READERS).then_some(ring)
    }
}

impl Owner {
    /// Returns the first part of the paths of its anchors.
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// Records in the file which ring the process reads, for the process that cleans up.
    pub(crate) fn set_ring(&mut self, ring: Option<Ring>) -> Result<()> {
        let text = ring.map(|ring| format!("{} {}", ring.place, ring.id)).unwrap_or_default();
        let write = || -> io::Result<()> {
            self.lock.set_len(0)?;
            self.lock.write_all_at(text.as_bytes(), 0)
        };
        write().context(|| format!("{}: write", self.path.display()))?;
        self.ring = ring;
        Ok(())
    }

    pub(crate) fn ring(&self) -> Option<Ring> {
        self.ring
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        // with a ring, the file stays for the process that cleans up
        if self.ring.is_none() {
            let _ = fs::remove_file(&self.path);
        }
    }
}

impl Instance {
    /// Makes this process the owner of the anchors `PROGRAM/PID.…`.
    ///
    /// # Errors
    /// Fails if the file cannot be made, locked or renamed.
    pub fn own_anchors(&self, program: &str) -> Result<Owner> {
        let directory = self.run.owners();
        private::folder(&directory)?;
        let name = format!("{program}.{}", std::process::id());
        let path = directory.join(&name);
        // no other process may see the file before it is locked
        let unseen = directory.with_file_name(format!("owner.{name}"));
        let file = private::new_file(&unseen);
        let file = file.context(|| format!("{}: open", unseen.display()))?;
        let lock = Flock::lock(file, FlockArg::LockExclusiveNonblock)
            .map_err(|(_, error)| io::Error::from(error))
            .context(|| format!("{}: lock", unseen.display()))?;
        fs::rename(&unseen, &path).context(|| format!("{}: rename", unseen.display()))?;
        Ok(Owner { prefix: prefix(&name), path, lock, ring: None })
    }

    /// True if a process that owned anchors of this instance has died. Does not open the instance.
    pub fn has_orphans(name: &str) -> bool {
        let owners = fs::read_dir(RunDir::new(name).owners()).into_iter().flatten().flatten();
        owners.into_iter().any(|owner| is_dead(&owner.path()).is_some())
    }

    /// Removes the anchors of processes that have died, and their rings. Returns the number of
    /// these processes.
    ///
    /// # Errors
    /// Fails as [`Instance::clear_anchors`] does, or if a ring cannot be removed.
    pub fn remove_orphans(&mut self) -> Result<usize> {
        let Ok(entries) = fs::read_dir(self.run.owners()) else { return Ok(0) };
        let mut removed = 0;
        for entry in entries.flatten() {
            if let Some(_alone) = is_dead(&entry.path()) {
                self.clear_anchors(&prefix(&entry.file_name().to_string_lossy()))?;
                if let Some(ring) = Ring::named_in(&entry.path()) {
                    self.free_ring(ring)?;
                }
                let _ = fs::remove_file(entry.path());
                removed += 1;
            }
        }
        Ok(removed)
    }

    /// Removes the rings of dead processes that read dropped packets. Such a process owns no
    /// anchors.
    ///
    /// # Errors
    /// Fails if a ring cannot be removed.
    pub(crate) fn free_dead_drop_readers(&self) -> Result<()> {
        let entries = fs::read_dir(self.run.owners()).into_iter().flatten().flatten();
        for path in entries.map(|entry| entry.path()) {
            let Some(_alone) = is_dead(&path) else { continue };
            if let Some(ring) = Ring::named_in(&path).filter(|ring| ring.place >= LOGS) {
                self.free_ring(ring)?;
                let _ = fs::remove_file(&path);
            }
        }
        Ok(())
    }

    /// Removes the anchors whose paths begin with `prefix`.
    ///
    /// # Errors
    /// Fails if the record or the host cannot be read, or as [`Instance::load`] does.
    pub fn clear_anchors(&mut self, prefix: &str) -> Result<()> {
        let anchors = self.loaded()?.ruleset.anchors;
        let meant = anchors.keys().filter(|path| path.starts_with(prefix));
        let nothing = Ruleset::default();
        let changes: Vec<_> = meant.map(|path| (path.as_str(), &nothing)).collect();
        if changes.is_empty() {
            return Ok(());
        }
        let unsettled = self.change_anchors(changes, &host::read()?)?;
        self.settle(unsettled)
    }
}

/// Returns the prefix `PROGRAM/PID.` for the file name `PROGRAM.PID`.
fn prefix(name: &str) -> String {
    match name.rsplit_once('.') {
        Some((program, pid)) => format!("{program}/{pid}."),
        None => format!("{name}/"),
    }
}

/// Proof that a process has died. While it is held, no other process cleans up after the dead one,
/// unless a process of another user holds the lock: then two processes may clean up at once.
struct Dead {
    _lock: Option<Flock<File>>,
}

/// Returns proof if the process that made this file has died. A living process holds the lock
/// itself, so a lock of another user means that it is dead.
fn is_dead(path: &Path) -> Option<Dead> {
    let file = File::open(path).ok()?;
    match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
        Ok(lock) => Some(Dead { _lock: Some(lock) }),
        Err((file, _)) => is_held_by_stranger(&file).then_some(Dead { _lock: None }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_anchors_of_a_process_bear_its_name_and_number() {
        assert_eq!(prefix("ftp-proxy.1234"), "ftp-proxy/1234.");
    }

    #[test]
    fn a_file_names_a_ring_or_none() {
        let file = tempfile::NamedTempFile::new().unwrap();
        for (text, place) in
            [("", None), ("7 40", Some(7)), ("259 40", Some(259)), ("260 40", None), ("7", None)]
        {
            fs::write(file.path(), text).unwrap();
            let ring = place.map(|place| Ring { place, id: 40 });
            assert_eq!(Ring::named_in(file.path()), ring, "{text}");
        }
    }

    #[test]
    fn a_free_lock_means_a_dead_owner() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let held = File::open(file.path()).unwrap();
        let held = Flock::lock(held, FlockArg::LockExclusiveNonblock).unwrap();
        assert!(is_dead(file.path()).is_none());
        drop(held);
        assert!(is_dead(file.path()).is_some());
    }
}
