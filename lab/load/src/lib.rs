//! Load of the laboratory: the traffic that crosses a network, and its result. One trial is one
//! call here; the methods above decide which trials a measurement has.
//!
//! - [`raw`]: frames that programs in the kernel make and count, and [`wire`] for real interfaces
//! - [`sockets`]: clients and servers like those of netperf, with [`ftp`] and [`request_response`]
//! - [`connections`]: many TCP connections at a given rate
//! - [`workload`]: commands that run in the order and at the times of a file or of a capture
//! - [`converse`] and [`echo`]: the counterparts of such commands
//!
//! [`request_response`] has only one packet under way at any time. So its figure is the latency of
//! the whole path, and shows the part that a firewall adds.

pub mod connections;
pub mod converse;
pub mod echo;
pub mod ftp;
pub mod raw;
pub mod request_response;
pub mod sockets;
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
