//! Text to tokens (pf-features section 1).
//!
//! A macro is replaced as text, in front of what follows it, so that `$if:network` is one word; the
//! text that comes out of a macro is not searched for macros again. Line numbers are those OpenBSD
//! reports: a token has the line on which it begins.

use crate::macros::Macros;
use crate::token::{Kind, Place, Token, keyword};

/// Longest word, in characters.
const LONGEST_WORD: usize = 8095;

/// Reads tokens off a text.
pub struct Lexer {
    text: Vec<char>,
    position: usize,
    line: u32,
    /// Line on which the token being read began; also where messages say they are.
    token_line: u32,
    /// What comes before the rest of the text, last first: characters that were read too far, the
    /// value of a macro and, as `None`, the end of such a value.
    ahead: Vec<Option<char>>,
    /// Where the macro is used whose value is being read, and how long its name is.
    expansion: Option<(usize, usize)>,
    /// The end of the text counts as the end of a line once.
    ended: bool,
    /// Macros defined so far.
    pub macros: Macros,
    /// What was wrong with the text since somebody looked.
    pub complaints: Vec<(String, Place)>,
}

impl Lexer {
    /// A lexer at the beginning of `text`.
    pub fn new(text: &str, macros: Macros) -> Self {
        Lexer {
            text: text.chars().collect(),
            position: 0,
            line: 1,
            token_line: 1,
            ahead: Vec::new(),
            expansion: None,
            ended: false,
            macros,
            complaints: Vec::new(),
        }
    }

    /// The next token; `End` again and again at the end of the text.
    pub fn token(&mut self) -> Token {
        loop {
            let mut c = self.character();
            while matches!(c, Some(' ' | '\t')) {
                c = self.character();
            }
            self.token_line = self.line;
            if c == Some('#') {
                while !matches!(c, Some('\n') | None) {
                    c = self.character();
                }
            }
            let offset =
                self.expansion.map_or(self.position.saturating_sub(1), |(offset, _)| offset);
            if c == Some('$') && self.expansion.is_none() {
                if self.begin_expansion(offset) {
                    continue;
                }
                return self.finish(Kind::Bad, offset);
            }
            let kind = self.kind(c, offset);
            return self.finish(kind, offset);
        }
    }

    /// Leaves out the rest of the text.
    pub fn stop(&mut self) {
        self.position = self.text.len();
        self.ahead.clear();
    }

    /// The line messages speak of now.
    pub fn token_line(&self) -> u32 {
        self.token_line
    }

    /// The text of the line that `offset` is on, and the column of `offset` in it, from 1.
    pub fn source_line(&self, offset: usize) -> (String, usize) {
        let offset = offset.min(self.text.len());
        let start = self.text[..offset].iter().rposition(|&c| c == '\n').map_or(0, |end| end + 1);
        let end = self.text[offset..]
            .iter()
            .position(|&c| c == '\n')
            .map_or(self.text.len(), |n| offset + n);
        (self.text[start..end].iter().collect(), offset - start + 1)
    }

    /// The line with number `line`.
    pub fn numbered_line(&self, line: u32) -> String {
        let mut lines = self.text.split(|&c| c == '\n');
        lines.nth(line.saturating_sub(1) as usize).unwrap_or_default().iter().collect()
    }

    fn finish(&self, kind: Kind, offset: usize) -> Token {
        let end = self.position.saturating_sub(self.ahead.len());
        let width = self.expansion.map_or(end.saturating_sub(offset).max(1), |(_, width)| width);
        Token { kind, place: Place { line: self.token_line, offset, width } }
    }

    fn kind(&mut self, c: Option<char>, offset: usize) -> Kind {
        match c {
            None => Kind::End,
            Some('\n') => {
                self.line += 1;
                Kind::NewLine
            }
            Some(quote @ ('"' | '\'')) => self.quoted(quote, offset),
            Some('!') => self.pair('!', &[('=', Kind::NotEqual)]),
            Some('<') => self.pair('<', &[('>', Kind::Outside), ('=', Kind::LessEqual)]),
            Some('>') => self.pair('>', &[('<', Kind::Inside), ('=', Kind::GreaterEqual)]),
            Some(c) if c == '-' || c.is_ascii_digit() => self.number(c, offset),
            Some(c) if c.is_ascii_alphanumeric() || c == ':' || c == '_' => {
                self.word(c.to_string(), offset)
            }
            Some(c) => Kind::Sign(c),
        }
    }

