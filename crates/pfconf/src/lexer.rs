//! The lexer (pf-features section 1).
//!
//! A macro is replaced as text, so `$if:network` is one word. The value of a macro is not searched
//! for macros again. Line numbers are those that OpenBSD reports: a token has the line on which it
//! begins.

use std::sync::Arc;

use crate::macros::Macros;
use crate::source::{Read, Source};
use crate::token::{Place, Token, TokenKind, keyword};

/// Most bytes of a word.
const LONGEST_WORD: usize = 8095;

/// Most bytes of all expanded macros together.
// Differs from OpenBSD: linux.md, "Files that a pf.conf names"
const MOST_EXPANDED: usize = 1 << 24;

/// Most bytes of a line that a message quotes.
const LONGEST_SHOWN: usize = 4096;

/// Reads tokens from a text and from the texts that it includes.
#[derive(Clone)]
pub struct Lexer {
    /// All texts in the order in which they were opened.
    sources: Vec<Source>,
    /// Indexes of the texts being read, the innermost last.
    open: Vec<usize>,
    /// Line on which the present token began, and to which messages refer.
    token_line: u32,
    /// While the value of a macro is read: offset of the macro's use, and length of its name.
    expansion: Option<(usize, usize)>,
    /// Bytes of all macros expanded so far.
    expanded: usize,
    /// Buffer for the word being read. All words share a buffer, because most words are keywords or
    /// numbers.
    word: Vec<u8>,
    /// The macros defined so far.
    pub macros: Macros,
    /// Errors in the text that the parser has not taken yet.
    pub errors: Vec<(String, Place)>,
}

impl Lexer {
    /// Returns a lexer at the beginning of a text.
    pub fn new(name: &str, text: &str, macros: Macros) -> Self {
        Lexer {
            sources: vec![Source::new(name, text)],
            open: vec![0],
            token_line: 1,
            expansion: None,
            expanded: 0,
            word: Vec::new(),
            macros,
            errors: Vec::new(),
        }
    }

    /// Continues with an included text, and after its end with the present one.
    pub fn include(&mut self, name: &str, text: &str) {
        self.open.push(self.sources.len());
        self.sources.push(Source::included(name, text));
    }

    /// Returns the names of the texts being read, the innermost last.
    pub fn open_names(&self) -> impl ExactSizeIterator<Item = &str> {
        self.open.iter().map(|index| &*self.sources[*index].name)
    }

    /// Returns the number of texts opened so far.
    pub fn source_count(&self) -> usize {
        self.sources.len()
    }

    /// Returns the next token. At the end of the text, each call returns `End`.
    pub fn token(&mut self) -> Token {
        loop {
            let mut c = self.byte();
            while matches!(c, Some(b' ' | b'\t')) {
                c = self.byte();
            }
            self.token_line = self.source().line;
            if c == Some(b'#') {
                while !matches!(c, Some(b'\n') | None) {
                    c = self.byte();
                }
            }
            let offset = match self.expansion {
                Some((offset, _)) => offset,
                None => self.source().offset().saturating_sub(usize::from(c.is_some())),
            };
            if c == Some(b'$') && self.expansion.is_none() {
                if self.begin_expansion(offset) {
                    continue;
                }
                return self.finish(TokenKind::Bad, offset);
            }
            let kind = self.kind(c, offset);
            return self.finish(kind, offset);
        }
    }

    /// Continues at a line of the text, given by byte offset and number.
    pub fn move_to(&mut self, offset: usize, line: u32) {
        self.source_mut().move_to(offset, line);
    }

    /// True if another lexer that has read less would read the remaining text in the same way. Only
    /// the main text may have been opened, and the macros must be the same.
    pub fn continues_like(&self, other: &Lexer) -> bool {
        self.sources.len() == 1
            && other.sources.len() == 1
            && self.macros.are_unchanged_since(&other.macros)
    }

    /// Adds the expansions and macro uses of another lexer between `begin` and `end`. Returns
    /// false, and changes nothing, if macros would expand to too many bytes.
    pub fn adopt_counts(&mut self, end: &Lexer, begin: &Lexer) -> bool {
        let expanded = self.expanded + (end.expanded - begin.expanded);
        if expanded > MOST_EXPANDED {
            return false;
        }
        self.expanded = expanded;
        self.macros.adopt_uses(&end.macros);
        true
    }

