//! Formats a pf.conf (`pfctl fmt`).
//!
//! The formatter works on pieces of the text and ignores their meaning. Only the space between
//! words changes. Macros are not replaced, and each comment and continued line stays with its
//! statement. The result has the same tokens as the text.

mod indent;
mod piece;
mod space;

use indent::Indent;
use piece::{Piece, PieceKind};

/// Most columns of a line of code.
const WIDTH: usize = 100;
const TAB: usize = 8;
/// Comments are aligned only if the code in front of them is at most this wide.
const COMMENT_COLUMN: usize = 64;

/// Returns the formatted text: canonical spacing, tabs inside braces, lines broken before column
/// 100, and at most one empty line in a row. Formatting the result changes nothing.
pub fn format(text: &str) -> String {
    let mut lines = Vec::new();
    let mut indent = Indent::default();
    for pieces in source_lines(piece::pieces(text)) {
        if pieces.is_empty() {
            indent.end_line(false);
            if lines.last().is_some_and(|line: &Line| !line.is_empty()) {
                lines.push(Line::default());
            }
        } else {
            lines.extend(broken(pieces, &mut indent));
        }
    }
    while lines.last().is_some_and(Line::is_empty) {
        lines.pop();
    }
    align_comments(&mut lines);
    lines.iter().map(Line::text).collect()
}

/// A line of the result.
#[derive(Default)]
struct Line {
    tabs: usize,
    code: String,
    comment: Option<String>,
    /// Column of a comment behind code.
    comment_column: usize,
    /// True if no blank may precede the comment, because the last word would become a number.
    glued: bool,
    /// True if a backslash ends the line.
    continued: bool,
}

impl Line {
    fn is_empty(&self) -> bool {
        self.code.is_empty() && self.comment.is_none()
    }

    /// Returns the number of columns up to the end of the code.
    fn width(&self) -> usize {
        let last = self.code.rsplit('\n').next().unwrap_or_default();
        let indent = if last.len() == self.code.len() { self.tabs * TAB } else { 0 };
        indent + last.chars().count()
    }

    /// True if the line has a comment that is aligned with those of its neighbours.
    fn is_alignable(&self) -> bool {
        self.comment.is_some()
            && !self.code.is_empty()
            && !self.glued
            && !self.code.contains('\n')
            && self.width() <= COMMENT_COLUMN
    }

    fn text(&self) -> String {
        if self.is_empty() {
            return "\n".to_string();
        }
        let mut text = "\t".repeat(self.tabs) + &self.code;
        if let Some(comment) = &self.comment {
            let gap = match (self.code.is_empty(), self.glued) {
                (true, _) | (_, true) => 0,
                _ => self.comment_column.saturating_sub(self.width()).max(1),
            };
            text += &" ".repeat(gap);
            text += comment;
        }
        text + if self.continued { " \\\n" } else { "\n" }
    }
}

/// Groups pieces into lines. A line ends at a line end outside of quotes and comments. A continued
/// line ends in [`PieceKind::Continued`].
fn source_lines(pieces: Vec<Piece>) -> Vec<Vec<Piece>> {
    let mut lines = vec![Vec::new()];
    for piece in pieces {
        let ends = matches!(piece.kind, PieceKind::NewLine | PieceKind::Continued);
        let line = lines.last_mut().expect("there is always one");
        if piece.kind != PieceKind::NewLine {
            line.push(piece);
        }
        if ends {
            lines.push(Vec::new());
        }
    }
    drop_idle_continuations(&mut lines);
    lines
}

/// Removes backslashes that join nothing.
fn drop_idle_continuations(lines: &mut Vec<Vec<Piece>>) {
    lines.retain(|line| !matches!(line.as_slice(), [one] if one.kind == PieceKind::Continued));
    for at in 1..lines.len() {
        if lines[at].is_empty() {
            lines[at - 1].pop_if(|last| last.kind == PieceKind::Continued);
        }
    }
}

