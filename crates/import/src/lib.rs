//! Rules in other firewalls' languages: text in, the text of a pf.conf out.
//!
//! Each language is a module that knows its grammar and what its words mean in pf; docs/pcf.md and
//! docs/import-iptables.md say it in prose. What has no equivalent in pf is an error with its line,
//! and nothing is written then. [`ranges`] and [`words`] are what the languages share: sets of
//! addresses and ports, and how pf.conf writes them.

pub mod iptables;
pub mod pcf;

mod messages;
mod ranges;
mod words;

use skipstep_pfconf::Diagnostic;

/// A rule set that could be converted.
#[derive(Debug, Clone)]
pub struct Imported {
    /// The text of the pf.conf.
    pub conf: String,
    /// What whoever uses it should know.
    pub warnings: Vec<Diagnostic>,
}

/// Why a rule set could not be converted: at least one error, and the warnings.
pub type Refused = Vec<Diagnostic>;
