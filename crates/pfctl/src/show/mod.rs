//! What `-s` prints: one file for each modifier, each a pure function from a view of the firewall
//! to OpenBSD's text, with another to JSON beside it.

pub mod all;
pub mod anchors;
pub mod info;
pub mod interfaces;
pub mod labels;
pub mod limiters;
pub mod memory;
pub mod nat;
pub mod osfp;
pub mod queues;
pub mod rules;
pub mod sources;
pub mod states;
pub mod tables;
pub mod timeouts;

use chrono::{DateTime, Local};

/// How much to print: `-v`, `-vv`, `-g`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Detail {
    /// how many `-v`
    pub verbose: u8,
    /// `-g`
    pub debug: bool,
}

impl Detail {
    /// At least one `-v`.
    pub fn verbose(self) -> bool {
        self.verbose >= 1
    }

    /// Returns the indentation of a line so many levels deep: none where figures stand between.
    fn indentation(self, depth: usize) -> String {
        if self.verbose() { String::new() } else { "  ".repeat(depth) }
    }

    /// At least two `-v`.
    pub fn very_verbose(self) -> bool {
        self.verbose >= 2
    }
}

/// Packets and bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Traffic {
    /// packets
    pub packets: u64,
    /// bytes of IP packets
    pub bytes: u64,
}

/// The line that statistics of tables and interfaces are made of.
fn traffic_line(name: &str, traffic: Traffic) -> String {
    format!("\t{name:<12} [ Packets: {:<18} Bytes: {:<18} ]\n", traffic.packets, traffic.bytes)
}

/// The line that says when counters were last cleared, as ctime(3) writes a wall-clock second.
fn cleared_line(second: i64) -> String {
    match DateTime::from_timestamp(second, 0) {
        Some(time) => {
            format!(
                "\tCleared:     {}\n",
                time.with_timezone(&Local).format("%a %b %e %H:%M:%S %Y")
            )
        }
        None => format!("\tCleared:     {second}\n"),
    }
}
