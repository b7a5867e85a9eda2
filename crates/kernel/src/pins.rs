//! The pins of instances. `/sys/fs/bpf/skipstep/NAME/` has the maps and programs of an instance,
//! its links in `links/`, those of bridges in `bridge/`, and those of the guard in `guard/`. A
//! directory is complete or absent: it is filled under another name and renamed, or exchanged with
//! the directory that it replaces.

use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use nix::fcntl::{AT_FDCWD, RenameFlags, renameat2};
use nix::mount::{MsFlags, mount};
use nix::sys::statfs::{BPF_FS_MAGIC, statfs};

use crate::error::{Context, Error, Result};
use crate::lock::{PATIENCE, wait};
use crate::object::{self, Maps, Programs, Sizes};
use crate::{private, rundir};

/// Usual mount point of BPF file systems.
const BPFFS: &str = "/sys/fs/bpf";

/// The same mount point, as process 1 sees it.
const BPFFS_OF_FIRST: &str = "/proc/1/root/sys/fs/bpf";

/// First part of the name of a directory that is being filled; the maker's process id and a count
/// follow. No instance has a plus in its name, and this file system allows no dot.
const UNFINISHED: &str = "+new-";

/// Folder of links in an instance's directory.
pub(crate) const LINKS: &str = "links";

/// Folder of the links of bridge ports, which stay when the filter is disabled.
pub(crate) const BRIDGE_LINKS: &str = "bridge";

/// Folder of the guard's links.
pub(crate) const GUARD_LINKS: &str = "guard";

/// Bits of a mode: writable by other users, and sticky, which keeps users from renaming the files
/// of others.
const WRITABLE: u32 = 0o022;
const STICKY: u32 = 0o1000;

/// Returns the directory of all instances. Mounts the BPF file system if it is missing and the
/// mount would last.
///
/// # Errors
/// Fails if the BPF file system is missing and cannot be mounted, or if other users could have put
/// maps and programs there.
pub(crate) fn root() -> Result<PathBuf> {
    let bpffs = match mounted() {
        Some(bpffs) => bpffs,
        None => mount_lasting(Path::new(BPFFS))?,
    };
    let root = bpffs.join("skipstep");
    if nix::unistd::geteuid().is_root() {
        check_mount(bpffs)?;
        check_directory(&root)?;
    }
    Ok(root)
}

/// Refuses a BPF file system in which another user could rename or replace pins.
fn check_mount(bpffs: &Path) -> Result<()> {
    let Ok(metadata) = fs::symlink_metadata(bpffs) else { return Ok(()) };
    let mode = metadata.mode() & 0o7777;
    let is_ours = private::check_owner(&metadata, bpffs).is_ok();
    let is_open = mode & WRITABLE != 0 && mode & STICKY == 0;
    let remedy = match (is_ours, is_open) {
        (true, false) => return Ok(()),
        (true, true) => format!("close it (chmod 700 {}) and check its contents", bpffs.display()),
        (false, _) => "unmount it and load the rules again".to_owned(),
    };
    Err(Error::Writable { path: bpffs.to_owned(), mode, remedy })
}

/// Refuses a directory of pins that another user can write to. Removes other users' right to read
/// it, which earlier versions gave. The directory may be missing.
fn check_directory(directory: &Path) -> Result<()> {
    let Ok(metadata) = fs::symlink_metadata(directory) else { return Ok(()) };
    private::check_owner(&metadata, directory)?;
    let mode = metadata.mode() & 0o7777;
    if mode & WRITABLE == 0 {
        return private::narrow_folder(directory);
    }
    let remedy = format!("remove it (rm -r {}) and load the rules again", directory.display());
    Err(Error::Writable { path: directory.to_owned(), mode, remedy })
}

/// Returns the mounted BPF file system; `None` if this process reaches none. `ip netns exec` hides
/// `/sys/fs/bpf` behind another `/sys`, so its commands use the mount of process 1.
// Differs from OpenBSD: linux.md, "Instances and namespaces"
fn mounted() -> Option<&'static Path> {
    let own = Path::new(BPFFS);
    if is_bpffs(own) {
        return Some(own);
    }
    let of_first = Path::new(BPFFS_OF_FIRST);
    (in_mounts_of_ip_netns() && trusts_first() && is_bpffs(of_first)).then_some(of_first)
}

/// True if process 1 may lead this process to files: both are root's, have one user namespace, and
/// see the same `/run`, which has the other files of instances.
fn trusts_first() -> bool {
    let file = |path: &str| fs::metadata(path).map(|found| (found.dev(), found.ino())).ok();
    let same = |ours: &str, first: &str| file(ours).is_some_and(|ours| file(first) == Some(ours));
    nix::unistd::geteuid().is_root()
        && fs::metadata("/proc/1").is_ok_and(|first| first.uid() == 0)
        && same("/proc/self/ns/user", "/proc/1/ns/user")
        && same("/run", "/proc/1/root/run")
}

