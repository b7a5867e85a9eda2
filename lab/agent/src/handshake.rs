//! The handshake of controller and agent. Each sends a random number, and then a code over both
//! numbers that only the owner of the key can make. The keys for later messages are derived from
//! the same numbers.
//!
//! ```text
//! agent                                       controller
//! hello: version, number  ------------------>
//!                         <------------------  hello: version, number; its code
//! verdict; its code       ------------------>
//! ```
//!
//! The controller proves first that it has the key, so an agent reveals only its version to a
//! stranger. All parts have a fixed length.

use std::fmt;

use super::key::{CODE, Key};

/// The first bytes of a hello. The last one is the number of the protocol.
const MAGIC: [u8; 8] = *b"fwlab-a\x01";

/// The sizes of a random number and of a version, in bytes. A version is padded with zeros.
const NUMBER: usize = 32;
const VERSION: usize = 24;

/// The size of a hello, in bytes.
pub const HELLO: usize = MAGIC.len() + VERSION + NUMBER;
/// The size of a controller's hello with its code, in bytes.
pub const OPENING: usize = HELLO + CODE;
/// The size of a verdict with the agent's code, in bytes.
pub const VERDICT: usize = 1 + CODE;

/// The version that both sides must have.
const OWN_VERSION: &str = env!("CARGO_PKG_VERSION");
const _: () = assert!(OWN_VERSION.len() <= VERSION);

/// The first message of each side: magic, version and random number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hello([u8; HELLO]);

/// The reason for which a handshake failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The peer is not fwlab, or speaks another protocol.
    #[error("the peer does not speak the protocol of this version of fwlab agent")]
    Stranger,
    /// The peer has this other version.
    #[error("the peer is fwlab {0}, this is fwlab {OWN_VERSION}: install one version on both")]
    Version(String),
    /// The peer has another key.
    #[error("the peer has another key: copy the key file to both ends")]
    Key,
}

impl Hello {
    /// Makes the hello of this program with a random number.
    pub fn new(number: [u8; NUMBER]) -> Hello {
        let mut bytes = [0; HELLO];
        let (magic, rest) = bytes.split_at_mut(MAGIC.len());
        magic.copy_from_slice(&MAGIC);
        rest[..OWN_VERSION.len()].copy_from_slice(OWN_VERSION.as_bytes());
        rest[VERSION..].copy_from_slice(&number);
        Hello(bytes)
    }

    /// Returns the bytes of the hello.
    pub fn bytes(&self) -> &[u8; HELLO] {
        &self.0
    }

    /// Reads the peer's hello.
    ///
    /// # Errors
    /// Fails if the bytes are no hello, or if the version differs from this program's.
    pub fn read(bytes: &[u8; HELLO]) -> Result<Hello, Refusal> {
        let (magic, rest) = bytes.split_at(MAGIC.len());
        if magic != MAGIC {
            return Err(Refusal::Stranger);
        }
        let version = rest[..VERSION].split(|&byte| byte == 0).next().unwrap_or_default();
        if version != OWN_VERSION.as_bytes() {
            // escaped, because the version is printed on a terminal
            return Err(Refusal::Version(version.escape_ascii().to_string()));
        }
        Ok(Hello(*bytes))
    }
}

/// A side of the control connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// The side that gives orders.
    Controller,
    /// The side that carries out orders.
    Agent,
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if *self == Side::Controller { "controller" } else { "agent" })
    }
}

/// The two hellos with the key, from which all codes and keys of the connection are derived.
pub struct Greeting<'k> {
    key: &'k Key,
    agent: Hello,
    controller: Hello,
}

