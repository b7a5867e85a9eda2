//! Rule sets after parsing: every list expanded, every name resolved, nothing left to guess.
//!
//! `pfconf` makes a [`Ruleset`] from text, `classifier` turns it into the image the kernel walks,
//! `model` evaluates it directly. This crate knows neither text nor kernel.

pub mod address;
pub mod interface;
pub mod options;
pub mod reason;
pub mod rule;
pub mod skip;
pub mod table;

use serde::{Deserialize, Serialize};

pub use address::{Address, Endpoint, Family, Host, PortMatch, Ports};
pub use options::{BlockPolicy, Evaluator, Limits, Options, StatePolicy, Timeout, Timeouts};
pub use reason::Reason;
pub use rule::{
    Action, BlockReturn, Direction, IcmpMatch, InterfaceMatch, InterfaceName, Log, Not, Rule,
    Scrub, StateOptions, TcpFlags,
};
pub use table::{Table, TableEntry};

/// A whole pf.conf: what `pfctl -f` loads in one piece.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Ruleset {
    /// What the `set` lines say.
    pub options: Options,
    /// Filter rules in order; `rules[i].number == i`.
    pub rules: Vec<Rule>,
    /// Tables in order of definition, those that rules only mention included.
    pub tables: Vec<Table>,
}

impl Ruleset {
    /// The table called `name`, if it is defined or mentioned.
    pub fn table(&self, name: &str) -> Option<&Table> {
        self.tables.iter().find(|table| table.name == name)
    }
}
