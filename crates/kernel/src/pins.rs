//! Where an instance lives: `/sys/fs/bpf/skipstep/NAME/` holds its maps and programs, and its links
//! in `links/`, those of bridges in `bridge/`. A directory is complete or absent: it is filled
//! under another name and renamed.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use nix::fcntl::{Flock, FlockArg};
use nix::mount::{MsFlags, mount};
use nix::sys::statfs::{BPF_FS_MAGIC, statfs};

use crate::error::{Context, Error, Result};
use crate::object::{self, Maps, Programs, Sizes};

/// Where BPF file systems are mounted by custom.
const BPFFS: &str = "/sys/fs/bpf";

/// What the name of a directory that is being filled begins with; the maker's process id and a
/// count follow. No instance has a plus in its name, and this file system allows no dot.
const UNFINISHED: &str = "+new-";

/// Folder of links in an instance's directory.
pub(crate) const LINKS: &str = "links";

/// Folder of links that make ports of bridges: they stay when the filter is disabled.
pub(crate) const BRIDGE_LINKS: &str = "bridge";

/// Directory of all instances; mounts the BPF file system if it is missing and that can be of use.
pub(crate) fn root() -> Result<PathBuf> {
    let bpffs = Path::new(BPFFS);
    if !is_bpffs(bpffs) {
        if !nix::unistd::geteuid().is_root() {
            return Err(Error::NotRoot { what: format!("{BPFFS}: mount") });
        }
        if !bpffs.is_dir() || in_mounts_of_ip_netns() {
            return Err(Error::NoBpffs { path: bpffs.to_owned() });
        }
        mount_once(bpffs)?;
    }
    Ok(bpffs.join("skipstep"))
}

/// Mounts the BPF file system unless another has just done it: a second one on top would hide what
/// was pinned in the first.
fn mount_once(bpffs: &Path) -> Result<()> {
    let failed = || format!("{BPFFS}: mount");
    let parent = File::open(bpffs.parent().unwrap_or(bpffs)).context(failed)?;
    let _lock = Flock::lock(parent, FlockArg::LockExclusive)
        .map_err(|(_, error)| io::Error::from(error))
        .context(failed)?;
    if is_bpffs(bpffs) {
        return Ok(());
    }
    let none = None::<&str>;
    mount(Some("bpf"), bpffs, Some("bpf"), MsFlags::empty(), none).context(failed)
}

/// Names of the instances there are.
pub(crate) fn list() -> Result<Vec<String>> {
    let mut names = Vec::new();
    if is_bpffs(Path::new(BPFFS))
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
    let (mut maps, programs) = object::load(sizes)?;
    let unfinished = directory.with_file_name(unfinished_name());
    remove(&unfinished)?;
    for folder in [LINKS, BRIDGE_LINKS] {
        fs::create_dir_all(unfinished.join(folder))
            .context(|| format!("{}: create", unfinished.display()))?;
    }
    maps.pin(&unfinished)?;
    programs.pin(&unfinished)?;
    fs::rename(&unfinished, directory).context(|| format!("{}: create", directory.display()))?;
    Ok((maps, programs))
}

/// A name that no other thread or process fills at this moment.
fn unfinished_name() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    format!("{UNFINISHED}{}-{count}", std::process::id())
}

/// Removes what processes began to fill that are no more.
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

/// Removes a directory of pins with everything in it; what is attached through it is detached.
pub(crate) fn remove(directory: &Path) -> Result<()> {
    match fs::remove_dir_all(directory) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        other => other.context(|| format!("{}: remove", directory.display())),
    }
}

fn is_bpffs(path: &Path) -> bool {
    statfs(path).is_ok_and(|stat| stat.filesystem_type() == BPF_FS_MAGIC)
}

/// Whether this process runs in the mounts that `ip netns exec` makes for one command: a mount made
/// there would vanish with it. They are known by `/sys`, which has the network namespace's name for
/// its source.
fn in_mounts_of_ip_netns() -> bool {
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    mounts
        .lines()
        .filter_map(|line| line.split_once(" /sys sysfs "))
        .any(|(source, _)| Path::new("/run/netns").join(source).exists())
}
