//! The laboratory that measures a firewall from the hosts on both sides of it.
//!
//! The request/response test: one host echoes, the other counts how many questions a second are
//! answered. Because only one packet is under way at any time, the figure is the whole path's
//! latency, and what a firewall adds to it is plain to see.
//!
//! FTP: how many sessions and bytes a second clients get.
//!
//! The bad network: a cable between two hosts that treats frames badly, the same way each time.
//!
//! Raw frames: made and counted by programs in the kernel, through networks that are made for it.
//!
//! Workloads: commands that are run in the order and at the times that a file says, or a capture.
//!
//! Papers: what others measured, measured again, with their figures beside it.
//!
//! Speed: what skipstep is meant to take and what it takes, in one table.
//!
//! Lookups: rules and packets for what finds the rule that decides.
//!
//! Agents: the ends of a measurement that are other machines.
//!
//! Results: what a measurement is written down as, with all that is needed to judge and to repeat
//! it; statistics and summaries say what follows from it.

pub mod agent;
pub mod bad_network;
pub mod compare;
pub mod connections;
pub mod converse;
pub mod cycles;
pub mod echo;
pub mod environment;
pub mod family;
pub mod ftp;
pub mod host;
pub mod interrupt;
pub mod link;
pub mod lookups;
pub mod measure;
pub mod napi;
pub mod paper;
mod pins;
pub mod placement;
mod process;
pub mod program;
pub mod raw;
pub mod report;
pub mod request_response;
pub mod results;
pub mod rounds;
pub mod rules;
pub mod search;
pub mod sockets;
pub mod speed;
pub mod stats;
pub mod summary;
pub mod system;
pub mod topology;
pub mod wire;
pub mod workload;

/// A flag's number of seconds.
///
/// # Errors
/// It is none, or not sensible.
pub fn seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if (0.01..=3600.0).contains(&seconds) => Ok(seconds),
        _ => Err("between 0.01 and 3600 seconds".to_string()),
    }
}