/// Formats a line of the source, as several lines if it is too long.
fn broken(pieces: Vec<Piece>, indent: &mut Indent) -> Vec<Line> {
    let mut lines = Vec::new();
    let mut line = Line { tabs: indent.tabs(&pieces[0]), ..Line::default() };
    for (at, piece) in pieces.iter().enumerate() {
        let gap = at > 0 && space::between(&pieces[at - 1], piece, indent);
        match piece.kind {
            PieceKind::Continued => line.continued = true,
            PieceKind::Comment => {
                line.glued = !gap;
                line.comment = Some(piece.text.clone());
            }
            _ => {
                let behind = match pieces.get(at + 1) {
                    None => 0,
                    Some(next) if next.kind == PieceKind::Comment => 0,
                    Some(next) if next.is(",") => ", \\".len(),
                    Some(_) => " \\".len(),
                };
                if gap && line.width() + 1 + piece.width() + behind > WIDTH {
                    indent.end_line(true);
                    let next = Line { tabs: indent.tabs(piece), ..Line::default() };
                    let full = std::mem::replace(&mut line, next);
                    lines.push(Line { continued: true, ..full });
                } else if gap {
                    line.code.push(' ');
                }
                line.code += &piece.text;
                indent.pass(piece);
            }
        }
    }
    indent.end_line(line.continued);
    lines.push(line);
    lines
}

