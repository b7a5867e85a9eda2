//! Lines of a control connection, which is a Telnet connection (RFC 959 section 3.1, RFC 854).

use thiserror::Error;

/// Length limit of a line with its end, in bytes. RFC 959 names no limit; servers accept about as
/// much.
pub const LONGEST: usize = 4096;

const IAC: u8 = 255;
/// The first Telnet command with an option byte. The four are WILL, WONT, DO and DONT.
const WILL: u8 = 251;
/// The first Telnet command of two bytes.
const SE: u8 = 240;

/// An error that ends parsing of the stream. A parser that continued could find a command where the
/// server finds none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Malformed {
    /// A line has no end within the limit.
    #[error("a line of more than {LONGEST} bytes")]
    TooLong,
    /// A NUL does not follow a CR.
    #[error("a NUL in a line")]
    Nul,
    /// A CR is followed by a byte other than LF and NUL.
    #[error("a CR within a line")]
    BareReturn,
}

/// A complete line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// The bytes as received, with line end and Telnet commands.
    pub raw: Vec<u8>,
    /// The bytes without line end and Telnet commands.
    pub text: Vec<u8>,
}

impl Line {
    /// Creates a line to send.
    pub fn from_text(text: &str) -> Line {
        Line { raw: format!("{text}\r\n").into_bytes(), text: text.as_bytes().to_vec() }
    }

    /// Formats the line for logs, with `?` for each byte that is not printable ASCII.
    pub fn shown(&self) -> String {
        let printable = |byte: &u8| match byte {
            b' '..=b'~' => char::from(*byte),
            _ => '?',
        };
        self.text.iter().map(printable).collect()
    }
}

/// Splits a stream of bytes into lines.
#[derive(Debug, Default)]
pub struct Lines {
    waiting: Vec<u8>,
    /// Number of bytes of `waiting` that contain no line end.
    searched: usize,
}

impl Lines {
    /// Appends received bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        self.waiting.extend_from_slice(bytes);
    }

    /// Returns the next line; `None` until its end has arrived. A LF alone ends a line, too,
    /// because many clients send it and every server accepts it.
    ///
    /// # Errors
    /// Fails if a line is malformed. The stream has no further lines then, because the start of the
    /// next line is uncertain.
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

    /// Returns true if a line has arrived in part.
    pub fn is_within_line(&self) -> bool {
        !self.waiting.is_empty()
    }
}

/// Removes Telnet commands and the final CR from a line without its LF.
fn text(line: &[u8]) -> Result<Vec<u8>, Malformed> {
    let mut text = Vec::with_capacity(line.len());
    let mut bytes = line.iter().copied().peekable();
    while let Some(byte) = bytes.next() {
        match byte {
            IAC => match bytes.next() {
                Some(IAC) => text.push(IAC),
                Some(WILL..) => _ = bytes.next(),
                Some(SE..) | None => {}
                // NUL and CR are errors after an IAC, too
                Some(0) => return Err(Malformed::Nul),
                Some(b'\r') => return Err(Malformed::BareReturn),
                // not a Telnet command: the byte is text
                Some(other) => text.push(other),
            },
            b'\r' => match bytes.next() {
                // CR NUL is a CR in the text (RFC 854), for example in a file name
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
        assert_eq!(lines.next_line(), Ok(Some(Line::from_text("NOOP"))));
        assert!(!lines.is_within_line());
    }

    #[test]
    fn telnet_is_left_out_of_the_text_and_stays_in_the_line() {
        // a client interrupts a transfer with IP, DM and then ABOR
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
    fn ambiguous_lines_are_refused() {
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
