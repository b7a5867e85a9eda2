//! The texts of a rule set: the pf.conf, and the files that it includes.

use std::cell::OnceCell;
use std::sync::Arc;

/// A text and the position of its reader.
#[derive(Clone)]
pub struct Source {
    /// Name in messages. For an included file, the name that `include` gives.
    pub name: Arc<str>,
    /// True for an included text.
    pub included: bool,
    /// Line being read, from 1; 0 in front of the first line of an included file.
    pub line: u32,
    text: Arc<str>,
    position: usize,
    /// Bytes to read before the text, in reverse order: returned bytes and values of macros. `None`
    /// marks the end of a macro's value.
    ahead: Vec<Option<u8>>,
    /// True if the end of the text has been reported as the end of a line.
    ended: bool,
    /// Byte offset of each line.
    lines: OnceCell<Vec<usize>>,
}

/// The result of reading one byte.
pub enum Read {
    /// The next byte.
    Byte(u8),
    /// The value of the macro being read ends.
    ExpansionEnds,
    /// The text ends.
    End,
}

impl Source {
    /// Returns a source at the beginning of `text`.
    pub fn new(name: &str, text: &str) -> Self {
        Source {
            name: name.into(),
            included: false,
            line: 1,
            text: text.into(),
            position: 0,
            ahead: Vec::new(),
            ended: false,
            lines: OnceCell::new(),
        }
    }

    /// Returns an included source, which begins with the end of the line of the `include`
    /// statement.
    pub fn included(name: &str, text: &str) -> Self {
        Source { included: true, line: 0, ahead: vec![Some(b'\n')], ..Source::new(name, text) }
    }

    /// Reads the next byte.
    pub fn read(&mut self) -> Read {
        match self.ahead.pop() {
            Some(Some(byte)) => return Read::Byte(byte),
            Some(None) => return Read::ExpansionEnds,
            None => {}
        }
        match self.text.as_bytes().get(self.position) {
            Some(byte) => {
                self.position += 1;
                Read::Byte(*byte)
            }
            None => Read::End,
        }
    }

    /// Reads bytes while `wanted` is true, at most `most` bytes. Reads none while bytes precede the
    /// text.
    pub fn run(&mut self, wanted: impl Fn(u8) -> bool, most: usize) -> &[u8] {
        let start = self.position;
        if self.ahead.is_empty() {
            let rest = self.text.as_bytes()[start..].iter().take(most);
            self.position += rest.take_while(|byte| wanted(**byte)).count();
        }
        &self.text.as_bytes()[start..self.position]
    }

    /// Returns the last byte, to be read again.
    pub fn unread(&mut self, byte: u8) {
        let before = self.position.wrapping_sub(1);
        match self.text.as_bytes().get(before) {
            // in most cases the byte comes from the text
            Some(last) if self.ahead.is_empty() && *last == byte => self.position = before,
            _ => self.ahead.push(Some(byte)),
        }
    }

    /// Inserts the value of a macro before the remaining text.
    pub fn expand(&mut self, value: &str) {
        self.ahead.push(None);
        self.ahead.extend(value.bytes().rev().map(Some));
    }

    /// Returns true at the first call, because the end of the text also ends a line.
    pub fn ends_line(&mut self) -> bool {
        !std::mem::replace(&mut self.ended, true)
    }

    /// Skips the remaining text.
    pub fn stop(&mut self) {
        self.position = self.text.len();
        self.ahead.clear();
    }

    /// Continues at a line of the text, given by byte offset and number.
    pub fn move_to(&mut self, position: usize, line: u32) {
        self.ahead.clear();
        (self.position, self.line) = (position, line);
    }

    /// Returns the number of bytes of the text that were read and not returned.
    pub fn offset(&self) -> usize {
        self.position.saturating_sub(self.ahead.len())
    }

    /// Reads the remaining bytes of the non-ASCII character that begins at the last byte, and
    /// returns it.
    pub fn rest_of_character(&mut self) -> Option<char> {
        let character = self.text.get(self.position.checked_sub(1)?..)?.chars().next()?;
        self.position += character.len_utf8() - 1;
        Some(character)
    }

    /// Returns the line that contains `offset`, and the column of `offset` in characters, from 1.
    pub fn line_at(&self, offset: usize) -> (&str, usize) {
        let offset = (0..=offset.min(self.text.len()))
            .rev()
            .find(|at| self.text.is_char_boundary(*at))
            .unwrap_or_default();
        let start = self.text[..offset].rfind('\n').map_or(0, |end| end + 1);
        let end = self.text[offset..].find('\n').map_or(self.text.len(), |n| offset + n);
        (&self.text[start..end], self.text[start..offset].chars().count() + 1)
    }

    /// Returns the line with number `line`, from 1; empty if there is none.
    pub fn numbered_line(&self, line: u32) -> &str {
        let starts = self.lines.get_or_init(|| {
            let ends = self.text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
            std::iter::once(0).chain(ends.map(|(index, _)| index + 1)).collect()
        });
        let index = line.saturating_sub(1) as usize;
        let Some(start) = starts.get(index) else {
            return "";
        };
        let end = starts.get(index + 1).map_or(self.text.len(), |next| next - 1);
        &self.text[*start..end]
    }

    /// Returns the number of characters in `bytes` bytes from `offset` on.
    pub fn characters(&self, offset: usize, bytes: usize) -> usize {
        self.text.get(offset..offset + bytes).map_or(bytes, |text| text.chars().count())
    }
}
