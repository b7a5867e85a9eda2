//! Accepting a connection with a timeout.

use std::io::{ErrorKind, Result};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::time::Duration;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

/// Time without data after which a client counts as lost.
pub(super) const PATIENCE: Duration = Duration::from_secs(5);

/// Accepts a connection.
///
/// # Errors
/// Fails with `TimedOut` if no client connects within `patience`.
pub(crate) fn accept(listener: &TcpListener, patience: Duration) -> Result<TcpStream> {
    let patience = PollTimeout::try_from(patience).unwrap_or(PollTimeout::MAX);
    let mut wanted = [PollFd::new(listener.as_fd(), PollFlags::POLLIN)];
    match poll(&mut wanted, patience)? {
        0 => Err(ErrorKind::TimedOut.into()),
        _ => Ok(listener.accept()?.0),
    }
}
