//! Splits a line of a scenario file into words, and reports errors in them.

use std::fmt;

/// Longest line or message, in bytes or characters, that an error shows in full.
const LONGEST_SHOWN: usize = 1000;

/// An error in a scenario file, with its position.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct Error {
    /// Name of the file.
    pub file: String,
    /// Line, from 1.
    pub line: u32,
    /// Column of the wrong word, from 1.
    pub column: u32,
    /// Number of characters of the wrong word.
    pub width: u32,
    /// Description of the error.
    pub message: String,
    /// Text of the line, empty if it is very long.
    pub source_line: String,
    /// The line with an example in place of the wrong or missing words; `None` if there is no
    /// example.
    pub example: Option<String>,
}

/// `file:line: message`, then the line and a caret.
impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.file, self.line, self.message)?;
        if self.source_line.is_empty() {
            return Ok(());
        }
        writeln!(f)?;
        writeln!(f, "    {}", self.source_line.replace('\t', " "))?;
        let blanks = " ".repeat(self.column.saturating_sub(1) as usize);
        write!(f, "    {blanks}{}", "^".repeat(self.width.max(1) as usize))
    }
}

/// An error in a word.
#[derive(Debug)]
pub(crate) struct Fault {
    pub message: String,
    pub column: usize,
    pub width: usize,
    /// True if words are missing in front of the column, false if the word there is wrong.
    is_missing: bool,
    /// Words that the line could have there; empty if unknown.
    example: String,
}

impl Fault {
    /// Makes the error that the `width` characters at `column` are wrong.
    pub fn new(message: impl Into<String>, column: usize, width: usize) -> Self {
        let message = message.into();
        Fault { message, column, width, is_missing: false, example: String::new() }
    }

    /// Returns the line with the example in place of the wrong or missing words.
    fn example_in(&self, source_line: &str) -> Option<String> {
        if self.example.is_empty() {
            return None;
        }
        let wrong = if self.is_missing { 0 } else { self.width };
        let head: String = source_line.chars().take(self.column - 1).collect();
        let tail: String = source_line.chars().skip(self.column - 1 + wrong).collect();
        let line = format!("{} {} {}", head.trim_end(), self.example, tail.trim_start());
        Some(line.trim().to_owned())
    }

    /// Returns the error with its position in a file.
    pub fn at(mut self, file: &str, line: u32, source_line: &str) -> Error {
        let example = self.example_in(source_line);
        if let Some((end, _)) = self.message.char_indices().nth(LONGEST_SHOWN) {
            self.message.truncate(end);
            self.message.push('…');
        }
        let source_line = if source_line.len() > LONGEST_SHOWN { "" } else { source_line };
        Error {
            file: file.to_owned(),
            line,
            column: self.column as u32,
            width: self.width as u32,
            message: self.message,
            source_line: source_line.to_owned(),
            example,
        }
    }
}

pub(crate) type Parsed<T> = Result<T, Fault>;

/// Adds examples to errors.
pub(crate) trait OrExample {
    /// Adds the words that the line could have in place of the wrong or missing ones, unless the
    /// error has an example already.
    fn or_example(self, words: &str) -> Self;
}

impl<T> OrExample for Parsed<T> {
    fn or_example(self, words: &str) -> Self {
        self.map_err(|fault| match fault.example.is_empty() {
            true => Fault { example: words.to_owned(), ..fault },
            false => fault,
        })
    }
}

/// A word with its position: column from 1, and width in characters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Word {
    pub text: String,
    pub column: usize,
    pub width: usize,
}

/// Splits a line into words. Words end at blanks; `,`, `(`, `)` and `;` are words; quotes keep
/// blanks; `#` begins a comment.
pub(crate) fn words(line: &str) -> Parsed<Vec<Word>> {
    let characters: Vec<char> = line.chars().collect();
    let mut words = Vec::new();
    let mut at = 0;
    while at < characters.len() {
        let start = at;
        match characters[at] {
            '#' => break,
            character if character.is_whitespace() => {
                at += 1;
                continue;
            }
            ',' | '(' | ')' | ';' => at += 1,
            '"' => {
                let end = characters[at + 1..]
                    .iter()
                    .position(|&character| character == '"')
                    .ok_or_else(|| {
                        let width = characters.len() - start;
                        Fault::new("the quote is not closed", start + 1, width)
                    })?;
                at += end + 2;
                let text = characters[start + 1..at - 1].iter().collect();
                words.push(Word { text, column: start + 1, width: at - start });
                continue;
            }
            _ => {
                while at < characters.len()
                    && !characters[at].is_whitespace()
                    && !",();#\"".contains(characters[at])
                {
                    at += 1;
                }
            }
        }
        words.push(Word {
            text: characters[start..at].iter().collect(),
            column: start + 1,
            width: at - start,
        });
    }
    Ok(words)
}

