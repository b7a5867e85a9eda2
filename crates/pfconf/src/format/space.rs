//! The space between two pieces.

use super::indent::Indent;
use super::piece::{Piece, PieceKind};

/// True if a blank belongs between `left` and `right`.
pub fn between(left: &Piece, right: &Piece, context: &Indent) -> bool {
    if right.kind == PieceKind::Continued {
        return false;
    }
    if let Some(blank) = unchanged_behind_number(left, right) {
        return blank;
    }
    if right.kind == PieceKind::Comment {
        return true;
    }
    if right.is(",") || right.is(")") || left.is("(") {
        return false;
    }
    if left.is("/") || right.is("/") {
        // a slash may follow the word `flags`
        return right.is("/") && left.is_word(&["flags"]);
    }
    if left.is_mark() {
        return !right.glued;
    }
    if let Some(blank) = context.in_table_name(right) {
        return blank;
    }
    if left.is("!") && context.in_table() {
        return right.kind != PieceKind::Word && right.kind != PieceKind::Quoted;
    }
    // `(em0):network`
    !(left.is(")") && right.glued && right.text.starts_with(':'))
}

/// Returns the present spacing behind digits or a macro, `None` where it does not matter. Digits
/// are a number only before a blank and some signs, otherwise a word; a macro may be a number.
fn unchanged_behind_number(left: &Piece, right: &Piece) -> Option<bool> {
    let ends_in_digit = left.text.trim_end_matches("\\\n").ends_with(|c: char| c.is_ascii_digit());
    let may_be_number =
        left.kind == PieceKind::Word && (ends_in_digit || left.text.starts_with('$'));
    let joined = left.text.ends_with('\n');
    let alike = !joined && [")", ",", "/", "}", "="].iter().any(|sign| right.is(sign));
    (may_be_number && !alike).then_some(!right.glued)
}
