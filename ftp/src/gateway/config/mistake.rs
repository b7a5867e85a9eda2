//! Errors of a configuration, with their position.

use std::fmt;
use std::ops::Range;

/// An error in a text. It prints as `file:line: problem`, the line with a mark, and a help text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mistake {
    file: String,
    line: usize,
    what: String,
    /// The line of the text that has the error; `marked` is the part to mark, in characters.
    shown: String,
    marked: Range<usize>,
    help: String,
}

impl Mistake {
    /// Describes an error at the bytes `at` of `text`.
    pub(super) fn new(file: &str, text: &str, at: Range<usize>, what: &str, help: &str) -> Mistake {
        let start = text.floor_char_boundary(at.start);
        let line_start = text[..start].rfind('\n').map_or(0, |end| end + 1);
        let line_end = text[start..].find('\n').map_or(text.len(), |end| start + end);
        let end = text.floor_char_boundary(at.end).clamp(start, line_end);
        let first = text[line_start..start].chars().count();
        Mistake {
            file: file.to_string(),
            line: text[..line_start].matches('\n').count() + 1,
            what: what.replace('\n', " "),
            shown: text[line_start..line_end].replace('\t', " "),
            marked: first..first + text[start..end].chars().count().max(1),
            help: help.to_string(),
        }
    }
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Mistake { file, line, what, shown, marked, help } = self;
        writeln!(f, "{file}:{line}: {what}")?;
        writeln!(f, "  {shown}")?;
        writeln!(
            f,
            "  {:start$}{:^<length$}",
            "",
            "^",
            start = marked.start,
            length = marked.len()
        )?;
        write!(f, "help: {help}")
    }
}

impl std::error::Error for Mistake {}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str, at: Range<usize>) -> String {
        Mistake::new("gw", text, at, "wrong", "better").to_string()
    }

    #[test]
    fn the_mark_stands_under_what_is_meant() {
        assert_eq!(shown("a = 1\nbee = 2\n", 6..9), "gw:2: wrong\n  bee = 2\n  ^^^\nhelp: better");
        assert_eq!(shown("é = 1", 5..6), "gw:1: wrong\n  é = 1\n      ^\nhelp: better");
    }

    #[test]
    fn a_place_may_be_anywhere() {
        // at the end, behind the end, within a character, over several lines
        assert_eq!(shown("a", 1..1), "gw:1: wrong\n  a\n   ^\nhelp: better");
        assert_eq!(shown("", 7..9), "gw:1: wrong\n  \n  ^\nhelp: better");
        assert_eq!(shown("é", 1..2), "gw:1: wrong\n  é\n  ^\nhelp: better");
        assert_eq!(shown("ab\ncd", 1..5), "gw:1: wrong\n  ab\n   ^\nhelp: better");
    }
}
