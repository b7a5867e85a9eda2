//! The shared secret of controller and agents: 32 random bytes. The file has them as 64 hexadecimal
//! digits, and only its owner may read it.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;

use anyhow::{Context, ensure};

/// The size of a key, in bytes.
const KEY: usize = 32;

/// The permission bits that let others read or change a file.
const OF_OTHERS: u32 = 0o077;

/// A shared secret.
#[derive(Clone, PartialEq, Eq)]
pub struct Key([u8; KEY]);

/// Hides the secret, so that a debug print cannot leak it.
impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key")
    }
}

impl Key {
    /// Makes a key of its bytes.
    pub fn new(bytes: [u8; KEY]) -> Key {
        Key(bytes)
    }

    /// Writes a new random key to a new file.
    ///
    /// # Errors
    /// Fails if the file exists, or cannot be written.
    pub fn make(path: &Path) -> anyhow::Result<()> {
        let name = || path.display().to_string();
        let bytes: [u8; KEY] = random()?;
        let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        let mut options = OpenOptions::new();
        let mut file =
            options.write(true).create_new(true).mode(0o600).open(path).with_context(name)?;
        writeln!(file, "{digits}").and_then(|()| file.sync_all()).with_context(name)
    }

    /// Reads the key from a file.
    ///
    /// # Errors
    /// Fails if the file cannot be read, if its mode gives others access, or if it holds no key.
    pub fn read(path: &Path) -> anyhow::Result<Key> {
        let name = path.display();
        let file = File::open(path).with_context(|| name.to_string())?;
        let rights = file.metadata().with_context(|| name.to_string())?.permissions().mode();
        ensure!(
            rights & OF_OTHERS == 0,
            "{name}: others may use this key (mode {:o}): chmod 600 {name}",
            rights & 0o777
        );
        let mut text = String::new();
        file.take(1024).read_to_string(&mut text).with_context(|| name.to_string())?;
        parse(text.trim()).with_context(|| {
            format!(
                "{name}: not a key of 64 hexadecimal digits: make one with fwlab agent --make-key \
                 FILE"
            )
        })
    }

    /// Returns the bytes of the key.
    pub(super) fn bytes(&self) -> &[u8; KEY] {
        &self.0
    }
}

/// Returns random bytes of the kernel.
///
/// # Errors
/// Fails if the system has no random bytes.
pub fn random<const LENGTH: usize>() -> anyhow::Result<[u8; LENGTH]> {
    let mut bytes = [0; LENGTH];
    getrandom::fill(&mut bytes).context("random bytes")?;
    Ok(bytes)
}

fn parse(text: &str) -> Option<Key> {
    let digits = text.as_bytes();
    if digits.len() != 2 * KEY || !digits.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    let bytes: Option<Vec<u8>> = digits.chunks(2).map(byte).collect();
    Some(Key(bytes?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, Permissions};

    #[test]
    fn a_key_that_was_made_can_be_read_and_is_not_made_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        Key::make(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let key = Key::read(&path).unwrap();
        assert_eq!(key, Key::read(&path).unwrap());
        assert!(Key::make(&path).is_err(), "it would be overwritten");
        assert_eq!(key, Key::read(&path).unwrap());
        let other = folder.path().join("other");
        Key::make(&other).unwrap();
        assert_ne!(key, Key::read(&other).unwrap());
        assert_eq!(format!("{key:?}"), "Key");
    }

    #[test]
    fn a_key_that_others_can_read_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        Key::make(&path).unwrap();
        for mode in [0o640, 0o604, 0o620] {
            fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            let why = Key::read(&path).unwrap_err().to_string();
            assert!(why.contains(&format!("mode {mode:o}")) && why.contains("chmod 600"), "{why}");
        }
    }

    #[test]
    fn malformed_keys_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        Key::make(&path).unwrap();
        let good = fs::read_to_string(&path).unwrap();
        for bad in ["", "secret", &good[1..], &format!("00{good}"), &good.replace(&good[..1], "+")]
        {
            fs::write(&path, bad).unwrap();
            assert!(Key::read(&path).unwrap_err().to_string().contains("--make-key"), "{bad}");
        }
        assert!(Key::read(&folder.path().join("none")).is_err());
    }
}
