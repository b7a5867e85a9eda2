//! Output of pfctl.

use std::io::{self, Write};

use anyhow::Result;

/// Writes to standard output.
///
/// # Errors
/// Fails if standard output cannot be written, for instance because the pipe is closed.
pub fn print(text: &str) -> Result<()> {
    io::stdout().write_all(text.as_bytes())?;
    Ok(())
}

/// Prints an error to standard error, without the errno that Rust appends to the system's message.
pub fn complain(error: &anyhow::Error) {
    let message = format!("{error:#}");
    eprintln!("pfctl: {}", message.split(" (os error ").next().unwrap_or(&message));
}
