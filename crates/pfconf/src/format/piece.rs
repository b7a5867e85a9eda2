//! Splits a text into pieces, without looking macros up. The pieces and the space between them are
//! the whole text. The rules are those of the lexer.

/// A piece of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    pub kind: PieceKind,
    /// Text as written.
    pub text: String,
    /// True if the piece follows the previous one without space.
    pub glued: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PieceKind {
    /// A word, a number, or a macro with all characters that belong to the same word.
    Word,
    Quoted,
    /// `{`, `!=`, `->` and similar signs.
    Sign,
    /// A comment, from `#` to the end of the line, or of the last line that a backslash joins to
    /// it.
    Comment,
    /// A backslash at the end of a line.
    Continued,
    NewLine,
}

impl Piece {
    pub fn is(&self, sign: &str) -> bool {
        self.kind == PieceKind::Sign && self.text == sign
    }

    /// Returns the number of columns of the first line.
    pub fn width(&self) -> usize {
        self.text.split('\n').next().unwrap_or_default().chars().count()
    }

    /// True if the piece is a character that begins no word.
    pub fn is_mark(&self) -> bool {
        self.kind == PieceKind::Word
            && !is_number(&self.text)
            && !self.text.starts_with(begins_word)
    }

    pub fn is_word(&self, words: &[&str]) -> bool {
        self.kind == PieceKind::Word && words.contains(&self.text.as_str())
    }
}

const PAIRS: [&str; 6] = ["!=", "<>", "<=", "><", ">=", "->"];
const SIGNS: &str = "(){}<>!=/,";

/// Splits `text` into pieces.
pub fn pieces(text: &str) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut rest = text;
    let mut glued = false;
    while let Some(first) = rest.chars().next() {
        let escaped_quote = rest.starts_with("\\\"") || rest.starts_with("\\'");
        let idle = if escaped_quote { 1 } else { idle(rest) };
        if idle > 0 {
            glued &= rest.starts_with('\\');
            rest = &rest[idle..];
            continue;
        }
        let joint = joint(rest);
        let (kind, length) = match first {
            '\n' => (PieceKind::NewLine, 1),
            '#' => (PieceKind::Comment, comment(rest)),
            '"' | '\'' => (PieceKind::Quoted, quoted(rest, first)),
            _ if joint > 0 => (PieceKind::Continued, joint),
            _ => match pair(rest) {
                Some((sign, length)) => {
                    pieces.push(Piece { kind: PieceKind::Sign, text: sign.to_string(), glued });
                    (rest, glued) = (&rest[length..], true);
                    continue;
                }
                None if SIGNS.contains(first) => (PieceKind::Sign, 1),
                None if is_number(rest) || begins_word(first) => (PieceKind::Word, word(rest)),
                None if rest.starts_with("\\\\") => (PieceKind::Word, 2),
                None => (PieceKind::Word, first.len_utf8()),
            },
        };
        let piece = &rest[..length];
        let piece = match kind {
            // a backslash at the end of the text joins nothing
            PieceKind::Comment if length == rest.len() => {
                piece.trim_end_matches([' ', '\t', '\r', '\n', '\\'])
            }
            // an unterminated string
            PieceKind::Quoted if length == rest.len() => piece.trim_end_matches('\n'),
            PieceKind::Comment => trimmed(piece),
            _ => piece,
        };
        pieces.push(Piece { kind, text: piece.to_string(), glued });
        rest = &rest[length..];
        glued = !matches!(kind, PieceKind::NewLine | PieceKind::Continued);
    }
    pieces
}

/// Returns the length of the characters without meaning at the beginning of `text`. These
/// characters are blanks, the carriage return of a line end, and a backslash that does not belong
/// to a word.
fn idle(text: &str) -> usize {
    let mut chars = text.chars();
    match (chars.next(), chars.next()) {
        (Some(' ' | '\t'), _) | (Some('\r'), Some('\n')) | (Some('\\'), None) => 1,
        (Some('\\'), Some('\n' | '\\')) => 0,
        (Some('\\'), Some(next)) if joint(text) == 0 && ends_word(next) => 1,
        _ => 0,
    }
}

/// Returns the length of a backslash and the line end behind it, if `text` begins with them.
fn joint(text: &str) -> usize {
    ["\\\n", "\\\r\n"].iter().find(|joint| text.starts_with(**joint)).map_or(0, |joint| joint.len())
}

/// Returns the length of all joints at the beginning of `text`.
fn joints(text: &str) -> usize {
    let mut length = 0;
    while let more @ 1.. = joint(&text[length..]) {
        length += more;
    }
    length
}

/// Returns a sign of two characters, and its length in `text`. A joint may separate the characters.
fn pair(text: &str) -> Option<(&'static str, usize)> {
    PAIRS.into_iter().find_map(|pair| {
        let behind = text.strip_prefix(&pair[..1])?;
        let joint = joints(behind);
        behind[joint..].starts_with(&pair[1..]).then_some((pair, 2 + joint))
    })
}

fn comment(text: &str) -> usize {
    let mut rest = text;
    loop {
        let Some(at) = rest.find(['\n', '\\']) else { return text.len() };
        let joint = joint(&rest[at..]);
        let escaped = rest[at + 1..].chars().next().map_or(0, char::len_utf8);
        rest = match rest.as_bytes()[at] {
            b'\n' => return text.len() - rest.len() + at,
            _ if joint > 0 => &rest[at + joint..],
            _ => &rest[at + 1 + escaped..],
        };
    }
}

/// Returns a comment without trailing blanks. Keeps them if a backslash would join the next line.
fn trimmed(comment: &str) -> &str {
    let short = comment.trim_end_matches([' ', '\t', '\r']);
    if short.ends_with('\\') { comment } else { short }
}

fn quoted(text: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        if c == quote && !escaped {
            return at + 1;
        }
        escaped = c == '\\';
    }
    text.len()
}

/// Returns the length of a word. The word continues over a joint if the next line begins with a
/// part of it. Digits and macros always include the joint, because the next character decides
/// whether they are a number.
fn word(text: &str) -> usize {
    let mut length = 0;
    loop {
        let rest = &text[length..];
        let joint = joints(rest);
        let Some(next) = rest[joint..].chars().next() else { return length };
        if joint > 0 {
            // digits, ignoring joints
            let mut so_far = text[..length].trim_start_matches('-').bytes();
            let is_digit = |byte: u8| byte.is_ascii_digit() || b"\\\r\n".contains(&byte);
            let digits = text.starts_with('$') || so_far.all(is_digit);
            match next {
                ' ' | '\t' | '\r' | '\n' => return length,
                _ if ends_word(next) => return if digits { length + joint } else { length },
                _ if idle(&rest[joint..]) > 0 => return length,
                _ => length += joint,
            }
        } else if text.starts_with('$') && matches!(next, '"' | '\'') {
            // the macro decides whether a string begins here, so the remaining text stays as it is
            return text.trim_end_matches('\n').len();
        } else if length > 0 && (ends_word(next) || idle(rest) > 0) {
            return length;
        } else {
            length += next.len_utf8();
            if next == '\\' {
                // the character behind a backslash belongs to the word
                length += text[length..].chars().next().map_or(0, char::len_utf8);
            }
        }
    }
}

fn begins_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, ':' | '_' | '$')
}

fn is_number(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    digits.starts_with(|c: char| c.is_ascii_digit())
}

fn ends_word(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | '#') || SIGNS.contains(c)
}