/// The words of a line, and the index of the next one.
pub(crate) struct Line<'a> {
    words: &'a [Word],
    at: usize,
    end: usize,
}

impl<'a> Line<'a> {
    /// Begins to read a line. A message about a missing word points behind `length` characters.
    pub fn new(words: &'a [Word], length: usize) -> Self {
        Line { words, at: 0, end: length + 1 }
    }

    pub fn peek(&self) -> Option<&'a str> {
        self.peek_behind(0)
    }

    /// Returns the word that follows `count` other words.
    pub fn peek_behind(&self, count: usize) -> Option<&'a str> {
        self.words.get(self.at + count).map(|word| word.text.as_str())
    }

    /// True if a word of the line, read or not, is `wanted`.
    pub fn has(&self, wanted: impl Fn(&str) -> bool) -> bool {
        self.words.iter().any(|word| wanted(&word.text))
    }

    pub fn next(&mut self) -> Option<&'a Word> {
        let word = self.words.get(self.at)?;
        self.at += 1;
        Some(word)
    }

    /// Reads the next word if it is `text`. Returns true if it was.
    pub fn take(&mut self, text: &str) -> bool {
        let there = self.peek() == Some(text);
        self.at += usize::from(there);
        there
    }

    /// Reads the next word.
    ///
    /// # Errors
    /// Fails at the end of the line, with the message that `what` is missing.
    pub fn word(&mut self, what: &str) -> Parsed<&'a Word> {
        self.next().ok_or_else(|| self.missing(what))
    }

    /// Returns the error that `what` is missing in front of the next word.
    pub fn missing(&self, what: &str) -> Fault {
        let column = self.words.get(self.at).map_or(self.end, |word| word.column);
        Fault { is_missing: true, ..Fault::new(format!("{what} is missing"), column, 1) }
    }

    /// Reads the next word, which must be `text`.
    ///
    /// # Errors
    /// Fails if the next word is missing or another.
    pub fn expect(&mut self, text: &str) -> Parsed<()> {
        let word = self.word(&format!("`{text}`"))?;
        if word.text == text { Ok(()) } else { Err(word.fault(format!("expected `{text}`"))) }
    }

    /// Reads the next word with `read`.
    ///
    /// # Errors
    /// Fails if the word is missing, or if `read` returns `None`; the message then names `what`.
    pub fn value<T>(&mut self, what: &str, read: impl FnOnce(&str) -> Option<T>) -> Parsed<T> {
        let word = self.word(what)?;
        read(&word.text).ok_or_else(|| word.fault(format!("`{}` is not {what}", word.text)))
    }

    /// Reads the next word as a number, decimal or hexadecimal with `0x`.
    ///
    /// # Errors
    /// Fails if the word is missing, is not a number, or does not fit in the type.
    pub fn number<T: TryFrom<u64>>(&mut self, what: &str) -> Parsed<T> {
        self.value(&format!("{what} that fits"), number)
    }

    /// Returns an error at the previous word.
    pub fn fault_before(&self, message: impl Into<String>) -> Fault {
        match self.at.checked_sub(1).and_then(|at| self.words.get(at)) {
            Some(word) => word.fault(message),
            None => Fault::new(message, 1, 1),
        }
    }

    /// Takes the word after the next one.
    ///
    /// # Errors
    /// Fails if there is no such word; `what` says what is missing.
    pub fn word_behind(&mut self, what: &str) -> Parsed<String> {
        self.next();
        Ok(self.word(what)?.text.clone())
    }

    /// Checks that the whole line is read.
    ///
    /// # Errors
    /// Fails if there is another word.
    pub fn finish(&mut self) -> Parsed<()> {
        match self.next() {
            None => Ok(()),
            Some(word) => Err(word.fault(format!("`{}` does not belong here", word.text))),
        }
    }
}

impl Word {
    pub fn fault(&self, message: impl Into<String>) -> Fault {
        Fault::new(message, self.column, self.width)
    }
}

/// Parses a number, decimal or hexadecimal with `0x`.
pub(crate) fn number<T: TryFrom<u64>>(text: &str) -> Option<T> {
    let value = match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok()?,
        None => text.parse().ok()?,
    };
    T::try_from(value).ok()
}

/// Parses `a:b`.
pub(crate) fn pair(text: &str) -> Option<[u64; 2]> {
    let (first, second) = text.split_once(':')?;
    Some([number(first)?, number(second)?])
}