    /// Skips the remaining text.
    pub fn stop(&mut self) {
        self.open.truncate(1);
        self.source_mut().stop();
    }

    /// Returns the line to which messages refer.
    pub fn token_line(&self) -> u32 {
        self.token_line
    }

    /// Returns the name of the text to which messages refer.
    pub fn name(&self) -> Arc<str> {
        self.source().name.clone()
    }

    /// Returns the name of the text that contains `place`; `None` unless the text is included.
    pub fn included_name(&self, place: Place) -> Option<&Arc<str>> {
        self.sources.get(place.source).filter(|source| source.included).map(|source| &source.name)
    }

    /// Returns the text of the line of `place`, its column and its width in characters. The text is
    /// empty if the line is very long.
    pub fn source_line(&self, place: Place) -> (String, usize, usize) {
        let source = &self.sources[place.source];
        let (line, column) = source.line_at(place.offset);
        let shown = if line.len() > LONGEST_SHOWN { "" } else { line };
        (shown.to_string(), column, source.characters(place.offset, place.width))
    }

    /// Returns a line of the text being read, by its number; empty if the line is very long.
    pub fn numbered_line(&self, line: u32) -> String {
        let line = self.source().numbered_line(line);
        if line.len() > LONGEST_SHOWN { String::new() } else { line.to_string() }
    }

    fn source(&self) -> &Source {
        &self.sources[self.open[self.open.len() - 1]]
    }

    fn source_mut(&mut self) -> &mut Source {
        &mut self.sources[self.open[self.open.len() - 1]]
    }

    fn place(&self, offset: usize, width: usize) -> Place {
        let source = self.open[self.open.len() - 1];
        Place { source, line: self.token_line, offset, width }
    }

    fn finish(&self, kind: TokenKind, offset: usize) -> Token {
        let end = self.source().offset();
        let width = self.expansion.map_or(end.saturating_sub(offset).max(1), |(_, width)| width);
        Token { kind, place: self.place(offset, width) }
    }

    fn kind(&mut self, c: Option<u8>, offset: usize) -> TokenKind {
        match c {
            None => TokenKind::End,
            Some(b'\n') => {
                self.source_mut().line += 1;
                TokenKind::NewLine
            }
            Some(quote @ (b'"' | b'\'')) => self.quoted(quote, offset),
            Some(b'!') => self.pair('!', &[(b'=', TokenKind::NotEqual)]),
            Some(b'<') => {
                self.pair('<', &[(b'>', TokenKind::Outside), (b'=', TokenKind::LessEqual)])
            }
            Some(b'>') => {
                self.pair('>', &[(b'<', TokenKind::Inside), (b'=', TokenKind::GreaterEqual)])
            }
            Some(c) if c == b'-' || c.is_ascii_digit() => self.number(c, offset),
            Some(c) if c.is_ascii_alphanumeric() || c == b':' || c == b'_' => {
                self.begin_word(c);
                self.word(offset)
            }
            Some(c) if c.is_ascii() => TokenKind::Sign(c.into()),
            Some(_) if self.expansion.is_some() => TokenKind::Sign(char::REPLACEMENT_CHARACTER),
            Some(_) => TokenKind::Sign(
                self.source_mut().rest_of_character().unwrap_or(char::REPLACEMENT_CHARACTER),
            ),
        }
    }

    /// Reads the name behind a `$`, and inserts the macro's value before the remaining text.
    /// Returns false, after an error, if there is no such macro or the value is too long.
    fn begin_expansion(&mut self, offset: usize) -> bool {
        let mut name = String::new();
        loop {
            match self.byte() {
                Some(c)
                    if (c.is_ascii_alphanumeric() || c == b'_') && name.len() < LONGEST_WORD =>
                {
                    name.push(c.into())
                }
                c => {
                    self.unread(c);
                    break;
                }
            }
        }
        match self.macros.expand(&name) {
            Some(value) => {
                let source = self.open[self.open.len() - 1];
                self.expanded += value.len();
                if self.expanded > MOST_EXPANDED {
                    let text = format!("macros expand to more than {MOST_EXPANDED} bytes");
                    self.add_error(text, offset, name.len() + 1);
                    self.stop();
                    return false;
                }
                self.sources[source].expand(value);
                self.expansion = Some((offset, name.len() + 1));
                true
            }
            None => {
                self.add_error(format!("macro '{name}' not defined"), offset, name.len() + 1);
                self.skip_line();
                false
            }
        }
    }

