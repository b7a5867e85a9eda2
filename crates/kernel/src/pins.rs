//! Where an instance lives: `/sys/fs/bpf/skipstep/NAME/` holds its maps and programs, and its links
//! in `links/`. A directory is complete or absent: it is filled under another name and renamed.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use nix::mount::{MsFlags, mount};
use nix::sys::statfs::{BPF_FS_MAGIC, statfs};

use crate::error::{Context, Error, Result};
use crate::object::{self, Maps, Programs, Sizes};

/// Where BPF file systems are mounted by custom.
const BPFFS: &str = "/sys/fs/bpf";

/// What the name of a directory that is being filled begins with; no instance's has a +.
const UNFINISHED: &str = "+new-";

/// Folder of links in an instance's directory.
pub(crate) const LINKS: &str = "links";

/// Directory of all instances; mounts the BPF file system if it is missing and that can be of use.
pub(crate) fn root() -> Result<PathBuf> {
    let bpffs = Path::new(BPFFS);
    if !is_bpffs(bpffs) {
        if !nix::unistd::geteuid().is_root() {
            return Err(Error::NotRoot {
                what: format!("{BPFFS}: mount"),
            });
        }
        if !bpffs.is_dir() || !in_first_mount_namespace() {
            return Err(Error::NoBpffs {
                path: bpffs.to_owned(),
            });
        }
        mount(
            Some("bpf"),
            bpffs,
            Some("bpf"),
            MsFlags::empty(),
            None::<&str>,
        )
        .context(|| format!("{BPFFS}: mount"))?;
    }
    Ok(bpffs.join("skipstep"))
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
    let parent = directory.parent().unwrap_or(directory);
    // no instance has a plus in its name, and this file system allows no dot
    let unfinished = parent.join(format!("+new-{}", std::process::id()));
    remove(&unfinished)?;
    fs::create_dir_all(unfinished.join(LINKS))
        .context(|| format!("{}: create", unfinished.display()))?;
    maps.pin(&unfinished)?;
    programs.pin(&unfinished)?;
    fs::rename(&unfinished, directory).context(|| format!("{}: create", directory.display()))?;
    Ok((maps, programs))
}

/// Removes what processes began to fill that are no more.
pub(crate) fn remove_unfinished() -> Result<()> {
    let Ok(entries) = fs::read_dir(root()?) else {
        return Ok(());
    };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let maker = name.to_str().and_then(|name| name.strip_prefix(UNFINISHED));
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

/// A mount made in a namespace of its own vanishes with the last process in it, as inside
/// `ip netns exec`.
fn in_first_mount_namespace() -> bool {
    let inode = |path: &str| fs::metadata(path).map(|metadata| metadata.ino()).ok();
    inode("/proc/self/ns/mnt") == inode("/proc/1/ns/mnt")
}