/// Mounts the BPF file system if the mount would last, and returns its mount point.
fn mount_lasting(bpffs: &Path) -> Result<&Path> {
    if !nix::unistd::geteuid().is_root() {
        return Err(Error::NotRoot { operation: format!("{BPFFS}: mount") });
    }
    if !bpffs.is_dir() || in_mounts_of_ip_netns() {
        return Err(Error::NoBpffs { path: bpffs.to_owned() });
    }
    mount_once(bpffs)?;
    Ok(bpffs)
}

/// Mounts the BPF file system unless another process has just mounted it: a second mount would hide
/// the pins of the first. Only root can take the lock.
fn mount_once(bpffs: &Path) -> Result<()> {
    let failed = || format!("{BPFFS}: mount");
    let folder = rundir::root()?;
    let open = || File::open(rundir::root()?).context(failed);
    let _lock = wait(&folder, PATIENCE, open)?;
    if is_bpffs(bpffs) {
        return Ok(());
    }
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    mount(Some("bpf"), bpffs, Some("bpf"), flags, Some("mode=0700")).context(failed)
}

/// Returns the names of all instances, sorted.
pub(crate) fn list() -> Result<Vec<String>> {
    let mut names = Vec::new();
    if mounted().is_some()
        && let Ok(entries) = fs::read_dir(root()?)
    {
        for entry in entries.flatten() {
            names.extend(entry.file_name().into_string());
        }
    }
    // a name with a plus belongs to a directory that is being filled
    names.retain(|name| !name.starts_with('+'));
    names.sort();
    Ok(names)
}

/// Loads the data plane and pins it in `directory`, which must not exist.
pub(crate) fn create(directory: &Path, sizes: &Sizes) -> Result<(Maps, Programs)> {
    let Draft { maps, programs, directory: unfinished } = Draft::new(directory, sizes)?;
    fs::rename(&unfinished, directory).context(|| format!("{}: create", directory.display()))?;
    Ok((maps, programs))
}

/// A data plane that is pinned beside the instance of its final name.
pub(crate) struct Draft {
    pub maps: Maps,
    pub programs: Programs,
    pub directory: PathBuf,
}

impl Draft {
    /// Loads the data plane and pins it in a directory beside `directory`.
    pub fn new(directory: &Path, sizes: &Sizes) -> Result<Self> {
        remove_unfinished()?;
        let (mut maps, programs) = object::load(sizes)?;
        let unfinished = directory.with_file_name(unfinished_name());
        remove(&unfinished)?;
        for folder in unfinished.parent().into_iter().chain([&*unfinished]) {
            private::folder(folder)?;
        }
        for links in [LINKS, BRIDGE_LINKS, GUARD_LINKS] {
            private::folder(&unfinished.join(links))?;
        }
        maps.pin(&unfinished)?;
        programs.pin(&unfinished)?;
        Ok(Draft { maps, programs, directory: unfinished })
    }
}

/// Exchanges two directories of pins with one rename.
pub(crate) fn exchange(one: &Path, other: &Path) -> Result<()> {
    renameat2(AT_FDCWD, one, AT_FDCWD, other, RenameFlags::RENAME_EXCHANGE)
        .context(|| format!("{}: replace", other.display()))
}

/// Returns a name that no other thread or process fills at this moment.
fn unfinished_name() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    format!("{UNFINISHED}{}-{count}", std::process::id())
}

/// Removes directories that processes which have ended did not finish.
pub(crate) fn remove_unfinished() -> Result<()> {
    let Ok(entries) = fs::read_dir(root()?) else {
        return Ok(());
    };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let maker = name
            .to_str()
            .and_then(|name| name.strip_prefix(UNFINISHED))
            .and_then(|name| name.split('-').next());
        if maker.is_some_and(|pid| !Path::new("/proc").join(pid).exists()) {
            remove(&entry.path())?;
        }
    }
    Ok(())
}

/// Removes a directory of pins with all pins in it; this detaches their links.
pub(crate) fn remove(directory: &Path) -> Result<()> {
    match fs::remove_dir_all(directory) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        other => other.context(|| format!("{}: remove", directory.display())),
    }
}

/// Removes a pin, if it exists. This detaches the program if the pin was the link's only reference.
pub(crate) fn unpin(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        other => other.context(|| format!("{}: detach", path.display())),
    }
}

/// True if this process reaches a mounted BPF file system.
pub fn is_mounted() -> bool {
    mounted().is_some()
}

fn is_bpffs(path: &Path) -> bool {
    statfs(path).is_ok_and(|stat| stat.filesystem_type() == BPF_FS_MAGIC)
}

/// True if this process runs in the mounts that `ip netns exec` makes for one command: a new mount
/// would vanish with the command. In these mounts, the source of `/sys` is the name of the network
/// namespace.
fn in_mounts_of_ip_netns() -> bool {
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    mounts
        .lines()
        .filter_map(|line| line.split_once(" /sys sysfs "))
        .any(|(source, _)| Path::new("/run/netns").join(source).exists())
}