    fn quoted(&mut self, quote: u8, offset: usize) -> TokenKind {
        let mut string = Vec::new();
        loop {
            let Some(mut c) = self.raw() else {
                return self.unterminated(offset);
            };
            if c == quote {
                return TokenKind::String(String::from_utf8_lossy(&string).into_owned());
            }
            if c == b'\n' {
                self.source_mut().line += 1;
                continue;
            }
            if c == b'\\' {
                match self.raw() {
                    None => return self.unterminated(offset),
                    Some(b'\n') => {
                        self.source_mut().line += 1;
                        continue;
                    }
                    Some(next) if next == quote || next == b' ' || next == b'\t' => c = next,
                    next => self.unread(next),
                }
            }
            if c == b'\0' || string.len() == LONGEST_WORD {
                let text = if c == b'\0' { "syntax error" } else { "string too long" };
                self.add_error(text.to_string(), offset, 1);
                self.skip_line();
                return TokenKind::Bad;
            }
            string.push(c);
        }
    }

    fn unterminated(&mut self, offset: usize) -> TokenKind {
        self.add_error("reached end of file while parsing quoted string".to_string(), offset, 1);
        self.stop();
        TokenKind::End
    }

    fn pair(&mut self, first: char, pairs: &[(u8, TokenKind)]) -> TokenKind {
        let next = self.byte();
        for (second, kind) in pairs {
            if next == Some(*second) {
                return kind.clone();
            }
        }
        self.unread(next);
        TokenKind::Sign(first)
    }

    fn begin_word(&mut self, first: u8) {
        self.word.clear();
        self.word.push(first);
    }

    /// Reads digits. Digits are a number if the next character cannot belong to a word: `10` is
    /// one, `10.1` is not.
    fn number(&mut self, first: u8, offset: usize) -> TokenKind {
        self.begin_word(first);
        let next = loop {
            match self.byte() {
                Some(c) if c.is_ascii_digit() && self.word.len() < LONGEST_WORD => {
                    self.word.push(c)
                }
                next => break next,
            }
        };
        let sign_only = self.word == b"-";
        if sign_only && next == Some(b'>') {
            return TokenKind::Arrow;
        }
        self.unread(next);
        let ends =
            next.is_none_or(|c| c.is_ascii_whitespace() || c == b'\x0b' || b"),/}=".contains(&c));
        if !sign_only && ends {
            let digits = str::from_utf8(&self.word).unwrap_or_default();
            return match digits.parse() {
                Ok(number) => TokenKind::Number(number),
                Err(_) => {
                    let size = if first == b'-' { "small" } else { "large" };
                    let text = format!("\"{digits}\" invalid number: too {size}");
                    self.add_error(text, offset, self.word.len());
                    self.skip_line();
                    TokenKind::Bad
                }
            };
        }
        if first == b'-' {
            while self.word.len() > 1 {
                let digit = self.word.pop();
                self.unread(digit);
            }
            return TokenKind::Sign('-');
        }
        self.word(offset)
    }

    /// Reads the remaining bytes of a word.
    fn word(&mut self, offset: usize) -> TokenKind {
        loop {
            let most = LONGEST_WORD - self.word.len();
            let plain = |c| belongs_to_word(c) && c != b'\\';
            let source = self.open[self.open.len() - 1];
            self.word.extend_from_slice(self.sources[source].run(plain, most));
            match self.byte() {
                Some(c) if belongs_to_word(c) => {
                    if self.word.len() == LONGEST_WORD {
                        self.add_error("string too long".to_string(), offset, 1);
                        self.skip_line();
                        return TokenKind::Bad;
                    }
                    self.word.push(c);
                }
                next => {
                    self.unread(next);
                    break;
                }
            }
        }
        match keyword(&self.word) {
            Some(keyword) => TokenKind::Keyword(keyword),
            None => TokenKind::String(str::from_utf8(&self.word).unwrap_or_default().to_string()),
        }
    }

    /// Returns the next byte outside of quotes. A backslash joins lines. Behind the end of an
    /// included text the including text continues.
    fn byte(&mut self) -> Option<u8> {
        let mut c = self.raw();
        while c == Some(b'\\') {
            match self.raw() {
                Some(b'\n') => {
                    self.token_line = self.source().line;
                    self.source_mut().line += 1;
                    c = self.raw();
                }
                next => {
                    c = next;
                    break;
                }
            }
        }
        while c.is_none() {
            if self.source_mut().ends_line() {
                return Some(b'\n');
            }
            if self.open.len() == 1 {
                return None;
            }
            self.open.pop();
            c = self.raw();
        }
        c
    }

