//! Waiting for somebody who connects.

use std::io::{ErrorKind, Result};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::time::Duration;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

/// A client that says nothing for so long is gone.
pub(super) const PATIENCE: Duration = Duration::from_secs(5);

/// A client that does not come keeps nobody waiting for ever.
pub(crate) fn accept(listener: &TcpListener, patience: Duration) -> Result<TcpStream> {
    let patience = PollTimeout::try_from(patience).unwrap_or(PollTimeout::MAX);
    let mut wanted = [PollFd::new(listener.as_fd(), PollFlags::POLLIN)];
    match poll(&mut wanted, patience)? {
        0 => Err(ErrorKind::TimedOut.into()),
        _ => Ok(listener.accept()?.0),
    }
}
