//! The tokens that the lexer produces.

/// A word or sign of a pf.conf with its place.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Token {
    /// Kind and value of the token.
    pub kind: TokenKind,
    /// Place of the token.
    pub place: Place,
}

/// The place of a token. A token from a macro has the place where the macro is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Place {
    /// Index of the text, in the order in which texts were opened.
    pub source: usize,
    /// Line, from 1.
    pub line: u32,
    /// Byte offset in the text.
    pub offset: usize,
    /// Length in bytes.
    pub width: usize,
}

/// The kinds of tokens.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum TokenKind {
    /// A reserved word.
    Keyword(&'static str),
    /// Any other word, or a quoted string.
    String(String),
    /// A decimal number.
    Number(i64),
    /// `->`
    Arrow,
    /// A sign of one character.
    Sign(char),
    /// `!=`
    NotEqual,
    /// `<=`
    LessEqual,
    /// `>=`
    GreaterEqual,
    /// `><`
    Inside,
    /// `<>`
    Outside,
    /// End of a line (and of a statement).
    NewLine,
    /// An invalid token, about which the lexer has reported an error.
    Bad,
    /// End of the text.
    #[default]
    End,
}

/// Reserved words in sorted order. As names they must be quoted.
#[rustfmt::skip]
pub const KEYWORDS: [&str; 121] = [
    "af-to", "all", "allow-opts", "anchor", "antispoof", "any", "bandwidth", "binat-to", "bitmask",
    "block", "block-policy", "burst", "code", "debug", "default", "delay", "divert-packet",
    "divert-reply", "divert-to", "drop", "dup-to", "file", "fingerprints", "flags", "floating",
    "flows", "flush", "for", "fragment", "from", "global", "group", "hostid", "icmp-type",
    "icmp6-type", "if-bound", "in", "include", "inet", "inet6", "keep", "label", "least-states",
    "limit", "load", "log", "loginterface", "match", "matches", "max", "max-mss", "max-pkt-rate",
    "max-src-conn", "max-src-conn-rate", "max-src-nodes", "max-src-states", "min", "min-ttl",
    "modulate", "nat-to", "no", "no-df", "no-route", "no-sync", "on", "once", "optimization", "os",
    "out", "overload", "parent", "pass", "pflow", "port", "prio", "probability", "proto", "qlimit",
    "quantum", "queue", "quick", "random", "random-id", "rdomain", "rdr-to", "reassemble",
    "received-on", "reply-to", "return", "return-icmp", "return-icmp6", "return-rst", "round-robin",
    "route", "route-to", "rtable", "rule", "ruleset-optimization", "scrub", "set", "skip", "sloppy",
    "source-hash", "source-track", "state", "state-defaults", "state-policy", "static-port",
    "sticky-address", "syncookies", "synproxy", "table", "tag", "tagged", "timeout", "to", "tos",
    "ttl", "urpf-failed", "user", "weight",
];

/// Returns the reserved word that equals `word`, if there is one.
pub fn keyword(word: &[u8]) -> Option<&'static str> {
    let first = word.first()?.checked_sub(b'a')?;
    let (start, end) = *BY_LETTER.get(usize::from(first))?;
    KEYWORDS[start..end].iter().find(|keyword| keyword.as_bytes() == word).copied()
}

/// Range in `KEYWORDS` of the words with each first letter; the end is exclusive.
const BY_LETTER: [(usize, usize); 26] = {
    let mut places = [(0, 0); 26];
    let mut index = 0;
    while index < KEYWORDS.len() {
        let letter = (KEYWORDS[index].as_bytes()[0] - b'a') as usize;
        if places[letter].1 == 0 {
            places[letter].0 = index;
        }
        index += 1;
        places[letter].1 = index;
    }
    places
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keywords_are_sorted_so_that_they_are_found() {
        assert!(KEYWORDS.is_sorted());
        for word in KEYWORDS {
            assert_eq!(keyword(word.as_bytes()), Some(word));
        }
        for word in ["passed", "", "Pass", "~"] {
            assert_eq!(keyword(word.as_bytes()), None);
        }
    }

    #[test]
    fn editors_colour_every_keyword() {
        let editors = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../editors");
        for (file, separators) in [
            ("vim/syntax/skipstep-pf.vim", [' ', '\n']),
            ("textmate/skipstep-pf.tmLanguage.json", ['|', '(']),
        ] {
            let text = std::fs::read_to_string(editors.join(file)).unwrap();
            let words: Vec<&str> =
                text.split(|c| separators.contains(&c) || matches!(c, ':' | ')')).collect();
            for keyword in KEYWORDS {
                assert!(words.contains(&keyword), "{file} does not know `{keyword}`");
            }
        }
    }
}
