//! The filter language of a packet filtering bridge of 1995, similar to Network Systems' Packet
//! Control Facility. It has filters made of statements, which are applied to packets at given
//! points. docs/reference/pcf.md describes its meaning.
//!
//! `lexer` makes tokens, `parser` builds a [`Program`] from them, and `write` writes the pf.conf.

mod lexer;
mod parser;
mod write;

use crate::messages::{Messages, Place};
use crate::ranges::{ADDRESS, PORT, PROTOCOL, Ranges};
use crate::{Imported, Refused};

/// Converts `text`. `file` is its name in messages.
///
/// # Errors
/// Fails if the text is too large or does not follow the grammar, or if a statement has no
/// equivalent in pf.
pub fn import(text: &str, file: &str) -> Result<Imported, Refused> {
    let mut messages = Messages::new(text, file).check_size()?;
    let program = parser::parse(text, &mut messages);
    let conf = write::write(&program, file, &mut messages);
    Ok(Imported { conf, warnings: messages.finish()? })
}

/// A parsed text: filters, and their applications to packets.
#[derive(Debug, Default)]
struct Program {
    filters: Vec<Filter>,
    applications: Vec<Application>,
}

/// A filter: `filter NAME … end`.
#[derive(Debug)]
struct Filter {
    name: String,
    place: Place,
    statements: Vec<Statement>,
}

/// Tests that must all match, and the action if they do.
#[derive(Debug)]
struct Statement {
    place: Place,
    /// Source text, with single blanks.
    text: String,
    tests: Tests,
    action: Action,
}

/// The sets of values that a packet must have to match.
#[derive(Debug)]
struct Tests {
    source: Ranges,
    destination: Ranges,
    protocols: Ranges,
    tcp_source: Ranges,
    tcp_destination: Ranges,
    udp_source: Ranges,
    udp_destination: Ranges,
    flags: Flags,
    /// Position of `ipfrag`, and its offsets in units of 8 bytes.
    fragments: Option<(Place, Ranges)>,
}

impl Tests {
    /// Returns tests that every packet matches.
    fn none() -> Self {
        Tests {
            source: Ranges::all(ADDRESS),
            destination: Ranges::all(ADDRESS),
            protocols: Ranges::all(PROTOCOL),
            tcp_source: Ranges::all(PORT),
            tcp_destination: Ranges::all(PORT),
            udp_source: Ranges::all(PORT),
            udp_destination: Ranges::all(PORT),
            flags: Flags::default(),
            fragments: None,
        }
    }
}

/// The combination of all tests `tcpflags/MASK = VALUE` of a statement.
#[derive(Debug, Clone, Copy, Default)]
struct Flags {
    mask: u8,
    value: u8,
    /// True if no packet can match.
    never: bool,
}

impl Flags {
    fn and(self, mask: u8, value: u8) -> Self {
        let disagree = (self.value ^ value) & self.mask & mask != 0;
        Flags {
            mask: self.mask | mask,
            value: self.value | value,
            never: self.never || disagree || value & !mask != 0,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Action {
    Fail,
    Succeed,
    Log(std::net::Ipv4Addr),
}

/// The application of a filter: `apply NAME on …`.
#[derive(Debug)]
struct Application {
    filter: String,
    place: Place,
    on: Target,
}

#[derive(Debug)]
enum Target {
    First,
    Incoming(String),
    Outgoing(String),
    Between(Ranges, Ranges),
}