    fn raw(&mut self) -> Option<u8> {
        loop {
            match self.source_mut().read() {
                Read::Byte(byte) => return Some(byte),
                Read::ExpansionEnds => self.expansion = None,
                Read::End => return None,
            }
        }
    }

    fn unread(&mut self, byte: Option<u8>) {
        if let Some(byte) = byte {
            self.source_mut().unread(byte);
        }
    }

    /// Skips the remaining line, including its end.
    fn skip_line(&mut self) {
        loop {
            match self.byte() {
                Some(b'\n') => {
                    self.source_mut().line += 1;
                    return;
                }
                None => return,
                Some(_) => {}
            }
        }
    }

    fn add_error(&mut self, text: String, offset: usize, width: usize) {
        self.errors.push((text, self.place(offset, width)));
    }
}

/// True if `c` is a letter, a digit or a sign that does not end a word.
pub fn belongs_to_word(c: u8) -> bool {
    WORD_BYTES[usize::from(c)]
}

/// True for each byte that belongs to a word: letters, digits, and signs that do not separate
/// words.
const WORD_BYTES: [bool; 256] = {
    let mut bytes = [false; 256];
    let mut c = b'!';
    while c <= b'~' {
        bytes[c as usize] = !matches!(
            c,
            b'(' | b')' | b'{' | b'}' | b'<' | b'>' | b'!' | b'=' | b'/' | b'#' | b','
        );
        c += 1;
    }
    bytes
};

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(text: &str) -> Vec<TokenKind> {
        let given = [("net".to_string(), "10.0.0.0".to_string())];
        let mut lexer = Lexer::new("stdin", text, Macros::given(&given));
        let mut kinds = Vec::new();
        loop {
            match lexer.token().kind {
                TokenKind::End => return kinds,
                kind => kinds.push(kind),
            }
        }
    }

    fn string(text: &str) -> TokenKind {
        TokenKind::String(text.to_string())
    }

    #[test]
    fn digits_before_a_word_character_are_no_number() {
        assert_eq!(
            tokens("10/8"),
            [TokenKind::Number(10), TokenKind::Sign('/'), TokenKind::Number(8), TokenKind::NewLine]
        );
        assert_eq!(tokens("10.1"), [string("10.1"), TokenKind::NewLine]);
        assert_eq!(
            tokens("-5 - x"),
            [TokenKind::Number(-5), TokenKind::Sign('-'), string("x"), TokenKind::NewLine]
        );
    }

    #[test]
    fn macros_join_with_what_follows() {
        assert_eq!(tokens("$net:0"), [string("10.0.0.0:0"), TokenKind::NewLine]);
        assert_eq!(tokens("$net/8")[0], string("10.0.0.0"));
        assert_eq!(tokens("'$net'")[0], string("$net"));
    }

    #[test]
    fn operators_are_read_whole() {
        use TokenKind::{GreaterEqual, Inside, LessEqual, NotEqual, Outside, Sign};
        let kinds = tokens("<> >< <= >= != < > !");
        let signs = [Sign('<'), Sign('>'), Sign('!'), TokenKind::NewLine];
        assert_eq!(kinds[..5], [Outside, Inside, LessEqual, GreaterEqual, NotEqual]);
        assert_eq!(kinds[5..], signs);
        assert_eq!(tokens("-> -")[..2], [TokenKind::Arrow, Sign('-')]);
    }

    #[test]
    fn backslashes_join_lines_in_comments_too() {
        assert_eq!(
            tokens("pass \\\nin # no \\\n out"),
            [TokenKind::Keyword("pass"), TokenKind::Keyword("in"), TokenKind::NewLine]
        );
    }

    #[test]
    fn tokens_know_their_line_and_column() {
        let mut lexer = Lexer::new("stdin", "pass\n  on em0", Macros::default());
        lexer.token();
        lexer.token();
        let on = lexer.token();
        assert_eq!((on.place.line, on.place.width), (2, 2));
        assert_eq!(lexer.source_line(on.place), ("  on em0".to_string(), 3, 2));
    }
}
