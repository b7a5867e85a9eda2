//! Private files and folders, which only their owner may open.
//!
//! A local user who can open a file of skipstep can lock it and so block every command. A user who
//! can write to a file can change the filter. So this module makes all files and folders of
//! skipstep, with a mode that does not depend on the umask.

use std::fs::{self, DirBuilder, File, Metadata, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

use nix::fcntl::OFlag;
use nix::unistd::geteuid;

use crate::error::{Context, Error, Result};

/// Mode of a folder.
// Differs from OpenBSD: linux.md, "Permissions"
const FOLDER: u32 = 0o700;

/// Mode of a file or socket.
const FILE: u32 = 0o600;

/// Bits of a mode that chmod(2) sets.
const PERMISSIONS: u32 = 0o7777;

/// Makes the folder `path` unless it exists, and removes all rights of other users.
///
/// # Errors
/// Fails if another user owns the folder, or if a system call fails.
pub fn folder(path: &Path) -> Result<()> {
    match DirBuilder::new().mode(FOLDER).create(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            Err(error).context(|| format!("{}: create", path.display()))
        }
        _ => narrow_folder(path),
    }
}

/// Opens the file `path` for reading and writing. Makes it first if it is missing. Removes all
/// rights of other users.
///
/// # Errors
/// Fails if another user owns the file, if it is a symbolic link, or if a system call fails.
pub fn file(path: &Path) -> Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false).mode(FILE);
    let file = options.custom_flags(OFlag::O_NOFOLLOW.bits()).open(path);
    let file = file.context(|| format!("{}: open", path.display()))?;
    narrow(&file, path, FILE)?;
    Ok(file)
}

/// Makes a new, empty file in place of any file with this path. A process that has the previous
/// file open does not see the new one.
///
/// # Errors
/// Fails if a system call fails.
pub(crate) fn new_file(path: &Path) -> io::Result<File> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let file = OpenOptions::new().write(true).create_new(true).mode(FILE).open(path)?;
    file.set_permissions(Permissions::from_mode(FILE))?;
    Ok(file)
}

/// Removes all rights of other users to a socket in a private folder.
///
/// # Errors
/// Fails if chmod(2) fails.
pub fn narrow_socket(path: &Path) -> io::Result<()> {
    fs::set_permissions(path, Permissions::from_mode(FILE))
}

/// Removes all rights of other users to a folder and to all files in it.
///
/// # Errors
/// Fails if another user owns the folder or a file in it, or if a system call fails.
pub(crate) fn mend(folder: &Path) -> Result<()> {
    narrow_folder(folder)?;
    let entries = fs::read_dir(folder).context(|| format!("{}: read", folder.display()))?;
    for path in entries.flatten().map(|entry| entry.path()) {
        // another process may have removed a file meanwhile
        let Ok(metadata) = fs::symlink_metadata(&path) else { continue };
        if metadata.is_dir() {
            mend(&path)?;
            continue;
        }
        check_owner(&metadata, &path)?;
        if metadata.mode() & PERMISSIONS != FILE && !metadata.is_symlink() {
            match fs::set_permissions(&path, Permissions::from_mode(FILE)) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                other => other.context(|| format!("{}: change mode", path.display()))?,
            }
        }
    }
    Ok(())
}

/// Refuses a file or folder of another user.
pub(crate) fn check_owner(metadata: &Metadata, path: &Path) -> Result<()> {
    let owner = metadata.uid();
    if owner == geteuid().as_raw() {
        return Ok(());
    }
    Err(Error::Foreign { path: path.to_owned(), owner })
}

/// Removes all rights of other users to a folder.
pub(crate) fn narrow_folder(path: &Path) -> Result<()> {
    let flags = (OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW).bits();
    let directory = OpenOptions::new().read(true).custom_flags(flags).open(path);
    let directory = directory.context(|| format!("{}: open", path.display()))?;
    narrow(&directory, path, FOLDER)
}

/// Sets the mode of an open file or folder, after checking its owner.
fn narrow(file: &File, path: &Path, mode: u32) -> Result<()> {
    let metadata = file.metadata().context(|| format!("{}: look at", path.display()))?;
    check_owner(&metadata, path)?;
    if metadata.mode() & PERMISSIONS == mode {
        return Ok(());
    }
    let changed = file.set_permissions(Permissions::from_mode(mode));
    changed.context(|| format!("{}: change mode", path.display()))
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::fs::chown;

    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::symlink_metadata(path).unwrap().mode() & PERMISSIONS
    }

    fn set_mode(path: &Path, mode: u32) {
        fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn existing_files_lose_the_rights_of_others() {
        let top = tempfile::tempdir().unwrap();
        let (below, lock) = (top.path().join("owners"), top.path().join("owners/ftp-proxy.1"));
        fs::create_dir(&below).unwrap();
        fs::write(&lock, "2").unwrap();
        for path in [top.path(), &below, &lock] {
            set_mode(path, 0o777);
        }
        mend(top.path()).unwrap();
        assert_eq!([top.path(), &below, &lock].map(mode), [0o700, 0o700, 0o600]);
        assert_eq!(fs::read_to_string(&lock).unwrap(), "2");
        set_mode(&below, 0o755);
        folder(&below).unwrap();
        set_mode(&lock, 0o644);
        file(&lock).unwrap();
        assert_eq!([below.as_path(), &lock].map(mode), [0o700, 0o600]);
        assert_eq!(fs::read_to_string(&lock).unwrap(), "2");
    }

    #[test]
    fn a_new_file_is_not_the_open_one() {
        let top = tempfile::tempdir().unwrap();
        let (path, other) = (top.path().join("rules.new"), top.path().join("other"));
        fs::write(&path, "").unwrap();
        let before = File::open(&path).unwrap();
        new_file(&path).unwrap().write_all(b"secret").unwrap();
        assert_eq!((before.metadata().unwrap().len(), mode(&path)), (0, 0o600));
        fs::write(&other, "untouched").unwrap();
        fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink(&other, &path).unwrap();
        assert!(file(&path).is_err());
        new_file(&path).unwrap().write_all(b"secret").unwrap();
        assert_eq!(fs::read_to_string(&other).unwrap(), "untouched");
    }

    #[test]
    fn a_file_of_another_user_is_refused_by_name() {
        let top = tempfile::tempdir().unwrap();
        let path = top.path().join("memory.json");
        fs::write(&path, "").unwrap();
        if !geteuid().is_root() {
            let metadata = fs::metadata("/").unwrap();
            assert!(check_owner(&metadata, Path::new("/")).is_err());
            return;
        }
        chown(&path, Some(65534), None).unwrap();
        let said = |refused: Result<()>| refused.unwrap_err().to_string();
        let expected = format!("{}: belongs to user 65534", path.display());
        assert!(said(mend(top.path())).starts_with(&expected));
        assert!(said(file(&path).map(drop)).starts_with(&expected));
        chown(top.path(), Some(65534), None).unwrap();
        let expected = format!("{}: belongs to user 65534", top.path().display());
        assert!(said(folder(top.path())).starts_with(&expected));
    }
}
