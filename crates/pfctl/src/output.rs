//! What pfctl says.

use std::io::{self, Write};

use anyhow::Result;

/// Writes to standard output.
pub fn print(text: &str) -> Result<()> {
    io::stdout().write_all(text.as_bytes())?;
    Ok(())
}

/// Says what went wrong, in the system's words without the number that Rust puts behind them.
pub fn complain(error: &anyhow::Error) {
    let message = format!("{error:#}");
    eprintln!("pfctl: {}", message.split(" (os error ").next().unwrap_or(&message));
}
