//! Messages about the text that is converted, in pf.conf's form.

use skipstep_pfconf::{Diagnostic, Kind};

/// Longest text, in bytes: more rules than pf can hold.
const LARGEST: usize = 1 << 24;
/// More errors than these are not read by anybody.
const MOST: usize = 100;
/// A longer line is not shown below the message.
const LONGEST_SHOWN: usize = 400;

/// A place in the text.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Place {
    /// Line, from 1.
    pub line: u32,
    /// Byte in the text at which the line begins.
    pub line_start: usize,
    /// Byte in the text.
    pub offset: usize,
    /// Length in bytes.
    pub width: usize,
}

/// Collects messages.
pub struct Messages<'a> {
    text: &'a str,
    file: &'a str,
    list: Vec<Diagnostic>,
    errors: usize,
}

impl<'a> Messages<'a> {
    /// No message yet about `text`, which is called `file`.
    pub fn new(text: &'a str, file: &'a str) -> Self {
        Messages { text, file, list: Vec::new(), errors: 0 }
    }

    /// That the text is not too large to be read.
    pub fn check_size(mut self) -> Result<Self, Vec<Diagnostic>> {
        if self.text.len() <= LARGEST {
            return Ok(self);
        }
        let message = format!("file is too large: {} bytes, at most {LARGEST}", self.text.len());
        self.error(Place { line: 1, ..Place::default() }, message, None);
        Err(self.list)
    }

    /// Something has no equivalent or is wrong.
    pub fn error(&mut self, place: Place, message: impl Into<String>, help: Option<&str>) {
        self.add(Kind::Error, place, message.into(), help);
        self.errors += 1;
    }

    /// Something has an equivalent that somebody should know about.
    pub fn warning(&mut self, place: Place, message: impl Into<String>, help: Option<&str>) {
        self.add(Kind::Warning, place, format!("warning: {}", message.into()), help);
    }

    fn add(&mut self, kind: Kind, place: Place, message: String, help: Option<&str>) {
        if kind != Kind::Error && self.list.len() >= MOST {
            return;
        }
        let before = &self.text[place.line_start..place.offset];
        let word = &self.text[place.offset..place.offset + place.width];
        let (source, column) = match self.line(place) {
            Some(line) => (line.to_string(), before.chars().count() as u32 + 1),
            None => (String::new(), 0),
        };
        self.list.push(Diagnostic {
            kind,
            file: self.file.to_string(),
            line: place.line,
            column: if place.width == 0 { 0 } else { column },
            width: word.chars().count() as u32,
            message,
            source,
            help: help.map(str::to_string),
            ..Diagnostic::default()
        });
    }

    /// The line of `place`, if it is short enough to be shown; a long one is not searched for its
    /// end.
    fn line(&self, place: Place) -> Option<&str> {
        let rest = &self.text[place.line_start..];
        let length = match rest.bytes().take(LONGEST_SHOWN + 1).position(|byte| byte == b'\n') {
            Some(length) => length,
            None if rest.len() <= LONGEST_SHOWN => rest.len(),
            None => return None,
        };
        Some(rest[..length].trim_end_matches('\r'))
    }

    /// Whether enough has been said to stop reading.
    pub fn is_full(&self) -> bool {
        self.errors >= MOST
    }

    /// The messages: warnings if there was no error.
    pub fn finish(self) -> Result<Vec<Diagnostic>, Vec<Diagnostic>> {
        if self.errors == 0 { Ok(self.list) } else { Err(self.list) }
    }
}
