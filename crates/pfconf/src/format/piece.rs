//! A text cut into pieces without looking macros up. Pieces and what was between them are the whole
//! text; the rules are those of the lexer.

/// A piece of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    pub kind: Kind,
    /// As it stands in the text.
    pub text: String,
    /// Nothing stands between it and the piece before.
    pub glued: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A word, a number or a macro with everything that sticks to it.
    Word,
    Quoted,
    /// `{`, `!=`, `->` and the like.
    Sign,
    /// From `#` to the end of the line, or of the lines that a backslash joins to it.
    Comment,
    /// A backslash at the end of a line.
    Continued,
    NewLine,
}

impl Piece {
    pub fn is(&self, sign: &str) -> bool {
        self.kind == Kind::Sign && self.text == sign
    }

    /// Columns of its first line.
    pub fn width(&self) -> usize {
        self.text.split('\n').next().unwrap_or_default().chars().count()
    }

    /// Whether it is a character that begins no word.
    pub fn is_mark(&self) -> bool {
        self.kind == Kind::Word && !is_number(&self.text) && !self.text.starts_with(begins_word)
    }

    pub fn is_word(&self, words: &[&str]) -> bool {
        self.kind == Kind::Word && words.contains(&self.text.as_str())
    }
}

const PAIRS: [&str; 6] = ["!=", "<>", "<=", "><", ">=", "->"];
const SIGNS: &str = "(){}<>!=/,";

/// Cuts `text` into pieces.
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
            '\n' => (Kind::NewLine, 1),
            '#' => (Kind::Comment, comment(rest)),
            '"' | '\'' => (Kind::Quoted, quoted(rest, first)),
            _ if joint > 0 => (Kind::Continued, joint),
            _ => match pair(rest) {
                Some((sign, length)) => {
                    pieces.push(Piece { kind: Kind::Sign, text: sign.to_string(), glued });
                    (rest, glued) = (&rest[length..], true);
                    continue;
                }
                None if SIGNS.contains(first) => (Kind::Sign, 1),
                None if is_number(rest) || begins_word(first) => (Kind::Word, word(rest)),
                None if rest.starts_with("\\\\") => (Kind::Word, 2),
                None => (Kind::Word, first.len_utf8()),
            },
        };
        let piece = &rest[..length];
        let piece = match kind {
            // a backslash at the end of the text joins nothing
            Kind::Comment if length == rest.len() => {
                piece.trim_end_matches([' ', '\t', '\r', '\n', '\\'])
            }
            // a string that does not end
            Kind::Quoted if length == rest.len() => piece.trim_end_matches('\n'),
            Kind::Comment => trimmed(piece),
            _ => piece,
        };
        pieces.push(Piece { kind, text: piece.to_string(), glued });
        rest = &rest[length..];
        glued = !matches!(kind, Kind::NewLine | Kind::Continued);
    }
    pieces
}

/// Length of what means nothing at the beginning of `text`: blanks, the carriage return of a line
/// end, a backslash in front of what is no part of a word.
fn idle(text: &str) -> usize {
    let mut chars = text.chars();
    match (chars.next(), chars.next()) {
        (Some(' ' | '\t'), _) | (Some('\r'), Some('\n')) | (Some('\\'), None) => 1,
        (Some('\\'), Some('\n' | '\\')) => 0,
        (Some('\\'), Some(next)) if joint(text) == 0 && ends_word(next) => 1,
        _ => 0,
    }
}

/// Length of a backslash with the line end behind it, if `text` begins with them.
fn joint(text: &str) -> usize {
    ["\\\n", "\\\r\n"].iter().find(|joint| text.starts_with(**joint)).map_or(0, |joint| joint.len())
}

/// Length of all joints at the beginning of `text`.
fn joints(text: &str) -> usize {
    let mut length = 0;
    while let more @ 1.. = joint(&text[length..]) {
        length += more;
    }
    length
}

/// A sign of two characters, which may stand on two joined lines, and its length in `text`.
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

/// A comment without blanks at its end, unless that would make a backslash join the next line.
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

/// Length of a word, which goes on over a joint if the next line begins with a part of it. Digits,
/// and macros, take the joint with them in any case: what follows decides whether they are a
/// number.
fn word(text: &str) -> usize {
    let mut length = 0;
    loop {
        let rest = &text[length..];
        let joint = joints(rest);
        let Some(next) = rest[joint..].chars().next() else { return length };
        if joint > 0 {
            // without the joints in it
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
            // whether it begins a string depends on the macro: the rest stays as it is
            return text.trim_end_matches('\n').len();
        } else if length > 0 && (ends_word(next) || idle(rest) > 0) {
            return length;
        } else {
            length += next.len_utf8();
            if next == '\\' {
                // what a backslash precedes is a part of the word, too
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
