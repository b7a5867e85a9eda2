//! How controller and agent know each other: each sends a number that nobody could know before, and
//! then the code that only who has the key can make of both numbers. What is said afterwards has
//! keys made of the same.
//!
//! ```text
//! agent                                       controller
//! hello: version, number  ------------------>
//!                         <------------------  hello: version, number; its code
//! verdict; its code       ------------------>
//! ```
//!
//! The controller shows first that it has the key: a stranger hears from an agent no more than its
//! version. All parts have a fixed length.

use std::fmt;

use super::key::{CODE, Key};

/// What a hello begins with; its last byte is the number of this protocol.
const MAGIC: [u8; 8] = *b"fwlab-a\x01";

/// Bytes of a number that is drawn, and of a version, filled up with zeros.
const NUMBER: usize = 32;
const VERSION: usize = 24;

/// Bytes of a hello.
pub const HELLO: usize = MAGIC.len() + VERSION + NUMBER;
/// Bytes of a controller's hello with its code.
pub const OPENING: usize = HELLO + CODE;
/// Bytes of a verdict with the agent's code.
pub const VERDICT: usize = 1 + CODE;

/// The version that both have to be of.
const OWN_VERSION: &str = env!("CARGO_PKG_VERSION");
const _: () = assert!(OWN_VERSION.len() <= VERSION);

/// What each side says first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hello([u8; HELLO]);

/// Why the other side is not spoken to.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// It is no fwlab, or one that speaks otherwise.
    #[error("it does not speak the protocol of this version of fwlab agent")]
    Stranger,
    /// Not the same program.
    #[error("it is fwlab {0}, this is {OWN_VERSION}: both ends have to be of one version")]
    Version(String),
    /// Not the same key.
    #[error("it has another key")]
    Key,
}

impl Hello {
    /// A hello of this program with a number that was drawn for it.
    pub fn new(number: [u8; NUMBER]) -> Hello {
        let mut bytes = [0; HELLO];
        let (magic, rest) = bytes.split_at_mut(MAGIC.len());
        magic.copy_from_slice(&MAGIC);
        rest[..OWN_VERSION.len()].copy_from_slice(OWN_VERSION.as_bytes());
        rest[VERSION..].copy_from_slice(&number);
        Hello(bytes)
    }

    /// Its bytes.
    pub fn bytes(&self) -> &[u8; HELLO] {
        &self.0
    }

    /// Reads what claims to be one, of the same version.
    ///
    /// # Errors
    /// It is none, or of another version.
    pub fn read(bytes: &[u8; HELLO]) -> Result<Hello, Refusal> {
        let (magic, rest) = bytes.split_at(MAGIC.len());
        if magic != MAGIC {
            return Err(Refusal::Stranger);
        }
        let version = rest[..VERSION].split(|&byte| byte == 0).next().unwrap_or_default();
        if version != OWN_VERSION.as_bytes() {
            // it goes to somebody's terminal
            return Err(Refusal::Version(version.escape_ascii().to_string()));
        }
        Ok(Hello(*bytes))
    }
}

/// One of the two sides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// Who gives orders.
    Controller,
    /// Who carries them out.
    Agent,
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if *self == Side::Controller { "controller" } else { "agent" })
    }
}

/// Both hellos, and what follows from them with the key.
pub struct Greeting<'k> {
    key: &'k Key,
    agent: Hello,
    controller: Hello,
}

impl<'k> Greeting<'k> {
    /// Of what both have said.
    pub fn new(key: &'k Key, agent: Hello, controller: Hello) -> Greeting<'k> {
        Greeting { key, agent, controller }
    }

    /// The code by which a side shows that it has the key.
    pub fn code(&self, of: Side) -> [u8; CODE] {
        self.made(&format!("{of} proves"))
    }

    /// Whether that is the code of a side.
    ///
    /// # Errors
    /// It is not.
    pub fn check(&self, of: Side, code: &[u8]) -> Result<(), Refusal> {
        let label = format!("{of} proves");
        let is = self.key.is_code(code, &[label.as_bytes(), &self.agent.0, &self.controller.0]);
        if is { Ok(()) } else { Err(Refusal::Key) }
    }

    /// The key of all that a side will say.
    pub fn voice(&self, of: Side) -> Key {
        Key::new(self.made(&format!("{of} speaks")))
    }

    fn made(&self, label: &str) -> [u8; CODE] {
        self.key.code(&[label.as_bytes(), &self.agent.0, &self.controller.0])
    }
}

/// What an agent says of a controller: a byte, and its code, which is zero if it refuses.
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

/// Reads a verdict.
///
/// # Errors
/// The agent refuses, or is none that has the key.
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
    fn who_has_the_key_is_known() {
        let key = Key::new([7; 32]);
        let mine = greeting(&key);
        mine.check(Side::Controller, &greeting(&key).code(Side::Controller)).unwrap();
        read_verdict(&verdict(Ok(&greeting(&key))), &mine).unwrap();
        let voices = [Side::Controller, Side::Agent].map(|side| mine.voice(side));
        assert_ne!(voices[0], voices[1]);
    }

    #[test]
    fn who_has_another_key_is_not() {
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
        assert_ne!(later.voice(Side::Agent), mine.voice(Side::Agent));
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
