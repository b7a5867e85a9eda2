//! A laboratory that measures a firewall from the hosts on both sides of it.
//!
//! [`request_response`]: one host echoes, and the other counts the answered requests a second. Only
//! one packet is under way at any time. So the figure is the latency of the whole path, and shows
//! the part that a firewall adds.
//!
//! [`ftp`]: the FTP sessions and the bytes a second that clients get.
//!
//! [`raw`]: frames that programs in the kernel make and count, through networks built for them.
//!
//! [`workload`]: commands that run in the order and at the times of a file or of a capture.
//!
//! [`paper`]: published measurements, repeated, beside the published figures.
//!
//! [`speed`]: the performance targets of skipstep beside the measured figures, in one table.
//!
//! [`lookups`]: rules and packets for a measurement of rule evaluation.
//!
//! [`agent`]: ends of a measurement on other machines.

pub mod agent;
pub mod connections;
pub mod converse;
pub mod echo;
pub mod ftp;
pub mod lookups;
pub mod measure;
pub mod paper;
pub mod raw;
pub mod request_response;
pub mod rounds;
pub mod search;
pub mod sockets;
pub mod speed;
pub mod wire;
pub mod workload;

/// Parses the number of seconds of a flag.
///
/// # Errors
/// Fails if the text is no number, or not between 0.01 and 3600.
pub fn seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if (0.01..=3600.0).contains(&seconds) => Ok(seconds),
        _ => Err("must be 0.01 to 3600 seconds".to_string()),
    }
}