impl<'k> Greeting<'k> {
    /// Makes the greeting of both hellos.
    pub fn new(key: &'k Key, agent: Hello, controller: Hello) -> Greeting<'k> {
        Greeting { key, agent, controller }
    }

    /// Returns the code by which a side proves that it has the key.
    pub fn code(&self, of: Side) -> [u8; CODE] {
        self.made(&format!("{of} proves"))
    }

    /// Checks the code of a side.
    ///
    /// # Errors
    /// Fails if the code does not match.
    pub fn check(&self, of: Side, code: &[u8]) -> Result<(), Refusal> {
        let label = format!("{of} proves");
        let is = self.key.is_code(code, &[label.as_bytes(), &self.agent.0, &self.controller.0]);
        if is { Ok(()) } else { Err(Refusal::Key) }
    }

    /// Returns the key for all later messages of a side.
    pub fn message_key(&self, of: Side) -> Key {
        Key::new(self.made(&format!("{of} speaks")))
    }

    fn made(&self, label: &str) -> [u8; CODE] {
        self.key.code(&[label.as_bytes(), &self.agent.0, &self.controller.0])
    }
}

/// Returns an agent's verdict on a controller: a byte for the result, and the agent's code, which
/// is zero if the agent refuses.
pub fn verdict(greeting: Result<&Greeting<'_>, &Refusal>) -> [u8; VERDICT] {
    let mut bytes = [0; VERDICT];
    match greeting {
        Ok(greeting) => bytes[1..].copy_from_slice(&greeting.code(Side::Agent)),
        Err(Refusal::Stranger) => bytes[0] = 1,
        Err(Refusal::Version(_)) => bytes[0] = 2,
        Err(Refusal::Key) => bytes[0] = 3,
    }
    bytes
}

/// Reads an agent's verdict.
///
/// # Errors
/// Fails if the agent refuses, or if its code shows that it does not have the key.
pub fn read_verdict(bytes: &[u8; VERDICT], greeting: &Greeting<'_>) -> Result<(), Refusal> {
    match bytes[0] {
        0 => greeting.check(Side::Agent, &bytes[1..]),
        3 => Err(Refusal::Key),
        _ => Err(Refusal::Stranger),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn greeting(key: &Key) -> Greeting<'_> {
        Greeting::new(key, Hello::new([1; NUMBER]), Hello::new([2; NUMBER]))
    }

    #[test]
    fn a_peer_with_the_key_is_accepted() {
        let key = Key::new([7; 32]);
        let mine = greeting(&key);
        mine.check(Side::Controller, &greeting(&key).code(Side::Controller)).unwrap();
        read_verdict(&verdict(Ok(&greeting(&key))), &mine).unwrap();
        let voices = [Side::Controller, Side::Agent].map(|side| mine.message_key(side));
        assert_ne!(voices[0], voices[1]);
    }

    #[test]
    fn a_peer_with_another_key_is_refused() {
        let keys = [Key::new([7; 32]), Key::new([8; 32])];
        let mine = greeting(&keys[0]);
        let theirs = greeting(&keys[1]);
        assert_eq!(mine.check(Side::Controller, &theirs.code(Side::Controller)), Err(Refusal::Key));
        assert_eq!(read_verdict(&verdict(Ok(&theirs)), &mine), Err(Refusal::Key));
        assert_eq!(read_verdict(&verdict(Err(&Refusal::Key)), &mine), Err(Refusal::Key));
    }

    #[test]
    fn codes_are_of_one_side_and_one_connection() {
        let key = Key::new([7; 32]);
        let mine = greeting(&key);
        assert!(mine.check(Side::Agent, &mine.code(Side::Controller)).is_err(), "reflected");
        let later = Greeting::new(&key, Hello::new([3; NUMBER]), Hello::new([2; NUMBER]));
        assert!(later.check(Side::Controller, &mine.code(Side::Controller)).is_err(), "replayed");
        assert_ne!(later.message_key(Side::Agent), mine.message_key(Side::Agent));
    }

    #[test]
    fn another_version_is_named() {
        let hello = Hello::new([1; NUMBER]);
        assert_eq!(Hello::read(hello.bytes()), Ok(hello.clone()));
        let mut other = *hello.bytes();
        other[MAGIC.len()..MAGIC.len() + 6].copy_from_slice(b"9.9\x1b[m");
        let refusal = Hello::read(&other).unwrap_err();
        assert!(refusal.to_string().contains("fwlab 9.9\\x1b[m, this is"), "{refusal}");
        assert_eq!(Hello::read(&[0; HELLO]), Err(Refusal::Stranger));
        let mut later = *hello.bytes();
        later[7] += 1;
        assert_eq!(Hello::read(&later), Err(Refusal::Stranger));
    }
}
