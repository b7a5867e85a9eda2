//! Lines of a control connection, which is a Telnet connection (RFC 959 section 3.1, RFC 854).

use thiserror::Error;

/// Longest line, its end included, in bytes. RFC 959 names no limit; servers take about this much.
pub const LONGEST: usize = 4096;

const IAC: u8 = 255;
/// The first of the commands of Telnet that an option follows: WILL, WONT, DO, DONT.
const WILL: u8 = 251;
/// Before WILL come the commands of two bytes, down to SE.
const SE: u8 = 240;

/// What is no line of FTP. Whoever reads on could take for a command what the server does not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Malformed {
    /// No end of line where one must have been.
    #[error("a line of more than {LONGEST} bytes")]
    TooLong,
    /// A NUL that does not follow a CR.
    #[error("a NUL in a line")]
    Nul,
    /// A CR before anything but LF or NUL.
    #[error("a CR within a line")]
    BareReturn,
}

/// A whole line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// As it came, with its end and the commands of Telnet in it.
    pub raw: Vec<u8>,
    /// Without both.
    pub text: Vec<u8>,
}

impl Line {
    /// A line of our own making.
    pub fn of(text: &str) -> Line {
        Line { raw: format!("{text}\r\n").into_bytes(), text: text.as_bytes().to_vec() }
    }

    /// For people: what is not ASCII is replaced.
    pub fn shown(&self) -> String {
        let printable = |byte: &u8| match byte {
            b' '..=b'~' => char::from(*byte),
            _ => '?',
        };
        self.text.iter().map(printable).collect()
    }
}

/// Cuts a stream of bytes into lines.
#[derive(Debug, Default)]
pub struct Lines {
    waiting: Vec<u8>,
    /// So many bytes of `waiting` were searched for an end.
    searched: usize,
}

impl Lines {
    /// Takes what came next.
    pub fn push(&mut self, bytes: &[u8]) {
        self.waiting.extend_from_slice(bytes);
    }

    /// The next line, `None` until its end has come. A LF alone ends one, too: many clients know no
    /// other end, and every server takes it.
    ///
    /// # Errors
    /// The connection has no further lines: where the next one begins nobody can tell.
    pub fn next_line(&mut self) -> Result<Option<Line>, Malformed> {
        let end = self.waiting[self.searched..].iter().position(|byte| *byte == b'\n');
        let Some(end) = end.map(|end| self.searched + end + 1) else {
            self.searched = self.waiting.len();
            return if self.searched > LONGEST { Err(Malformed::TooLong) } else { Ok(None) };
        };
        if end > LONGEST {
            return Err(Malformed::TooLong);
        }
        self.searched = 0;
        let raw: Vec<u8> = self.waiting.drain(..end).collect();
        let text = text(&raw[..end - 1])?;
        Ok(Some(Line { raw, text }))
    }

    /// Whether bytes wait for the end of their line.
    pub fn is_within_line(&self) -> bool {
        !self.waiting.is_empty()
    }
}

/// A line without its LF: what is left of it without Telnet's commands and the CR.
fn text(line: &[u8]) -> Result<Vec<u8>, Malformed> {
    let mut text = Vec::with_capacity(line.len());
    let mut bytes = line.iter().copied().peekable();
    while let Some(byte) = bytes.next() {
        match byte {
            IAC => match bytes.next() {
                Some(IAC) => text.push(IAC),
                Some(WILL..) => _ = bytes.next(),
                Some(SE..) | None => {}
                // no IAC makes one of these a part of the text
                Some(0) => return Err(Malformed::Nul),
                Some(b'\r') => return Err(Malformed::BareReturn),
                // no command of Telnet: the byte stands for itself
                Some(other) => text.push(other),
            },
            b'\r' => match bytes.next() {
                // a CR that is meant (RFC 854), in the name of a file
                Some(0) => text.push(b'\r'),
                Some(_) => return Err(Malformed::BareReturn),
                None => {}
            },
            0 => return Err(Malformed::Nul),
            byte => text.push(byte),
        }
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(bytes: &[u8]) -> Result<Vec<Vec<u8>>, Malformed> {
        let mut lines = Lines::default();
        lines.push(bytes);
        let mut found = Vec::new();
        while let Some(line) = lines.next_line()? {
            found.push(line.text);
        }
        Ok(found)
    }

    #[test]
    fn a_line_ends_with_either_end() {
        assert_eq!(
            lines(b"USER a\r\nPASS b\nQUI"),
            Ok(vec![b"USER a".to_vec(), b"PASS b".to_vec()])
        );
    }

    #[test]
    fn a_line_may_come_byte_by_byte() {
        let mut lines = Lines::default();
        for byte in b"NOOP\r" {
            lines.push(&[*byte]);
            assert_eq!(lines.next_line(), Ok(None));
        }
        lines.push(b"\n");
        assert_eq!(lines.next_line(), Ok(Some(Line::of("NOOP"))));
        assert!(!lines.is_within_line());
    }

    #[test]
    fn telnet_is_left_out_of_the_text_and_stays_in_the_line() {
        // how a client interrupts: IP, DM, then ABOR
        let mut lines = Lines::default();
        lines.push(b"\xff\xf4\xff\xf2ABOR\r\n");
        let line = lines.next_line().unwrap().unwrap();
        assert_eq!((line.text, line.raw.len()), (b"ABOR".to_vec(), 10));
    }

    #[test]
    fn an_option_of_telnet_takes_its_byte_along() {
        assert_eq!(lines(b"\xff\xfd\x06STAT\r\n"), Ok(vec![b"STAT".to_vec()]));
        assert_eq!(lines(b"CWD \xff\xff\r\n"), Ok(vec![b"CWD \xff".to_vec()]));
    }

    #[test]
    fn two_readings_of_a_line_are_none() {
        assert_eq!(lines(b"PORT 1,2\rPASV\n"), Err(Malformed::BareReturn));
        assert_eq!(lines(b"PA\0SV\r\n"), Err(Malformed::Nul));
        assert_eq!(lines(b"RETR a\xff\0b\r\n"), Err(Malformed::Nul));
        assert_eq!(lines(b"RETR a\xff\rb\r\n"), Err(Malformed::BareReturn));
        assert_eq!(lines(b"RETR a\r\0b\r\n"), Ok(vec![b"RETR a\rb".to_vec()]));
    }

    #[test]
    fn a_line_is_bounded_whether_or_not_it_ends() {
        assert_eq!(lines(&[b'x'; LONGEST + 1]), Err(Malformed::TooLong));
        let mut long = vec![b'x'; LONGEST];
        long.push(b'\n');
        assert_eq!(lines(&long), Err(Malformed::TooLong));
        long.remove(0);
        assert_eq!(lines(&long).map(|lines| lines.len()), Ok(1));
    }
}
