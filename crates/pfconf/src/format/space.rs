//! Whether a blank stands between two pieces.

use super::indent::Indent;
use super::piece::{Kind, Piece};

/// Whether a blank comes between `left` and `right`.
pub fn between(left: &Piece, right: &Piece, context: &Indent) -> bool {
    if right.kind == Kind::Continued {
        return false;
    }
    if let Some(blank) = unchanged_behind_number(left, right) {
        return blank;
    }
    if right.kind == Kind::Comment {
        return true;
    }
    if right.is(",") || right.is(")") || left.is("(") {
        return false;
    }
    if left.is("/") || right.is("/") {
        // the word `flags` may be followed by a slash
        return right.is("/") && left.is_word(&["flags"]);
    }
    if left.is_mark() {
        return !right.glued;
    }
    if let Some(blank) = context.in_table_name(right) {
        return blank;
    }
    if left.is("!") && context.in_table() {
        return right.kind != Kind::Word && right.kind != Kind::Quoted;
    }
    // `(em0):network`
    !(left.is(")") && right.glued && right.text.starts_with(':'))
}

/// Digits are a number in front of a blank and of some signs only, otherwise a word; and a macro
/// may be a number. What stood behind them stays as it was unless it makes no difference.
fn unchanged_behind_number(left: &Piece, right: &Piece) -> Option<bool> {
    let ends_in_digit = left.text.trim_end_matches("\\\n").ends_with(|c: char| c.is_ascii_digit());
    let may_be_number = left.kind == Kind::Word && (ends_in_digit || left.text.starts_with('$'));
    let joined = left.text.ends_with('\n');
    let alike = !joined && [")", ",", "/", "}", "="].iter().any(|sign| right.is(sign));
    (may_be_number && !alike).then_some(!right.glued)
}
