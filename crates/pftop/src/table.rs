//! Tables of rows and columns, as lines of a given width.

use std::cmp::Ordering;

use skipstep_ruleset::RuleId;
use unicode_width::UnicodeWidthStr;

use crate::glyphs::Glyphs;
use crate::order::Order;

/// A column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Column {
    /// Title.
    pub title: &'static str,
    /// Least width. If the screen has no room for it, the column and all columns behind it are left
    /// out.
    pub least: usize,
    /// Width of the longest text. Columns share the room that is left, up to this width.
    pub most: usize,
    /// True if texts stand at the right end.
    pub is_right: bool,
    /// True if other columns get the room that is left first.
    pub is_later: bool,
}

impl Column {
    /// Makes a column with texts at its left end.
    pub const fn left(title: &'static str, least: usize, most: usize) -> Column {
        Column { title, least, most, is_right: false, is_later: false }
    }

    /// Makes a column with texts at its right end.
    pub const fn right(title: &'static str, least: usize, most: usize) -> Column {
        Column { title, least, most, is_right: true, is_later: false }
    }

    /// Lets other columns grow first.
    pub const fn later(self) -> Column {
        Column { is_later: true, ..self }
    }
}

/// The meaning of a text, which selects its colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Tone {
    /// Any text.
    #[default]
    Plain,
    /// Packets pass.
    Pass,
    /// Packets are dropped, or something needs attention.
    Block,
    /// A title.
    Title,
    /// A bar.
    Bar,
}

/// The contents of a row in a column.
#[derive(Debug, Clone, PartialEq)]
pub enum Cell {
    /// A text, which is cut off if it is too long.
    Text(String, Tone),
    /// A bar, by its share of the column's width.
    Bar(f64),
}

impl Cell {
    /// Makes a cell with a plain text.
    pub fn plain(text: impl Into<String>) -> Cell {
        Cell::Text(text.into(), Tone::Plain)
    }
}

/// A part of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Span {
    /// The text, which has only visible characters.
    pub text: String,
    /// Its meaning.
    pub tone: Tone,
}

/// A line of the screen.
pub type Line = Vec<Span>;

/// Returns a line with one text.
pub fn line(text: impl Into<String>, tone: Tone) -> Line {
    vec![Span { text: text.into(), tone }]
}

/// The object that a row is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Subject {
    /// A state: its id, its text, and the rule that made it.
    State {
        /// Id of the state.
        id: u64,
        /// The state as `pfctl -ss` prints it.
        text: String,
        /// Rule that made the state; `None` for the default rule or an orphaned one.
        rule: Option<RuleId>,
    },
    /// A rule.
    Rule(RuleId),
    /// An interface.
    Interface(String),
    /// Dropped packets of a rule; `None` if no rule decided.
    Drop(Option<RuleId>),
    /// Another object.
    Other,
}

/// The rows of a view.
pub trait Rows {
    /// Returns the columns, the most important ones first.
    fn columns(&self) -> &[Column];

    /// Returns the number of rows.
    fn len(&self) -> usize;

    /// True if there is no row.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Puts the first `end` rows of an order in their places. Rows behind may have any place.
    fn arrange(&mut self, order: Order, reverse: bool, end: usize);

    /// Returns the contents of a column for the row in a place. `width` is the column's width in
    /// characters.
    fn cell(&self, place: usize, column: usize, width: usize) -> Cell;

    /// Returns two lines about the row in a place.
    fn details(&self, place: usize) -> [String; 2];

    /// Returns the object of the row in a place.
    fn subject(&self, place: usize) -> Subject;

    /// Returns the place of a rule's row.
    fn place_of(&self, _rule: &RuleId) -> Option<usize> {
        None
    }
}

/// Sorts the numbers of rows, but only as far as the first `end` ones are needed. Equal rows stay
/// in the order of their numbers.
pub fn sort_first(rows: &mut [u32], end: usize, compare: impl Fn(u32, u32) -> Ordering) {
    let compare = |a: &u32, b: &u32| compare(*a, *b).then(a.cmp(b));
    let end = end.min(rows.len());
    if end == 0 {
        return;
    }
    if end < rows.len() {
        rows.select_nth_unstable_by(end - 1, compare);
    }
    rows[..end].sort_unstable_by(compare);
}

