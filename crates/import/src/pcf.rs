//! The filter language of a packet filtering bridge of 1995, much like Network Systems' Packet
//! Control Facility: filters made of statements, applied to places. docs/pcf.md says what it means.
//!
//! `lexer` makes tokens, `parser` makes a [`Program`] of them, and `write` makes the pf.conf.

mod lexer;
mod parser;
mod write;

use crate::messages::{Messages, Place};
use crate::ranges::{ADDRESS, PORT, PROTOCOL, Ranges};
use crate::{Imported, Refused};

/// Converts `text`; messages call it `file`.
pub fn import(text: &str, file: &str) -> Result<Imported, Refused> {
    let mut messages = Messages::new(text, file).check_size()?;
    let program = parser::parse(text, &mut messages);
    let conf = write::write(&program, file, &mut messages);
    Ok(Imported { conf, warnings: messages.finish()? })
}

/// What a text says.
#[derive(Debug, Default)]
struct Program {
    filters: Vec<Filter>,
    applications: Vec<Application>,
}

/// `filter NAME … end`
#[derive(Debug)]
struct Filter {
    name: String,
    place: Place,
    statements: Vec<Statement>,
}

/// Tests that must all hold, and what is done then.
#[derive(Debug)]
struct Statement {
    place: Place,
    /// As it was written, with single blanks.
    text: String,
    tests: Tests,
    action: Action,
}

/// What a statement asks of a packet.
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
    /// Where `ipfrag` stands, and which offsets.
    fragments: Option<(Place, Ranges)>,
}

impl Tests {
    /// Holds of every packet.
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

/// `tcpflags/MASK = VALUE`, perhaps several of them.
#[derive(Debug, Clone, Copy, Default)]
struct Flags {
    mask: u8,
    value: u8,
    /// They contradict each other.
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

/// `apply NAME on …`
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
