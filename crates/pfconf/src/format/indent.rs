//! Where a piece stands: in which statement, list and anchor.

use super::piece::{Kind, Piece};

/// What is open at a place of the text.
#[derive(Default)]
pub struct Indent {
    braces: Vec<Brace>,
    /// The statement's first word, empty at its beginning.
    statement: String,
    /// The line before ended in a backslash.
    continued: bool,
    /// The word, sign or string before.
    before: Option<Piece>,
    /// How far into `<name>` the place is.
    table_name: TableName,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Brace {
    List,
    /// Of an anchor: statements stand in it.
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

/// What a list in braces follows; an anchor's rules never follow these.
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

/// Deeper than this nothing is indented further.
const DEEPEST: usize = 8;

impl Indent {
    /// How many tabs a line begins with whose first piece is `first`.
    pub fn tabs(&self, first: &Piece) -> usize {
        let open = self.braces.len();
        let tabs = match self.braces.last() {
            Some(_) if first.is("}") => open - 1,
            Some(Brace::List) => open,
            _ => open + usize::from(self.continued),
        };
        tabs.min(DEEPEST)
    }

    /// Whether the place is in a `table` statement.
    pub fn in_table(&self) -> bool {
        self.statement == "table"
    }

    /// Whether a blank comes before `next`, if the place is between `<` and `>` of a table's name.
    pub fn in_table_name(&self, next: &Piece) -> Option<bool> {
        match self.table_name {
            TableName::Outside => None,
            TableName::Opened => Some(next.kind == Kind::Sign),
            TableName::Named => Some(!next.is(">")),
        }
    }

    /// Goes past a piece.
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
            TableName::Opened if piece.kind != Kind::Sign => TableName::Named,
            _ => TableName::Outside,
        };
        self.before = Some(piece.clone());
    }

    /// Goes past the end of a line.
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

    /// Whether a `<` here compares.
    fn compares(&self) -> bool {
        self.before.as_ref().is_some_and(|piece| piece.is_word(&["port", "user", "group"]))
    }
}
