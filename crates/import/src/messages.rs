//! Messages about the converted text, in the form of pf.conf's.

use skipstep_pfconf::{Diagnostic, Severity};

/// Size limit of the text, in bytes; a longer one has more rules than pf can hold.
const LARGEST: usize = 1 << 24;
/// Number of errors at which reading stops, and most warnings.
const MOST: usize = 100;
/// Longest line shown below a message, in bytes.
const LONGEST_SHOWN: usize = 400;

/// A position in the text.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Place {
    /// Line, from 1.
    pub line: u32,
    /// Offset of the line in the text, in bytes.
    pub line_start: usize,
    /// Offset of the word in the text, in bytes.
    pub offset: usize,
    /// Length of the word, in bytes.
    pub width: usize,
}

/// The messages about a text.
pub struct Messages<'a> {
    text: &'a str,
    file: &'a str,
    list: Vec<Diagnostic>,
    errors: usize,
}

impl<'a> Messages<'a> {
    /// Returns an empty list of messages about `text`, which is called `file`.
    pub fn new(text: &'a str, file: &'a str) -> Self {
        Messages { text, file, list: Vec::new(), errors: 0 }
    }

    /// Checks the size of the text.
    ///
    /// # Errors
    /// Fails if the text is too large to be converted.
    pub fn check_size(mut self) -> Result<Self, Vec<Diagnostic>> {
        if self.text.len() <= LARGEST {
            return Ok(self);
        }
        let message = format!("file is too large: {} bytes, at most {LARGEST}", self.text.len());
        self.error(Place { line: 1, ..Place::default() }, message, None);
        Err(self.list)
    }

    /// Adds an error: a mistake, or a construct without an equivalent.
    pub fn error(&mut self, place: Place, message: impl Into<String>, help: Option<&str>) {
        self.add(Severity::Error, place, message.into(), help);
        self.errors += 1;
    }

    /// Adds a warning: a construct whose equivalent differs.
    pub fn warning(&mut self, place: Place, message: impl Into<String>, help: Option<&str>) {
        self.add(Severity::Warning, place, format!("warning: {}", message.into()), help);
    }

    fn add(&mut self, kind: Severity, place: Place, message: String, help: Option<&str>) {
        if kind != Severity::Error && self.list.len() >= MOST {
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

    /// Returns the line of `place`, or `None` if it is too long to be shown. Does not search a long
    /// line for its end.
    fn line(&self, place: Place) -> Option<&str> {
        let rest = &self.text[place.line_start..];
        let length = match rest.bytes().take(LONGEST_SHOWN + 1).position(|byte| byte == b'\n') {
            Some(length) => length,
            None if rest.len() <= LONGEST_SHOWN => rest.len(),
            None => return None,
        };
        Some(rest[..length].trim_end_matches('\r'))
    }

    /// True if there are enough errors to stop reading.
    pub fn is_full(&self) -> bool {
        self.errors >= MOST
    }

    /// Returns the messages, which are warnings if there is no error.
    ///
    /// # Errors
    /// Fails with all messages if there is an error.
    pub fn finish(self) -> Result<Vec<Diagnostic>, Vec<Diagnostic>> {
        if self.errors == 0 { Ok(self.list) } else { Err(self.list) }
    }
}
