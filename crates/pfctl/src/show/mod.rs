//! The output of `-s`. Each modifier has a file with two pure functions, which turn a view of the
//! filter into OpenBSD's text and into JSON.

pub mod all;
pub mod anchors;
pub mod info;
pub mod interfaces;
pub mod labels;
pub mod limiters;
pub mod memory;
pub mod metrics;
pub mod nat;
pub mod osfp;
pub mod queues;
pub mod references;
pub mod rules;
pub mod sources;
pub mod states;
pub mod tables;
pub mod timeouts;
pub mod trial;

use chrono::{DateTime, Local};

/// The level of detail, from `-v`, `-vv` and `-g`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Detail {
    /// Number of `-v`.
    pub verbose: u8,
    /// True with `-g`.
    pub debug: bool,
}

impl Detail {
    /// True with at least one `-v`.
    pub fn verbose(self) -> bool {
        self.verbose >= 1
    }

    /// Returns the indentation of a line at `depth`. With `-v` no line is indented, because lines
    /// of counters stand between.
    fn indentation(self, depth: usize) -> String {
        if self.verbose() { String::new() } else { "  ".repeat(depth) }
    }

    /// True with at least two `-v`.
    pub fn very_verbose(self) -> bool {
        self.verbose >= 2
    }
}

/// A pair of counters.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Number of packets.
    pub packets: u64,
    /// Bytes of IP packets, headers included.
    pub bytes: u64,
}

/// Returns a time in seconds as `-s info` prints it: `0 days 00:00:07`.
fn duration(seconds: u64) -> String {
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    format!("{days} days {:02}:{:02}:{:02}", rest / 3600, rest / 60 % 60, rest % 60)
}

/// Returns a line of the counters of a table or interface.
fn traffic_line(name: &str, traffic: Traffic) -> String {
    format!("\t{name:<12} [ Packets: {:<18} Bytes: {:<18} ]\n", traffic.packets, traffic.bytes)
}

/// Returns the line with the time of the last clearing, in ctime(3)'s format and local time.
/// `second` counts from 1970.
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
