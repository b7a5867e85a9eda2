//! The output of iptables-save: tables of chains of rules. docs/start/iptables.md describes their
//! translation and its assumptions.
//!
//! `dump` reads the lines, and `rule` the words of a rule. `criteria` has the criteria of a rule
//! and their form in pf.conf, `connection` those about states, `hook` the built-in chains. `write`
//! writes the pf.conf, and `order` finds rules that pf will not evaluate.

mod address;
mod connection;
mod criteria;
mod dump;
mod hook;
mod line;
mod order;
mod rule;
mod target;
mod write;

use crate::messages::Messages;
use crate::{Imported, Refused};

/// Converts `text`. `file` is its name in messages.
///
/// # Errors
/// Fails if the text is too large or does not follow the format, or if a rule has no equivalent in
/// pf.
///
/// ```
/// let saved = "\
/// *filter
/// :INPUT DROP [0:0]
/// :FORWARD ACCEPT [0:0]
/// :OUTPUT ACCEPT [0:0]
/// -A INPUT -p tcp -m tcp --dport 22 -j ACCEPT
/// COMMIT
/// ";
/// let imported = skipstep_import::iptables::import(saved, "rules.v4").unwrap();
/// assert!(imported.conf.contains("port 22"));
///
/// let refused = skipstep_import::iptables::import("*filter\n-A", "rules.v4").unwrap_err();
/// assert_eq!(refused[0].line, 2);
/// ```
pub fn import(text: &str, file: &str) -> Result<Imported, Refused> {
    let mut messages = Messages::new(text, file).check_size()?;
    let dump = dump::parse(text, &mut messages);
    order::check(&dump, &mut messages);
    let conf = write::write(&dump, file, &mut messages);
    Ok(Imported { conf, warnings: messages.finish()? })
}
