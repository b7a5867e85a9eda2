//! Splits text into tokens.

use crate::messages::Place;

/// A word or sign, with its position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Token<'a> {
    /// Kind and text.
    pub kind: Kind<'a>,
    /// Position in the text.
    pub place: Place,
}

/// The kind of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind<'a> {
    /// A name, number or address.
    Word(&'a str),
    /// One of `( ) , ; / =`, or a character that the language does not have.
    Sign(char),
    /// `..`
    To,
    /// The end of the text.
    End,
}

/// A reader of tokens.
pub struct Lexer<'a> {
    text: &'a str,
    place: Place,
}

impl<'a> Lexer<'a> {
    /// Begins to read `text`.
    pub fn new(text: &'a str) -> Self {
        Lexer { text, place: Place { line: 1, ..Place::default() } }
    }

    /// Reads the next token. At the end of the text, returns `End` each time.
    pub fn token(&mut self) -> Token<'a> {
        self.skip_blanks();
        let rest = &self.text[self.place.offset..];
        let word = word_length(rest);
        let (kind, width) = match rest.chars().next() {
            None => (Kind::End, 0),
            _ if word > 0 => (Kind::Word(&rest[..word]), word),
            _ if rest.starts_with("..") => (Kind::To, 2),
            Some(c) => (Kind::Sign(c), c.len_utf8()),
        };
        let place = Place { width, ..self.place };
        self.place.offset += width;
        Token { kind, place }
    }

    /// Skips blanks, line ends and comments.
    fn skip_blanks(&mut self) {
        let bytes = self.text.as_bytes();
        let mut in_comment = false;
        while let Some(&byte) = bytes.get(self.place.offset) {
            match byte {
                b'\n' => {
                    in_comment = false;
                    self.place.line += 1;
                    self.place.line_start = self.place.offset + 1;
                }
                b'#' => in_comment = true,
                _ if in_comment || byte.is_ascii_whitespace() => {}
                _ => return,
            }
            self.place.offset += 1;
        }
    }
}

/// Returns the length of the word at the beginning of `text`. `..` ends a word, a single dot does
/// not.
fn word_length(text: &str) -> usize {
    let bytes = text.as_bytes();
    let dots = |at: usize| bytes[at..].starts_with(b"..");
    (0..bytes.len())
        .find(|&at| !(bytes[at].is_ascii_alphanumeric() || b"._-".contains(&bytes[at])) || dots(at))
        .unwrap_or(bytes.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dots_belong_to_addresses_and_two_of_them_to_ranges() {
        let mut lexer = Lexer::new("a.b 10.0.0.1..10.0.0.9 # no\n0..7");
        let mut seen = Vec::new();
        loop {
            match lexer.token().kind {
                Kind::End => break,
                kind => seen.push(kind),
            }
        }
        let word = Kind::Word;
        assert_eq!(
            seen,
            [
                word("a.b"),
                word("10.0.0.1"),
                Kind::To,
                word("10.0.0.9"),
                word("0"),
                Kind::To,
                word("7")
            ]
        );
    }

    #[test]
    fn places_count_lines_and_bytes() {
        let mut lexer = Lexer::new("one\n  # comment\n\ttwo");
        lexer.token();
        let place = lexer.token().place;
        assert_eq!((place.line, place.offset - place.line_start, place.width), (3, 1, 3));
    }
}
