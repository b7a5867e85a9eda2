//! The texts a rule set is read from: the pf.conf itself, and the files it includes while they are
//! being read.

use std::cell::OnceCell;
use std::sync::Arc;

/// One text.
#[derive(Clone)]
pub struct Source {
    /// Its name in messages; of an included file as `include` has it.
    pub name: Arc<str>,
    /// Whether it is an included one.
    pub included: bool,
    /// Line that is being read, from 1; 0 in front of the first line of an included file.
    pub line: u32,
    text: Arc<str>,
    position: usize,
    /// What comes before the rest of the text, last first: bytes that were read too far, the value
    /// of a macro and, as `None`, the end of such a value.
    ahead: Vec<Option<u8>>,
    /// The end of the text counts as the end of a line once.
    ended: bool,
    /// Where each line begins.
    lines: OnceCell<Vec<usize>>,
}

/// What reading one byte gives.
pub enum Read {
    /// A byte.
    Byte(u8),
    /// The value of the macro that was being read ends here.
    ExpansionEnds,
    /// The text ends here.
    End,
}

impl Source {
    /// A source at the beginning of `text`.
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

    /// An included one: it begins with the end of the line that its `include` is on.
    pub fn included(name: &str, text: &str) -> Self {
        Source { included: true, line: 0, ahead: vec![Some(b'\n')], ..Source::new(name, text) }
    }

    /// The next byte.
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

    /// The bytes up to the first one that is not `wanted`, at most so many; none if something comes
    /// before the rest of the text.
    pub fn run(&mut self, wanted: impl Fn(u8) -> bool, most: usize) -> &[u8] {
        let start = self.position;
        if self.ahead.is_empty() {
            let rest = self.text.as_bytes()[start..].iter().take(most);
            self.position += rest.take_while(|byte| wanted(**byte)).count();
        }
        &self.text.as_bytes()[start..self.position]
    }

    /// Gives back a byte that was read too far.
    pub fn unread(&mut self, byte: u8) {
        let before = self.position.wrapping_sub(1);
        match self.text.as_bytes().get(before) {
            // nearly always: it is where the text is read
            Some(last) if self.ahead.is_empty() && *last == byte => self.position = before,
            _ => self.ahead.push(Some(byte)),
        }
    }

    /// Puts the value of a macro in front of the rest.
    pub fn expand(&mut self, value: &str) {
        self.ahead.push(None);
        self.ahead.extend(value.bytes().rev().map(Some));
    }

    /// True the first time the end of the text is met: it is the end of a line then.
    pub fn ends_line(&mut self) -> bool {
        !std::mem::replace(&mut self.ended, true)
    }

    /// Leaves out the rest.
    pub fn stop(&mut self) {
        self.position = self.text.len();
        self.ahead.clear();
    }

    /// Goes on at a line of the text, whose number it is.
    pub fn move_to(&mut self, position: usize, line: u32) {
        self.ahead.clear();
        (self.position, self.line) = (position, line);
    }

    /// How many bytes of the text were read and not given back.
    pub fn offset(&self) -> usize {
        self.position.saturating_sub(self.ahead.len())
    }

    /// The character that the byte before the present one begins, if it is not ASCII; the rest of
    /// it counts as read.
    pub fn rest_of_character(&mut self) -> Option<char> {
        let character = self.text.get(self.position.checked_sub(1)?..)?.chars().next()?;
        self.position += character.len_utf8() - 1;
        Some(character)
    }

    /// The line that `offset` is on, and the column of `offset` in it, from 1.
    pub fn line_at(&self, offset: usize) -> (&str, usize) {
        let offset = (0..=offset.min(self.text.len()))
            .rev()
            .find(|at| self.text.is_char_boundary(*at))
            .unwrap_or_default();
        let start = self.text[..offset].rfind('\n').map_or(0, |end| end + 1);
        let end = self.text[offset..].find('\n').map_or(self.text.len(), |n| offset + n);
        (&self.text[start..end], self.text[start..offset].chars().count() + 1)
    }

    /// The line with number `line`.
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

    /// How many characters the bytes from `offset` on are.
    pub fn characters(&self, offset: usize, bytes: usize) -> usize {
        self.text.get(offset..offset + bytes).map_or(bytes, |text| text.chars().count())
    }
}
