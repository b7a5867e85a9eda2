//! Waits for locks of files, for a limited time, and names the process that holds a lock.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use nix::sys::stat::{major, minor};
use nix::unistd::geteuid;

use crate::error::{Context, Error, Result};

/// Longest wait for a lock. Loading 100,000 rules holds a lock for about a second.
// Differs from OpenBSD: linux.md, "Permissions"
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

/// Time between two attempts to take a lock.
const PAUSE: Duration = Duration::from_millis(1);

/// Characters of a command line that a message shows.
const COMMAND: usize = 80;

static STOP: OnceLock<Arc<AtomicBool>> = OnceLock::new();

/// Lets every wait of this process for a lock end with an error when `flag` is set, as a signal
/// handler does. Only the first call counts.
pub fn stop_waits_with(flag: Arc<AtomicBool>) {
    let _ = STOP.set(flag);
}

/// Waits at most `patience` for the lock of the file `path`, which `open` opens or makes.
///
/// # Errors
/// Returns [`Error::Locked`] with the process that holds the lock, [`Error::Stopped`] if
/// [`stop_waits_with`] ends the wait, or the error of `open`.
pub(crate) fn wait(
    path: &Path,
    patience: Duration,
    open: impl Fn() -> Result<File>,
) -> Result<Flock<File>> {
    let until = Instant::now() + patience;
    let mut file = open()?;
    loop {
        match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
            Ok(lock) if is_same_file(&lock, path) => return Ok(lock),
            // another process removed the file meanwhile
            Ok(_) => file = open()?,
            Err((locked, Errno::EWOULDBLOCK)) => {
                if STOP.get().is_some_and(|stop| stop.load(Ordering::Relaxed)) {
                    return Err(Error::Stopped { path: path.to_owned() });
                }
                if Instant::now() >= until {
                    let (path, holder) = (path.to_owned(), describe(&holders(&locked)));
                    return Err(Error::Locked { path, seconds: patience.as_secs(), holder });
                }
                file = locked;
                thread::sleep(PAUSE);
            }
            Err((_, error)) => return Err(error).context(|| format!("{}: lock", path.display())),
        }
    }
}

/// True if `path` still names the open file.
pub(crate) fn is_same_file(file: &File, path: &Path) -> bool {
    let inode = |metadata: io::Result<fs::Metadata>| metadata.map(|m| (m.dev(), m.ino())).ok();
    inode(file.metadata()) == inode(fs::metadata(path))
}

/// True if a process of another user holds the lock of this file. skipstep's processes never share
/// these locks, so then none of them holds the lock.
pub(crate) fn is_held_by_stranger(file: &File) -> bool {
    holders(file).into_iter().any(is_strange)
}

/// True if a process has a user id other than this process's. False for a process that /proc hides.
fn is_strange(pid: u32) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let uids = status.lines().find_map(|line| line.strip_prefix("Uid:")).unwrap_or_default();
    let ours = geteuid().to_string();
    uids.split_whitespace().any(|uid| uid != ours)
}

/// Returns the processes that hold the lock of a file, as far as /proc shows them.
fn holders(file: &File) -> BTreeSet<u32> {
    let Some(id) = id_in_proc(file) else { return BTreeSet::new() };
    let locks = fs::read_to_string("/proc/locks").unwrap_or_default();
    let named: BTreeSet<u32> = locks.lines().filter_map(|line| taker_of(line, &id)).collect();
    let (alive, gone): (BTreeSet<u32>, BTreeSet<u32>) =
        named.into_iter().partition(|pid| Path::new(&format!("/proc/{pid}")).exists());
    if gone.is_empty() && !alive.is_empty() {
        return alive;
    }
    // the process that took the lock has passed the open file on; inside a PID namespace,
    // /proc/locks omits such a lock
    let heirs = numbers_in("/proc").filter(|pid| has_lock(*pid, &id));
    heirs.chain(alive.iter().copied()).collect()
}

/// Returns a file's id in /proc/locks: device and inode.
fn id_in_proc(file: &File) -> Option<String> {
    let metadata = file.metadata().ok()?;
    let device = metadata.dev();
    Some(format!("{:02x}:{:02x}:{}", major(device), minor(device), metadata.ino()))
}

/// Returns the process that took the lock of the file `id`, from a line of /proc/locks like `1:
/// FLOCK  ADVISORY  WRITE 4711 00:1a:815 0 EOF`.
fn taker_of(line: &str, id: &str) -> Option<u32> {
    let words: Vec<&str> = line.split_whitespace().collect();
    match words[..] {
        [_, "FLOCK", _, _, pid, file, ..] if file == id => pid.parse().ok(),
        _ => None,
    }
}

/// True if a process has an open file that holds the lock of the file `id`.
fn has_lock(pid: u32, id: &str) -> bool {
    let folder = format!("/proc/{pid}/fdinfo");
    numbers_in(&folder).any(|number| {
        let text = fs::read_to_string(format!("{folder}/{number}")).unwrap_or_default();
        let mut locks = text.lines().filter_map(|line| line.strip_prefix("lock:"));
        locks.any(|line| taker_of(line, id).is_some())
    })
}

