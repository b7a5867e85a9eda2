//! The file of the failsafe list, `/etc/pf.failsafe`.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use skipstep_ruleset::failsafe::FILE;

/// The warning after a load that removed the list.
pub const GONE: &str = "there is no /etc/pf.failsafe any more, so these rules begin without the \
                        failsafe list";

/// Returns the text of the list, and `None` if there is no file.
///
/// # Errors
/// Fails if the file cannot be read, or if another user than root may write it. A link to a file
/// that does not exist is an error, too.
pub fn read() -> io::Result<Option<String>> {
    read_file(Path::new(FILE), 0)
}

/// Reads a list that belongs to the user `owner`.
fn read_file(path: &Path, owner: u32) -> io::Result<Option<String>> {
    let at_path = fs::symlink_metadata(path);
    if at_path.is_err_and(|error| error.kind() == ErrorKind::NotFound) {
        return Ok(None);
    }
    let refuse = |text: &str| Err(io::Error::other(text));
    if !fs::metadata(path)?.is_file() {
        return refuse("this is no regular file");
    }
    let mut file = File::open(path)?;
    let opened = file.metadata()?;
    if opened.uid() != owner {
        return refuse("the file does not belong to root: run `chown root /etc/pf.failsafe`");
    }
    if opened.mode() & 0o022 != 0 {
        return refuse(
            "the group or other users may write the file: run `chmod go-w /etc/pf.failsafe`",
        );
    }
    let mut text = String::new();
    file.read_to_string(&mut text)?;
    Ok(Some(text))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn a_list_belongs_to_its_owner_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("list");
        assert!(read_file(&path, 0).unwrap().is_none());
        fs::write(&path, "pass\n").unwrap();
        let owner = fs::metadata(&path).unwrap().uid();
        for (mode, owner, reason) in [
            (0o600, owner, None),
            (0o644, owner, None),
            (0o664, owner, Some("chmod go-w")),
            (0o646, owner, Some("chmod go-w")),
            (0o644, owner + 1, Some("chown root")),
        ] {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            let found = read_file(&path, owner);
            match reason {
                None => assert_eq!(found.unwrap().as_deref(), Some("pass\n"), "{mode:o}"),
                Some(reason) => assert!(found.unwrap_err().to_string().contains(reason)),
            }
        }
    }

    #[test]
    fn a_list_that_cannot_be_read_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("list");
        symlink(folder.path().join("none"), &path).unwrap();
        assert_eq!(read_file(&path, 0).unwrap_err().kind(), ErrorKind::NotFound);
        assert!(read_file(folder.path(), 0).is_err());
        let path = folder.path().join("bytes");
        fs::write(&path, [0xff, 0xfe]).unwrap();
        let owner = fs::metadata(&path).unwrap().uid();
        assert_eq!(read_file(&path, owner).unwrap_err().kind(), ErrorKind::InvalidData);
    }
}
