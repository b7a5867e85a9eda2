//! Replies of a server: a code of three digits and lines of text (RFC 959 section 4.2).

use crate::line::Line;

/// A complete reply. A reply of several lines is represented by its last line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// The code, 100 to 699.
    pub code: u16,
    /// The text after the code and a space.
    pub text: String,
}

impl Reply {
    /// Returns true if a further reply to the same command follows.
    pub fn is_preliminary(&self) -> bool {
        self.code < 200
    }
}

/// Finds the last line of each reply.
#[derive(Debug, Default)]
pub struct Replies {
    /// The code of an unfinished reply of several lines.
    open: Option<u16>,
}

impl Replies {
    /// Returns the reply that `line` ends. Returns `None` if the reply continues, or if the line
    /// belongs to no reply.
    pub fn take(&mut self, line: &Line) -> Option<Reply> {
        let (code, separator, text) = split(&line.text)?;
        match (self.open, separator) {
            (Some(open), b' ') if code == open => self.open = None,
            (Some(_), _) => return None,
            (None, b'-') => {
                self.open = Some(code);
                return None;
            }
            (None, _) => {}
        }
        Some(Reply { code, text: String::from_utf8_lossy(text).into_owned() })
    }
}

/// Splits a line into code, separator and text. A code alone has an empty text.
fn split(text: &[u8]) -> Option<(u16, u8, &[u8])> {
    let (code, rest) = text.split_at_checked(3)?;
    if !matches!(code[0], b'1'..=b'6') || !code.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let number = code.iter().fold(0, |number, digit| number * 10 + u16::from(digit - b'0'));
    match rest {
        [] => Some((number, b' ', rest)),
        [separator @ (b' ' | b'-'), text @ ..] => Some((number, *separator, text)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn codes(text: &str) -> Vec<u16> {
        let mut replies = Replies::default();
        text.lines()
            .filter_map(|line| replies.take(&Line::from_text(line)))
            .map(|r| r.code)
            .collect()
    }

    #[test]
    fn a_reply_of_several_lines_ends_with_its_own_code() {
        assert_eq!(codes("211-Features\n EPSV\n211 End\n200 ok"), [211, 200]);
        // lines within the reply may look like replies
        assert_eq!(codes("230-Welcome\n227 (1,2,3,4,5,6)\n230-still\n230 in"), [230]);
    }

    #[test]
    fn a_code_may_stand_alone() {
        assert_eq!(codes("200\n"), [200]);
    }

    #[test]
    fn a_line_without_a_code_is_no_reply() {
        assert_eq!(codes("hello\n2000 x\n0 x\n99\n700 x\n22x y\n200\tok"), [0; 0]);
    }
}
