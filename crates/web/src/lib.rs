//! The web page of the filter: `skipstep-web`, and `skipstep-broker` behind it.
//!
//! ```text
//! browser ──HTTP──▶ skipstep-web ──unix socket──▶ skipstep-broker ──▶ pfctl
//!                   (no privileges)               (root, a fixed list of requests)
//! ```
//!
//! skipstep-web parses HTTP and serves the page. It has no privileges, and reaches the filter only
//! by the requests in [`request`]. [`broker`] executes a request by running pfctl with fixed
//! arguments. A request that changes the filter needs the token of a writer, which the broker
//! itself checks. So somebody who takes over skipstep-web can read the filter, and can change it
//! only if a writer logs in.

use anyhow::Context as _;

pub mod broker;
pub mod request;
pub mod server;

/// Returns 256 random bits as hexadecimal digits.
///
/// # Errors
/// Fails if the kernel has no random numbers.
fn random_digits() -> anyhow::Result<String> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).context("random numbers")?;
    Ok(hex(&bytes))
}

/// Returns bytes as hexadecimal digits.
fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