    /// Reads the name behind a `$` and puts the macro's value in front of the rest of the text.
    fn begin_expansion(&mut self, offset: usize) -> bool {
        let mut name = String::new();
        loop {
            match self.character() {
                Some(c) if (c.is_ascii_alphanumeric() || c == '_') && name.len() < LONGEST_WORD => {
                    name.push(c)
                }
                c => {
                    self.unread(c);
                    break;
                }
            }
        }
        match self.macros.expand(&name) {
            Some(value) => {
                self.ahead.push(None);
                self.ahead.extend(value.chars().rev().map(Some));
                self.expansion = Some((offset, name.len() + 1));
                true
            }
            None => {
                self.complain(format!("macro '{name}' not defined"), offset, name.len() + 1);
                self.skip_line();
                false
            }
        }
    }

    fn quoted(&mut self, quote: char, offset: usize) -> Kind {
        let mut string = String::new();
        let mut length = 0;
        loop {
            let Some(mut c) = self.raw() else {
                return self.unterminated(offset);
            };
            if c == quote {
                return Kind::String(string);
            }
            if c == '\n' {
                self.line += 1;
                continue;
            }
            if c == '\\' {
                match self.raw() {
                    None => return self.unterminated(offset),
                    Some('\n') => {
                        self.line += 1;
                        continue;
                    }
                    Some(next) if next == quote || next == ' ' || next == '\t' => c = next,
                    next => self.unread(next),
                }
            }
            if c == '\0' || length == LONGEST_WORD {
                let text = if c == '\0' { "syntax error" } else { "string too long" };
                self.complain(text.to_string(), offset, 1);
                self.skip_line();
                return Kind::Bad;
            }
            string.push(c);
            length += 1;
        }
    }

    fn unterminated(&mut self, offset: usize) -> Kind {
        self.complain("reached end of file while parsing quoted string".to_string(), offset, 1);
        Kind::End
    }

    fn pair(&mut self, first: char, pairs: &[(char, Kind)]) -> Kind {
        let next = self.character();
        for (second, kind) in pairs {
            if next == Some(*second) {
                return kind.clone();
            }
        }
        self.unread(next);
        Kind::Sign(first)
    }

    /// Digits are a number if what follows cannot belong to a word: `10` is, `10.1` is not.
    fn number(&mut self, first: char, offset: usize) -> Kind {
        let mut digits = first.to_string();
        let next = loop {
            match self.character() {
                Some(c) if c.is_ascii_digit() && digits.len() < LONGEST_WORD => digits.push(c),
                next => break next,
            }
        };
        self.unread(next);
        let ends =
            next.is_none_or(|c| c.is_ascii_whitespace() || c == '\u{b}' || "),/}=".contains(c));
        if digits != "-" && ends {
            return match digits.parse() {
                Ok(number) => Kind::Number(number),
                Err(_) => {
                    let size = if first == '-' { "small" } else { "large" };
                    self.complain(
                        format!("\"{digits}\" invalid number: too {size}"),
                        offset,
                        digits.len(),
                    );
                    self.skip_line();
                    Kind::Bad
                }
            };
        }
        if first == '-' {
            self.ahead
                .extend(digits.chars().skip(1).map(Some).collect::<Vec<_>>().into_iter().rev());
            return Kind::Sign('-');
        }
        self.word(digits, offset)
    }

    fn word(&mut self, mut word: String, offset: usize) -> Kind {
        loop {
            match self.character() {
                Some(c) if belongs_to_word(c) => {
                    if word.len() == LONGEST_WORD {
                        self.complain("string too long".to_string(), offset, 1);
                        self.skip_line();
                        return Kind::Bad;
                    }
                    word.push(c);
                }
                next => {
                    self.unread(next);
                    break;
                }
            }
        }
        keyword(&word).map_or_else(|| Kind::String(word), Kind::Keyword)
    }