/// Returns the entries of a folder whose names are numbers.
fn numbers_in(folder: &str) -> impl Iterator<Item = u32> + use<> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// Returns a list of processes with their command lines, for a message.
fn describe(pids: &BTreeSet<u32>) -> String {
    if pids.is_empty() {
        return "a process that /proc does not show".to_owned();
    }
    let named = pids.iter().map(|pid| format!("process {pid} ({})", command(*pid)));
    named.collect::<Vec<_>>().join(", ")
}

/// Returns a process's command line, cut to fit a message.
fn command(pid: u32) -> String {
    let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let mut words = String::from_utf8_lossy(&line).trim_end_matches('\0').replace('\0', " ");
    if words.is_empty() {
        words = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    }
    // the process chose this text, so control characters must not reach the terminal
    let shown = |c: char| if c.is_control() { '?' } else { c };
    words.trim_end().chars().take(COMMAND).map(shown).collect()
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command, Stdio};

    use super::*;

    const SOON: Duration = Duration::from_millis(50);

    /// Kills a process at the end of a test.
    struct Ended(Child);

    impl Drop for Ended {
        fn drop(&mut self) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }

    fn open(path: &Path) -> Result<File> {
        crate::private::file(path)
    }

    /// Starts a shell that runs `script`, and waits until the script prints a line.
    fn shell(script: &str, name: &str) -> Ended {
        let mut shell = Command::new("sh");
        shell.args(["-c", script, name]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = shell.spawn().unwrap();
        io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut [0]).unwrap();
        Ended(child)
    }

    /// Starts a shell that holds the lock of `path` until the command `waits` ends. The flock(1)
    /// that took the lock has ended by then.
    fn holder(path: &Path, waits: &str) -> Ended {
        shell(&format!("exec 9<'{}'; flock 9; echo; {waits}", path.display()), "holder")
    }

    #[test]
    fn a_wait_ends_with_the_name_of_the_holder() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let held = holder(file.path(), "read line");
        let refused = wait(file.path(), SOON, || open(file.path())).unwrap_err().to_string();
        let expected = format!("by process {} (sh -c exec 9<", held.0.id());
        assert!(refused.contains(&expected), "{refused}");
        drop(held);
        wait(file.path(), SOON, || open(file.path())).unwrap();
    }

    #[test]
    fn the_lock_of_a_file_that_was_removed_meanwhile_is_not_enough() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        let first = wait(&path, SOON, || open(&path)).unwrap();
        thread::scope(|scope| {
            let second = scope.spawn(|| wait(&path, PATIENCE, || open(&path)).unwrap());
            thread::sleep(SOON);
            fs::remove_file(&path).unwrap();
            drop(first);
            assert!(is_same_file(&second.join().unwrap(), &path));
        });
    }

    #[test]
    fn lines_of_locks_are_read() {
        let line = "1: FLOCK  ADVISORY  WRITE 4711 00:1a:815 0 EOF";
        assert_eq!(taker_of(line, "00:1a:815"), Some(4711));
        assert_eq!(taker_of(line, "00:1a:81"), None);
        assert_eq!(
            taker_of("1: -> FLOCK  ADVISORY  WRITE 4711 00:1a:815 0 EOF", "00:1a:815"),
            None
        );
        assert_eq!(taker_of("2: POSIX  ADVISORY  READ 3 00:1a:815 0 EOF", "00:1a:815"), None);
        assert_eq!(taker_of("", "00:1a:815"), None);
    }

    #[test]
    fn a_command_line_does_not_control_the_terminal() {
        let other = shell("echo; read line", "\u{1b}[2J");
        assert_eq!(command(other.0.id()), "sh -c echo; read line ?[2J");
        let named = describe(&BTreeSet::from([other.0.id()]));
        assert_eq!(named, format!("process {} (sh -c echo; read line ?[2J)", other.0.id()));
        assert_eq!(command(u32::MAX), "");
    }

    #[test]
    fn a_process_of_another_user_is_strange() {
        assert!(!is_strange(std::process::id()));
        assert!(!is_strange(u32::MAX));
        if !geteuid().is_root() {
            assert!(is_strange(1));
            return;
        }
        let path = tempfile::NamedTempFile::new().unwrap().into_temp_path();
        let open = File::open(&path).unwrap();
        assert!(!is_held_by_stranger(&open));
        let held = holder(&path, "read line");
        assert!(!is_held_by_stranger(&open));
        drop(held);
        let nobody = "exec setpriv --reuid=65534 --clear-groups sleep 60";
        let _held = holder(&path, nobody);
        let until = Instant::now() + Duration::from_secs(5);
        while !is_held_by_stranger(&open) {
            assert!(Instant::now() < until, "{:?}", holders(&open));
            thread::sleep(PAUSE);
        }
    }
}
