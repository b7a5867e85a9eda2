//! The shared secret of controller and agents: 32 random bytes. The file has them as 64 hexadecimal
//! digits, and only its owner may read it.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;

use anyhow::{Context, ensure};
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// The sizes of a key and of a code, in bytes.
pub const KEY: usize = 32;
pub const CODE: usize = 32;

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

    /// Returns the code (HMAC-SHA256, RFC 2104) of the concatenated parts.
    pub fn code(&self, parts: &[&[u8]]) -> [u8; CODE] {
        self.begun(parts).finalize().into_bytes().into()
    }

    /// Returns true if the code is that of the parts. The time of the comparison does not depend on
    /// the position of a difference.
    pub fn is_code(&self, code: &[u8], parts: &[&[u8]]) -> bool {
        self.begun(parts).verify_slice(code).is_ok()
    }

    fn begun(&self, parts: &[&[u8]]) -> Hmac<Sha256> {
        // RFC 2104 pads a key that is shorter than a block of the hash with zeros
        let mut block = [0; 64];
        block[..KEY].copy_from_slice(&self.0);
        let mut code = Hmac::<Sha256>::new(&block.into());
        parts.iter().for_each(|part| code.update(part));
        code
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

    /// Checks test case 2 of RFC 4231. Its key is shorter, so the test pads it with zeros as HMAC
    /// does.
    #[test]
    fn codes_are_those_of_the_rfc() {
        let mut bytes = [0; KEY];
        bytes[..4].copy_from_slice(b"Jefe");
        let key = Key::new(bytes);
        let code = key.code(&[b"what do ya want ", b"for nothing?"]);
        assert_eq!(code[..4], [0x5b, 0xdc, 0xc1, 0x46]);
        assert_eq!(code[28..], [0x64, 0xec, 0x38, 0x43]);
        assert!(key.is_code(&code, &[b"what do ya want for nothing?"]));
        assert!(!key.is_code(&code[..31], &[b"what do ya want for nothing?"]));
        assert!(!key.is_code(&code, &[b"what do ya want for nothing!"]));
    }
}