    /// The next character outside quotes: a backslash joins lines.
    fn character(&mut self) -> Option<char> {
        let mut c = self.raw();
        while c == Some('\\') {
            match self.raw() {
                Some('\n') => {
                    self.token_line = self.line;
                    self.line += 1;
                    c = self.raw();
                }
                next => {
                    c = next;
                    break;
                }
            }
        }
        if c.is_none() && !self.ended {
            self.ended = true;
            return Some('\n');
        }
        c
    }

    fn raw(&mut self) -> Option<char> {
        while let Some(ahead) = self.ahead.pop() {
            match ahead {
                Some(c) => return Some(c),
                None => self.expansion = None,
            }
        }
        let c = self.text.get(self.position).copied();
        self.position += usize::from(c.is_some());
        c
    }

    fn unread(&mut self, c: Option<char>) {
        if c.is_some() {
            self.ahead.push(c);
        }
    }

    /// Leaves out the rest of the line, its end included.
    fn skip_line(&mut self) {
        loop {
            match self.character() {
                Some('\n') => {
                    self.line += 1;
                    return;
                }
                None => return,
                Some(_) => {}
            }
        }
    }

    fn complain(&mut self, text: String, offset: usize, width: usize) {
        self.complaints.push((text, Place { line: self.token_line, offset, width }));
    }
}

fn belongs_to_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || (c.is_ascii_punctuation() && !"(){}<>!=/#,".contains(c))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(text: &str) -> Vec<Kind> {
        let given = [("net".to_string(), "10.0.0.0".to_string())];
        let mut lexer = Lexer::new(text, Macros::given(&given));
        let mut kinds = Vec::new();
        loop {
            match lexer.token().kind {
                Kind::End => return kinds,
                kind => kinds.push(kind),
            }
        }
    }

    fn string(text: &str) -> Kind {
        Kind::String(text.to_string())
    }

    #[test]
    fn numbers_end_where_words_go_on() {
        assert_eq!(
            tokens("10/8"),
            [Kind::Number(10), Kind::Sign('/'), Kind::Number(8), Kind::NewLine]
        );
        assert_eq!(tokens("10.1"), [string("10.1"), Kind::NewLine]);
        assert_eq!(
            tokens("-5 - x"),
            [Kind::Number(-5), Kind::Sign('-'), string("x"), Kind::NewLine]
        );
    }

    #[test]
    fn macros_join_with_what_follows() {
        assert_eq!(tokens("$net:0"), [string("10.0.0.0:0"), Kind::NewLine]);
        assert_eq!(tokens("$net/8")[0], string("10.0.0.0"));
        assert_eq!(tokens("'$net'")[0], string("$net"));
    }

    #[test]
    fn operators_are_read_whole() {
        use Kind::{GreaterEqual, Inside, LessEqual, NotEqual, Outside, Sign};
        let kinds = tokens("<> >< <= >= != < > !");
        let signs = [Sign('<'), Sign('>'), Sign('!'), Kind::NewLine];
        assert_eq!(kinds[..5], [Outside, Inside, LessEqual, GreaterEqual, NotEqual]);
        assert_eq!(kinds[5..], signs);
    }

    #[test]
    fn backslashes_join_lines_in_comments_too() {
        assert_eq!(
            tokens("pass \\\nin # no \\\n out"),
            [Kind::Keyword("pass"), Kind::Keyword("in"), Kind::NewLine]
        );
    }

    #[test]
    fn tokens_know_their_line_and_column() {
        let mut lexer = Lexer::new("pass\n  on em0", Macros::default());
        lexer.token();
        lexer.token();
        let on = lexer.token();
        assert_eq!((on.place.line, on.place.width), (2, 2));
        assert_eq!(lexer.source_line(on.place.offset), ("  on em0".to_string(), 3));
    }
}