/// Returns the widths of the columns that fit in `width` characters, with a blank between two.
pub fn layout(columns: &[Column], width: usize) -> Vec<usize> {
    let mut widths: Vec<usize> = Vec::new();
    let mut used = 0;
    for column in columns {
        let needed = column.least + usize::from(!widths.is_empty());
        if used + needed > width {
            break;
        }
        used += needed;
        widths.push(column.least);
    }
    let mut left = width - used;
    for is_later in [false, true] {
        let both = widths.iter_mut().zip(columns);
        let growing = both.filter(|(_, column)| column.is_later == is_later);
        left = grow(growing.map(|(width, column)| (width, column.most)).collect(), left);
    }
    widths
}

/// Lets columns grow evenly up to their limits, by at most `left` characters altogether. Returns
/// the rest.
fn grow(mut columns: Vec<(&mut usize, usize)>, mut left: usize) -> usize {
    while left > 0 {
        columns.retain(|(width, most)| **width < *most);
        if columns.is_empty() {
            break;
        }
        let share = (left / columns.len()).max(1);
        for (width, most) in &mut columns {
            let more = share.min(left).min(*most - **width);
            **width += more;
            left -= more;
        }
    }
    left
}

/// Returns the line with the titles of the columns.
pub fn titles(columns: &[Column], widths: &[usize], glyphs: Glyphs) -> Line {
    let cells = columns.iter().zip(widths).map(|(column, width)| Span {
        text: fit(column.title, *width, column.is_right, glyphs),
        tone: Tone::Title,
    });
    joined(cells, Tone::Title)
}

/// Returns the line of the row in a place.
pub fn row(rows: &dyn Rows, place: usize, widths: &[usize], glyphs: Glyphs) -> Line {
    let cells = rows.columns().iter().zip(widths).enumerate().map(|(index, (column, width))| {
        let (text, tone) = match rows.cell(place, index, *width) {
            Cell::Text(text, tone) => (glyphs.clean(&text), tone),
            Cell::Bar(share) => (glyphs.bar(share, *width), Tone::Bar),
        };
        Span { text: fit(&text, *width, column.is_right, glyphs), tone }
    });
    joined(cells, Tone::Plain)
}

fn joined(cells: impl Iterator<Item = Span>, between: Tone) -> Line {
    let mut line = Line::new();
    for cell in cells {
        if !line.is_empty() {
            line.push(Span { text: " ".into(), tone: between });
        }
        line.push(cell);
    }
    line
}

/// Cuts a text off, or fills it up with blanks.
fn fit(text: &str, width: usize, is_right: bool, glyphs: Glyphs) -> String {
    let text = glyphs.cut(text, width);
    let blanks = " ".repeat(width.saturating_sub(text.width()));
    if is_right { blanks + &text } else { text + &blanks }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLUMNS: [Column; 3] =
        [Column::left("A", 4, 4), Column::right("B", 5, 20).later(), Column::left("C", 10, 100)];

    #[test]
    fn columns_share_the_width() {
        assert_eq!(layout(&COLUMNS, 3), [0; 0]);
        assert_eq!(layout(&COLUMNS, 10), [4, 5]);
        assert_eq!(layout(&COLUMNS, 20), [4, 15], "the third column has no room");
        assert_eq!(layout(&COLUMNS, 21), [4, 5, 10]);
        assert_eq!(layout(&COLUMNS, 41), [4, 5, 30], "the second column grows later");
        assert_eq!(layout(&COLUMNS, 120), [4, 14, 100]);
        assert_eq!(layout(&COLUMNS, 500), [4, 20, 100]);
        for width in 21..300 {
            let widths = layout(&COLUMNS, width);
            assert_eq!(widths.iter().sum::<usize>() + 2, width.min(126));
        }
    }

    #[test]
    fn only_the_first_rows_are_sorted() {
        let values = [5u32, 1, 9, 7, 3, 9, 0];
        let mut rows: Vec<u32> = (0..7).collect();
        sort_first(&mut rows, 3, |a, b| values[b as usize].cmp(&values[a as usize]));
        assert_eq!(rows[..3], [2, 5, 3]);
        sort_first(&mut rows, 99, |a, b| values[a as usize].cmp(&values[b as usize]));
        assert_eq!(rows, [6, 1, 4, 0, 3, 2, 5]);
        sort_first(&mut [], 3, |_, _| Ordering::Equal);
    }

    #[test]
    fn texts_fit_their_column() {
        assert_eq!(fit("em0", 5, false, Glyphs::ASCII), "em0  ");
        assert_eq!(fit("12", 5, true, Glyphs::ASCII), "   12");
        assert_eq!(fit("interface", 5, true, Glyphs::ASCII), "inte~");
    }
}
