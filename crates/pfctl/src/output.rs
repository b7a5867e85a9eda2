//! Output of pfctl.

use std::fs::Metadata;
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, fchown};
use std::path::Path;

use anyhow::Result;
use tempfile::NamedTempFile;

/// Writes to standard output.
///
/// # Errors
/// Fails if standard output cannot be written, for instance because the pipe is closed.
pub fn print(text: &str) -> Result<()> {
    io::stdout().write_all(text.as_bytes())?;
    Ok(())
}

/// Replaces control characters by `?`, because a name may have escape sequences of the terminal.
pub fn without_controls(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '?' } else { c }).collect()
}

/// True if the reader of the output has closed the pipe, which is no error.
pub fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let error = error.downcast_ref::<io::Error>();
    error.is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

/// Prints an error of a program to standard error, without the errno that Rust appends to the
/// system's message.
pub fn complain(program: &str, error: &anyhow::Error) {
    let message = format!("{error:#}");
    eprintln!("{program}: {}", message.split(" (os error ").next().unwrap_or(&message));
}

/// Replaces a file in one step. The new file has the owner and the mode of `like`, or else only
/// this user may read it.
///
/// # Errors
/// Fails if the file cannot be written, or if its owner cannot be set.
pub fn replace_file(file: &Path, text: &str, like: Option<&Metadata>) -> io::Result<()> {
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
    let mut unfinished = NamedTempFile::new_in(folder.unwrap_or(Path::new(".")))?;
    unfinished.write_all(text.as_bytes())?;
    if let Some(like) = like {
        fchown(unfinished.as_file(), Some(like.uid()), Some(like.gid()))?;
        unfinished.as_file().set_permissions(like.permissions())?;
    }
    unfinished.as_file().sync_all()?;
    unfinished.persist(file)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn escape_sequences_do_not_reach_the_terminal() {
        assert_eq!(without_controls("l\u{1b}[2J\u{9b}\nä"), "l?[2J??ä");
    }

    #[test]
    fn a_replaced_file_has_the_mode_that_is_asked_for() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pf.conf");
        let mode = || fs::metadata(&path).unwrap().permissions().mode() & 0o777;
        fs::write(&path, "block\n").unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
        replace_file(&path, "pass\n", Some(&fs::metadata(&path).unwrap())).unwrap();
        assert_eq!((fs::read_to_string(&path).unwrap().as_str(), mode()), ("pass\n", 0o640));
        replace_file(&path, "match\n", None).unwrap();
        assert_eq!((fs::read_to_string(&path).unwrap().as_str(), mode()), ("match\n", 0o600));
    }
}