/// Aligns the comments behind code of neighbouring lines.
fn align_comments(lines: &mut [Line]) {
    for group in lines.chunk_by_mut(|a, b| a.is_alignable() && b.is_alignable()) {
        let column = group.iter().map(Line::width).max().unwrap_or_default() + 2;
        for line in group {
            line.comment_column = column;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::format;
    use crate::lexer::Lexer;
    use crate::macros::Macros;
    use crate::token::TokenKind;

    #[track_caller]
    fn becomes(input: &str, output: &str) {
        assert_eq!(format(input), output, "{input}");
        assert_eq!(format(output), output, "it is not left alone");
    }

    #[test]
    fn words_and_signs_have_blanks_between_them() {
        becomes(
            "pass  in on{em0,em1}proto tcp from <t>to ! 10/8 port{22,>1023}\n",
            "pass in on { em0, em1 } proto tcp from <t> to ! 10/8 port { 22, > 1023 }\n",
        );
        becomes("ext_if=\"em0\"", "ext_if = \"em0\"\n");
        becomes("table <t>{ 10/8 ! 10.1/16 }\n", "table <t> { 10/8 !10.1/16 }\n");
        becomes("pass flags S /SA keep state( max 5 )", "pass flags S/SA keep state (max 5)\n");
        becomes("pass flags /SFRA", "pass flags /SFRA\n");
        becomes("pass from (em0) to (em0:network) / 24", "pass from (em0) to (em0:network)/24\n");
    }

    #[test]
    fn text_directly_behind_a_macro_stays_there() {
        becomes("pass from $if:network to $net/8", "pass from $if:network to $net/8\n");
        becomes("pass to $a:$b", "pass to $a:$b\n");
    }

    #[test]
    fn digits_in_front_of_a_sign_are_no_number() {
        becomes("pass proto tcp to port 5><9", "pass proto tcp to port 5>< 9\n");
        becomes("pass proto tcp to port 5  ><  9", "pass proto tcp to port 5 >< 9\n");
    }

    #[test]
    fn empty_lines_do_not_pile_up() {
        becomes("\n\n block\n\n\n\npass\n\n", "block\n\npass\n");
        becomes("", "");
    }

    #[test]
    fn the_rules_of_an_anchor_are_indented() {
        becomes(
            "anchor \"a\" in {\nblock\nanchor {\n  pass # inner\n}\n} # end\npass\n",
            "anchor \"a\" in {\n\tblock\n\tanchor {\n\t\tpass  # inner\n\t}\n}  # end\npass\n",
        );
        becomes(
            "anchor on {\n em0\n em1 } {\nblock\n}\n",
            "anchor on {\n\tem0\n\tem1 } {\n\tblock\n}\n",
        );
    }

    #[test]
    fn deep_nesting_is_not_indented_without_end() {
        let deep = "anchor {\n".repeat(2000);
        assert!(format(&deep).len() < 2000 * "\t\t\t\t\t\t\t\tanchor {\n".len());
    }

    #[test]
    fn lists_over_several_lines_are_indented() {
        becomes(
            "table <t> {\n10/8 # ten\n  ! 10.1/16\n}\n",
            "table <t> {\n\t10/8  # ten\n\t!10.1/16\n}\n",
        );
    }

    #[test]
    fn continued_lines_stay_with_their_statement() {
        becomes("pass in \\\n on em0 \\\nproto tcp\n", "pass in \\\n\ton em0 \\\n\tproto tcp\n");
        becomes("pass in \\\n\nblock", "pass in\n\nblock\n");
        becomes("# a comment \\\n   goes on\npass", "# a comment \\\n   goes on\npass\n");
        becomes("block # a \\ \npass", "block  # a \\ \npass\n");
        becomes("pa\\\nss", "pa\\\nss\n");
        becomes("10\\\n10\\\n<", "10\\\n10\\\n<\n");
    }

    #[test]
    fn comments_of_neighbours_are_aligned() {
        becomes(
            "a = 1 # one\nlonger = 2   # two\n\nb = 3 # three\n",
            "a = 1       # one\nlonger = 2  # two\n\nb = 3  # three\n",
        );
    }

    #[test]
    fn long_lines_are_broken_between_words() {
        let list = (0..9).map(|n| format!("192.168.100.{n}")).collect::<Vec<_>>();
        let broken =
            format!("table <t> {{ {}, \\\n\t{} }}\n", list[..5].join(", "), list[5..].join(", "));
        becomes(&format!("table <t> {{ {} }}", list.join(",")), &broken);
        let word = "x".repeat(120);
        becomes(&format!("label {word}"), &format!("label \\\n\t{word}\n"));
    }

    #[test]
    fn strings_stay_as_they_are() {
        becomes("x = \"a  {b\"\n", "x = \"a  {b\"\n");
        becomes("x = \"a\n   b\"\n", "x = \"a\n   b\"\n");
        becomes("x = 'it\\'s'\n", "x = 'it\\'s'\n");
    }

    #[test]
    fn line_ends_of_dos_become_line_feeds() {
        becomes("block\r\npass \\\r\nin\r\n", "block\npass \\\n\tin\n");
    }

    /// Returns the tokens of a text, with runs of line ends merged. `None` if the text has an
    /// error.
    fn tokens(text: &str) -> Option<Vec<TokenKind>> {
        let given = [("m", "80"), ("i", "em0"), ("l", "{ a b }")];
        let given = given.map(|(name, value)| (name.to_string(), value.to_string()));
        let mut lexer = Lexer::new("stdin", text, Macros::given(&given));
        let mut kinds = vec![TokenKind::NewLine];
        loop {
            match lexer.token().kind {
                TokenKind::End => return lexer.errors.is_empty().then_some(kinds),
                TokenKind::Bad => return None,
                TokenKind::NewLine if kinds.last() == Some(&TokenKind::NewLine) => {}
                kind => kinds.push(kind),
            }
        }
    }

    const PIECES: &[&str] = &[
        " ", " ", " ", "\t", "\n", "\n", "\\\n", "\\ ", "# no", "#", "\"q q\"", "'", "\"", "pass",
        "in", "em0", "10", "8", "-5", "- ", "-> ", "10.0.0.1", "$m", "$i", "$l", ":network", "{",
        "}", "(", ")", "<", ">", "=", "!", "/", ",", "table", "anchor", "flags", "port", "a\\\nb",
        "%", "*", "x",
    ];

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(3000))]

        #[test]
        fn no_token_changes(pieces in prop::collection::vec(prop::sample::select(PIECES), 0..30)) {
            let text = pieces.concat();
            if let Some(before) = tokens(&text) {
                let formatted = format(&text);
                prop_assert_eq!(tokens(&formatted), Some(before), "{:?}: {:?}", text, formatted);
                prop_assert_eq!(format(&formatted), formatted, "{:?}", text);
            }
        }
    }
}
