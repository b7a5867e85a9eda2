//! Framing of messages on the control connection: records that only the peer can have made, in the
//! order in which it made them.
//!
//! ```text
//! a record: length, 2 bytes, big-endian | encrypted bytes, at most 65,535
//! in the decrypted bytes: length, 4 bytes, big-endian | message
//! ```
//!
//! Noise counts the records of each direction and encrypts the count with each. So a record that is
//! lost, repeated, reordered or changed cannot be decrypted.

use snow::TransportState;

/// The longest message, in bytes: a histogram of times has up to some ten thousand buckets.
pub const LONGEST: usize = 4 << 20;

/// The size of the length of a message, in bytes.
const LENGTH: usize = 4;

/// The most bytes of an encrypted record, and the bytes that encryption adds (Noise, section 3).
const RECORD: usize = 65_535;
const TAG: usize = 16;

/// The reason for which received bytes are no message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// The length is above [`LONGEST`].
    #[error("a message of {0} bytes exceeds the limit of {LONGEST}")]
    TooLong(usize),
    /// The bytes cannot be decrypted.
    #[error("a message was modified on its way, or came out of order")]
    Forged,
    /// The peer has sent the message, but this program does not know such a message.
    #[error("a message is malformed")]
    Meaningless,
}

/// Frames the messages of one side, and extracts those of the other side from a stream of bytes.
pub struct Envelopes {
    encryption: TransportState,
    /// Received bytes that are not decrypted yet: less than a record, after [`Envelopes::open`].
    received: Vec<u8>,
    /// Decrypted bytes of messages that are not complete yet.
    decrypted: Vec<u8>,
}

impl Envelopes {
    /// Makes the envelopes of a connection on which no message was sent yet.
    pub fn new(encryption: TransportState) -> Envelopes {
        Envelopes { encryption, received: Vec::new(), decrypted: Vec::new() }
    }

    /// Returns the bytes to send for the next message.
    ///
    /// # Errors
    /// Fails if the message is longer than [`LONGEST`].
    pub fn seal(&mut self, message: &[u8]) -> Result<Vec<u8>, Malformed> {
        if message.len() > LONGEST {
            return Err(Malformed::TooLong(message.len()));
        }
        let plain = [&(message.len() as u32).to_be_bytes(), message].concat();
        let mut sealed = Vec::new();
        let mut record = [0; RECORD];
        for part in plain.chunks(RECORD - TAG) {
            let length = self.encryption.write_message(part, &mut record);
            let length = length.expect("a record has room, and 2^64 records are never sent");
            sealed.extend((length as u16).to_be_bytes());
            sealed.extend(&record[..length]);
        }
        Ok(sealed)
    }

    /// Appends received bytes.
    pub fn take(&mut self, bytes: &[u8]) {
        self.received.extend_from_slice(bytes);
    }

    /// Returns the next message. None if it is still incomplete.
    ///
    /// # Errors
    /// Fails if the message is too long, or if its bytes cannot be decrypted. The connection cannot
    /// be used after that.
    pub fn open(&mut self) -> Result<Option<Vec<u8>>, Malformed> {
        loop {
            if let Some(message) = self.complete()? {
                return Ok(Some(message));
            }
            if !self.decrypt()? {
                return Ok(None);
            }
        }
    }

    /// Returns the next message of the decrypted bytes.
    fn complete(&mut self) -> Result<Option<Vec<u8>>, Malformed> {
        let Some(&length) = self.decrypted.first_chunk::<LENGTH>() else { return Ok(None) };
        let size = u32::from_be_bytes(length) as usize;
        if size > LONGEST {
            return Err(Malformed::TooLong(size));
        }
        if self.decrypted.len() < LENGTH + size {
            return Ok(None);
        }
        let later = self.decrypted.split_off(LENGTH + size);
        let message = std::mem::replace(&mut self.decrypted, later);
        Ok(Some(message[LENGTH..].to_vec()))
    }

    /// Decrypts the next record. Returns false if it is still incomplete.
    fn decrypt(&mut self) -> Result<bool, Malformed> {
        let Some((&length, rest)) = self.received.split_first_chunk() else { return Ok(false) };
        let length = usize::from(u16::from_be_bytes(length));
        let Some(record) = rest.get(..length) else { return Ok(false) };
        let mut plain = [0; RECORD];
        let size = self.encryption.read_message(record, &mut plain);
        self.decrypted.extend(&plain[..size.map_err(|_| Malformed::Forged)?]);
        self.received.drain(..size_of::<u16>() + length);
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::super::handshake::{Greeting, Hello};
    use super::super::key::Key;
    use super::*;

    fn pair() -> (Envelopes, Envelopes) {
        let hello = Hello::new([1; 32]);
        let key = Key::new([9; 32]);
        let mut controller = Greeting::for_controller(&key, &hello, &hello);
        let mut agent = Greeting::for_agent(&key, &hello, &hello);
        agent.check(&controller.proof()).unwrap();
        controller.check(&agent.proof()).unwrap();
        (Envelopes::new(controller.encryption()), Envelopes::new(agent.encryption()))
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
        let length = pair().0.seal(b"first").unwrap().len();
        for place in size_of::<u16>()..length {
            let (mut sealer, mut opener) = pair();
            let mut changed = sealer.seal(b"first").unwrap();
            changed[place] ^= 1;
            opener.take(&changed);
            assert_eq!(opener.open(), Err(Malformed::Forged), "byte {place}");
        }
        let (mut sealer, mut opener) = pair();
        let first = sealer.seal(b"first").unwrap();
        opener.take(&[&first[..], &first].concat());
        assert_eq!(opener.open(), Ok(Some(b"first".to_vec())));
        assert_eq!(opener.open(), Err(Malformed::Forged), "repeated");
        let (mut sealer, mut opener) = pair();
        sealer.seal(b"first").unwrap();
        opener.take(&sealer.seal(b"later").unwrap());
        assert_eq!(opener.open(), Err(Malformed::Forged), "the one before is missing");
        let (_, mut stranger) = pair();
        stranger.take(&first);
        assert_eq!(stranger.open(), Err(Malformed::Forged), "of another connection");
    }

    #[test]
    fn a_message_does_not_contain_its_text() {
        let (mut sealer, _) = pair();
        let sealed = sealer.seal(b"plain text").unwrap();
        assert!(!sealed.windows(5).any(|bytes| bytes == b"plain"));
    }

    #[test]
    fn a_long_message_takes_several_records_and_a_longer_one_is_refused() {
        let (mut sealer, mut opener) = pair();
        assert!(sealer.seal(&vec![0; LONGEST + 1]).is_err());
        opener.take(&sealer.seal(&vec![7; LONGEST]).unwrap());
        assert_eq!(opener.open().unwrap().unwrap().len(), LONGEST);
        let mut record = [0; 64];
        let length = sealer.encryption.write_message(&[0xff; LENGTH], &mut record).unwrap();
        opener.take(&(length as u16).to_be_bytes());
        opener.take(&record[..length]);
        assert_eq!(opener.open(), Err(Malformed::TooLong(u32::MAX as usize)));
    }
}
