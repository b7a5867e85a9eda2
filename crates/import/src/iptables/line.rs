//! Splits a line into words.

use crate::messages::{Messages, Place};

/// A word without quotes, with its position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Word {
    /// Text of the word, without quotes.
    pub text: String,
    /// Position of the word, quotes included.
    pub place: Place,
}

/// Returns the words of a line, or `None` if a quotation is not closed.
pub fn words(line: &str, place: Place, messages: &mut Messages) -> Option<Vec<Word>> {
    let mut words: Vec<Word> = Vec::new();
    let mut characters = line.char_indices().peekable();
    while let Some(&(start, c)) = characters.peek() {
        if c.is_whitespace() {
            characters.next();
            continue;
        }
        let (mut text, mut quoted, mut end) = (String::new(), false, start);
        while let Some(&(at, c)) = characters.peek() {
            if c.is_whitespace() && !quoted {
                break;
            }
            characters.next();
            end = at + c.len_utf8();
            match c {
                '"' => quoted = !quoted,
                '\\' if quoted => {
                    if let Some((at, next)) = characters.next() {
                        text.push(next);
                        end = at + next.len_utf8();
                    }
                }
                _ => text.push(c),
            }
        }
        let place = Place { offset: place.offset + start, width: end - start, ..place };
        if quoted {
            messages.error(place, "the quotation does not end in this line", None);
            return None;
        }
        words.push(Word { text, place });
        if words.len() == 1 && words[0].text.starts_with('#') {
            break;
        }
    }
    Some(words)
}

/// The mark of an error that is already among the messages.
pub struct Wrong;

/// The words of a rule that are still to be read.
pub struct Words<'w, 'm, 't> {
    pub words: std::slice::Iter<'w, Word>,
    pub last: Place,
    pub messages: &'m mut Messages<'t>,
}

impl<'w> Words<'w, '_, '_> {
    pub fn next(&mut self) -> Option<&'w Word> {
        let word = self.words.next();
        self.last = word.map_or(self.last, |word| word.place);
        word
    }

    pub fn peek(&self) -> Option<&'w str> {
        self.words.as_slice().first().map(|word| word.text.as_str())
    }

    /// Reads the value of an option.
    ///
    /// # Errors
    /// Fails, with a message, at the end of the line.
    pub fn value(&mut self) -> Result<&'w Word, Wrong> {
        match self.next() {
            Some(word) => Ok(word),
            None => self.wrong(self.last, "a value is expected behind this", None),
        }
    }

    /// Adds an error to the messages.
    ///
    /// # Errors
    /// Always fails, so that the caller can return the result.
    pub fn wrong<T>(
        &mut self,
        place: Place,
        message: &str,
        help: Option<&str>,
    ) -> Result<T, Wrong> {
        self.messages.error(place, message, help);
        Err(Wrong)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_may_be_quoted() {
        let mut messages = Messages::new("a \"b \\\" c\"  d", "test");
        let seen = words("a \"b \\\" c\"  d", Place::default(), &mut messages).expect("words");
        let texts: Vec<&str> = seen.iter().map(|word| word.text.as_str()).collect();
        assert_eq!(texts, ["a", "b \" c", "d"]);
        assert_eq!((seen[1].place.offset, seen[1].place.width), (2, 8));
    }
}
