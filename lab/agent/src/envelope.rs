//! Framing of messages on a connection: a length, the message, and a code. The code proves that the
//! owner of the key sent the message, and that it is the next one.
//!
//! ```text
//! length, 4 bytes, big-endian | message | HMAC-SHA256 of number (8 bytes), length and message
//! ```
//!
//! The number is not sent. Each side counts the messages of each direction, so a message that is
//! lost, repeated, reordered or changed fails the check of the code.

use super::key::{CODE, Key};

/// The longest message, in bytes: a histogram of times has up to some ten thousand buckets.
pub const LONGEST: usize = 4 << 20;

/// The size of the length field, in bytes.
const LENGTH: usize = 4;

/// The reason for which received bytes are no message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// The length is above [`LONGEST`].
    #[error("a message of {0} bytes exceeds the limit of {LONGEST}")]
    TooLong(usize),
    /// The code does not match.
    #[error("a message was modified on its way, or came out of order")]
    Forged,
    /// The code matches, but this program does not know such a message.
    #[error("a message is malformed")]
    Meaningless,
}

/// Frames the messages of one side for sending.
pub struct Sealer {
    key: Key,
    said: u64,
}

impl Sealer {
    /// Makes the sealer of a side that has sent no message yet.
    pub fn new(key: Key) -> Sealer {
        Sealer { key, said: 0 }
    }

    /// Returns the bytes to send for the next message.
    ///
    /// # Errors
    /// Fails if the message is longer than [`LONGEST`].
    pub fn seal(&mut self, message: &[u8]) -> Result<Vec<u8>, Malformed> {
        if message.len() > LONGEST {
            return Err(Malformed::TooLong(message.len()));
        }
        let length = (message.len() as u32).to_be_bytes();
        let code = self.key.code(&[&self.said.to_be_bytes(), &length, message]);
        self.said += 1;
        Ok([&length, message, &code].concat())
    }
}

/// Extracts the messages of one side from a stream of bytes.
pub struct Opener {
    key: Key,
    heard: u64,
    rest: Vec<u8>,
}

impl Opener {
    /// Makes the opener for a side that has sent no message yet.
    pub fn new(key: Key) -> Opener {
        Opener { key, heard: 0, rest: Vec::new() }
    }

    /// Appends received bytes.
    pub fn take(&mut self, bytes: &[u8]) {
        self.rest.extend_from_slice(bytes);
    }

    /// Returns the next message. None if it is still incomplete.
    ///
    /// # Errors
    /// Fails if the message is too long, or if its code does not match. The stream cannot be used
    /// after that.
    pub fn open(&mut self) -> Result<Option<Vec<u8>>, Malformed> {
        let Some(&length) = self.rest.first_chunk::<LENGTH>() else { return Ok(None) };
        let size = u32::from_be_bytes(length) as usize;
        if size > LONGEST {
            return Err(Malformed::TooLong(size));
        }
        let whole = LENGTH + size + CODE;
        if self.rest.len() < whole {
            return Ok(None);
        }
        let later = self.rest.split_off(whole);
        let envelope = std::mem::replace(&mut self.rest, later);
        let (message, code) = envelope[LENGTH..].split_at(size);
        if !self.key.is_code(code, &[&self.heard.to_be_bytes(), &length, message]) {
            return Err(Malformed::Forged);
        }
        self.heard += 1;
        Ok(Some(message.to_vec()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair() -> (Sealer, Opener) {
        let key = Key::new([9; 32]);
        (Sealer::new(key.clone()), Opener::new(key))
    }

    #[test]
    fn messages_come_out_in_whatever_pieces_they_come() {
        let (mut sealer, mut opener) = pair();
        let messages = [&b"one"[..], b"", b"three"];
        let bytes: Vec<u8> =
            messages.iter().flat_map(|message| sealer.seal(message).unwrap()).collect();
        let mut came = Vec::new();
        for byte in bytes {
            opener.take(&[byte]);
            came.extend(opener.open().unwrap());
        }
        assert_eq!(came, messages);
        assert_eq!(opener.open(), Ok(None));
    }

    #[test]
    fn changed_repeated_or_missing_messages_are_refused() {
        let (mut sealer, _) = pair();
        let [first, second] = [b"first", b"later"].map(|message| sealer.seal(message).unwrap());
        for place in 4..first.len() {
            let (_, mut opener) = pair();
            let mut changed = first.clone();
            changed[place] ^= 1;
            opener.take(&changed);
            assert_eq!(opener.open(), Err(Malformed::Forged), "byte {place}");
        }
        let (_, mut opener) = pair();
        opener.take(&[&first[..], &first].concat());
        assert_eq!(opener.open(), Ok(Some(b"first".to_vec())));
        assert_eq!(opener.open(), Err(Malformed::Forged), "repeated");
        let (_, mut opener) = pair();
        opener.take(&second);
        assert_eq!(opener.open(), Err(Malformed::Forged), "the one before is missing");
        let mut stranger = Opener::new(Key::new([8; 32]));
        stranger.take(&first);
        assert_eq!(stranger.open(), Err(Malformed::Forged));
    }

    #[test]
    fn a_long_message_is_refused_before_it_has_come() {
        let (mut sealer, mut opener) = pair();
        assert!(sealer.seal(&vec![0; LONGEST + 1]).is_err());
        opener.take(&u32::MAX.to_be_bytes());
        assert_eq!(opener.open(), Err(Malformed::TooLong(u32::MAX as usize)));
        let (mut sealer, mut opener) = pair();
        opener.take(&sealer.seal(&vec![7; LONGEST]).unwrap());
        assert_eq!(opener.open().unwrap().unwrap().len(), LONGEST);
    }
}
