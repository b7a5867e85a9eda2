//! Blocks in braces, which contain text in another language.

use crate::line::{Fault, Line, Parsed, words};

/// A result whose error comes with the index of its line, from 0.
pub(crate) type Placed<T> = Result<T, (usize, Fault)>;

/// A part of a block's text: a line, or a part of a line that ends with `;`.
#[derive(Debug)]
pub(crate) struct Piece {
    /// Index of the line in the file, from 0.
    pub line: usize,
    /// Number of characters before the piece on its line.
    pub column: usize,
    pub text: String,
}

/// Reads the block that begins on line `at`. Returns its pieces and the index of the line behind
/// it. Braces nest, except in quotes and comments.
pub(crate) fn read(lines: &[&str], at: usize) -> Placed<(Vec<Piece>, usize)> {
    let opening = lines[at];
    let fault =
        |line: usize, column, width, message: &str| (line, Fault::new(message, column, width));
    let Some(brace) = opening.chars().position(|character| character == '{') else {
        return Err(fault(at, opening.chars().count() + 1, 1, "`{` is missing"));
    };
    let mut pieces = Vec::new();
    let mut depth = 1;
    for (line, text) in lines.iter().enumerate().skip(at) {
        let skipped = if line == at { brace + 1 } else { 0 };
        let mut piece = Piece { line, column: skipped, text: String::new() };
        let mut quoted = false;
        let mut comment = false;
        let mut characters = text.chars().enumerate().skip(skipped);
        while let Some((column, character)) = characters.next() {
            match character {
                '"' if !comment => quoted = !quoted,
                '#' if !quoted => comment = true,
                '{' if !quoted && !comment => depth += 1,
                '}' if !quoted && !comment => depth -= 1,
                ';' if !quoted && !comment => {
                    pieces.push(std::mem::replace(
                        &mut piece,
                        Piece { line, column: column + 1, text: String::new() },
                    ));
                    continue;
                }
                _ => {}
            }
            if depth == 0 {
                pieces.push(piece);
                let rest: String = characters.map(|(_, character)| character).collect();
                if !rest.trim().is_empty() && !rest.trim_start().starts_with('#') {
                    return Err(fault(
                        line,
                        column + 2,
                        rest.chars().count(),
                        "nothing may follow the closing brace",
                    ));
                }
                while pieces.last().is_some_and(|piece| piece.text.trim().is_empty()) {
                    pieces.pop();
                }
                let blank = pieces.iter().take_while(|piece| piece.text.trim().is_empty()).count();
                pieces.drain(..blank);
                return Ok((pieces, line + 1));
            }
            piece.text.push(character);
        }
        pieces.push(piece);
    }
    Err(fault(at, brace + 1, 1, "this brace is not closed"))
}

/// Reads every piece of a block that is not blank. `read` also gets the number of entries before.
pub(crate) fn entries<T>(
    pieces: &[Piece],
    read: impl Fn(usize, &mut Line) -> Parsed<T>,
) -> Placed<Vec<T>> {
    let mut entries = Vec::new();
    for piece in pieces {
        let place = |mut fault: Fault| {
            fault.column += piece.column;
            (piece.line, fault)
        };
        let all = words(&piece.text).map_err(place)?;
        if !all.is_empty() {
            let mut line = Line::new(&all, piece.text.chars().count());
            let entry =
                read(entries.len(), &mut line).and_then(|entry| line.finish().map(|()| entry));
            entries.push(entry.map_err(place)?);
        }
    }
    Ok(entries)
}
