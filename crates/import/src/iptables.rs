//! What iptables-save prints: tables of chains of rules. docs/import-iptables.md says what becomes
//! of them and what is assumed.
//!
//! `dump` reads the lines, `rule` the words of a rule; `criteria` is what a rule asks of a packet
//! and how pf.conf writes that; `connection` is about states, `hook` about the places of built-in
//! chains; `write` makes the pf.conf, and `order` looks for rules that pf will not ask.

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

/// Converts `text`; messages call it `file`.
pub fn import(text: &str, file: &str) -> Result<Imported, Refused> {
    let mut messages = Messages::new(text, file).check_size()?;
    let dump = dump::parse(text, &mut messages);
    order::check(&dump, &mut messages);
    let conf = write::write(&dump, file, &mut messages);
    Ok(Imported { conf, warnings: messages.finish()? })
}
