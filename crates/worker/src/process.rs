//! The start of a worker: the same program with more arguments.

use std::ffi::OsStr;
use std::io;
use std::process::{Child, Command, Stdio};

/// Argument that makes a program its own worker.
pub const WORKER: &str = "--worker";

/// Starts this program again with the same arguments, [`WORKER`] and `more`. The worker inherits
/// standard error and the two streams, and no other descriptor.
///
/// # Errors
/// Fails if the process cannot be started.
pub fn start<A: AsRef<OsStr>>(
    more: impl IntoIterator<Item = A>,
    input: Stdio,
    output: Stdio,
) -> io::Result<Child> {
    Command::new("/proc/self/exe")
        .args(std::env::args_os().skip(1))
        .arg(WORKER)
        .args(more)
        .stdin(input)
        .stdout(output)
        .spawn()
}
