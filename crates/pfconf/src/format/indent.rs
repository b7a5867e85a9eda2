//! The statement, lists and anchors that contain a piece.

use super::piece::{Piece, PieceKind};

/// The open braces and the statement at a position in the text.
#[derive(Default)]
pub struct Indent {
    braces: Vec<Brace>,
    /// First word of the statement; empty at its beginning.
    statement: String,
    /// True if a backslash ended the previous line.
    continued: bool,
    /// The previous word, sign or string.
    before: Option<Piece>,
    /// The state of reading `<name>`.
    table_name: TableName,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Brace {
    List,
    /// The body of an anchor, which contains statements.
    Body,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum TableName {
    #[default]
    Outside,
    /// Behind `<`.
    Opened,
    /// Behind the name.
    Named,
}

/// Words that a list in braces may follow, but not the body of an anchor.
const LIST_OPENERS: [&str; 11] = [
    "from",
    "to",
    "on",
    "proto",
    "port",
    "user",
    "group",
    "os",
    "received-on",
    "icmp-type",
    "icmp6-type",
];

/// Most tabs of a line.
const DEEPEST: usize = 8;

impl Indent {
    /// Returns the number of tabs in front of a line whose first piece is `first`.
    pub fn tabs(&self, first: &Piece) -> usize {
        let open = self.braces.len();
        let tabs = match self.braces.last() {
            Some(_) if first.is("}") => open - 1,
            Some(Brace::List) => open,
            _ => open + usize::from(self.continued),
        };
        tabs.min(DEEPEST)
    }

    /// True inside of a `table` statement.
    pub fn in_table(&self) -> bool {
        self.statement == "table"
    }

    /// Returns true if a blank precedes `next` between the `<` and `>` of a table name; `None`
    /// elsewhere.
    pub fn in_table_name(&self, next: &Piece) -> Option<bool> {
        match self.table_name {
            TableName::Outside => None,
            TableName::Opened => Some(next.kind == PieceKind::Sign),
            TableName::Named => Some(!next.is(">")),
        }
    }

    /// Moves past a piece.
    pub fn pass(&mut self, piece: &Piece) {
        if self.statement.is_empty() {
            self.statement.clone_from(&piece.text);
        }
        if piece.is("{") {
            let brace = if self.opens_body() { Brace::Body } else { Brace::List };
            self.braces.push(brace);
        } else if piece.is("}") {
            self.braces.pop();
        }
        self.table_name = match self.table_name {
            TableName::Outside if piece.is("<") && !self.compares() => TableName::Opened,
            TableName::Opened if piece.kind != PieceKind::Sign => TableName::Named,
            _ => TableName::Outside,
        };
        self.before = Some(piece.clone());
    }

    /// Moves past the end of a line.
    pub fn end_line(&mut self, continued: bool) {
        self.continued = continued;
        if !continued && self.braces.last() != Some(&Brace::List) {
            self.statement.clear();
            self.before = None;
        }
    }

    fn opens_body(&self) -> bool {
        let opens_list = |piece: &Piece| piece.is_word(&LIST_OPENERS);
        self.statement == "anchor" && !self.before.as_ref().is_some_and(opens_list)
    }

    /// True if a `<` here would be an operator.
    fn compares(&self) -> bool {
        self.before.as_ref().is_some_and(|piece| piece.is_word(&["port", "user", "group"]))
    }
}
