//! Conversion of other firewalls' rules to pf.conf, as text.
//!
//! Each language is a module with its grammar and the translation of its words to pf.
//! docs/reference/pcf.md and docs/start/iptables.md describe both in prose. A rule without an
//! equivalent in pf is an error with its line, and then no pf.conf is written. The languages share
//! [`ranges`], sets of addresses and ports, and [`words`], which writes them as pf.conf does.

pub mod iptables;
pub mod pcf;

mod messages;
mod ranges;
mod words;

use skipstep_pfconf::Diagnostic;

/// A converted rule set.
#[derive(Debug, Clone)]
pub struct Imported {
    /// Text of the pf.conf.
    pub conf: String,
    /// Differences that the user should know about.
    pub warnings: Vec<Diagnostic>,
}

/// The messages about a rule set that could not be converted: at least one error, and the warnings.
pub type Refused = Vec<Diagnostic>;
