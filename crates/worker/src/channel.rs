//! Messages between a guardian and its worker: JSON, with file descriptors. The socket preserves
//! the boundaries of messages.

use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::socket::{AddressFamily, SockFlag, SockType, socketpair};
use nix::sys::time::TimeSpec;
use rustix::net::SendFlags;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::descriptors;

/// Longest message in bytes, inclusive.
const LONGEST: usize = 1 << 16;

/// An end of a channel.
#[derive(Debug)]
pub struct Channel(OwnedFd);

/// Result of a receive.
#[derive(Debug)]
pub enum Received<M> {
    /// A message, with the descriptors that came with it.
    Message(M, Vec<OwnedFd>),
    /// No message within the timeout, or a signal.
    Nothing,
    /// The other process has ended.
    End,
}

impl Channel {
    /// Makes a channel: an end for this process, and an end for the other one.
    ///
    /// # Errors
    /// Fails if the socket pair cannot be made.
    pub fn pair() -> io::Result<(Channel, OwnedFd)> {
        let flags = SockFlag::SOCK_CLOEXEC;
        let (own, other) = socketpair(AddressFamily::Unix, SockType::SeqPacket, None, flags)?;
        Ok((Channel(own), other))
    }

    /// Takes the end that the guardian has passed as standard input.
    ///
    /// # Errors
    /// Fails if the descriptor cannot be duplicated.
    pub fn inherited() -> io::Result<Channel> {
        Ok(Channel(io::stdin().as_fd().try_clone_to_owned()?))
    }

    /// Sends a message, and waits until there is room for it.
    ///
    /// # Errors
    /// Fails if the message is too long or has too many descriptors, or if the other process has
    /// ended.
    pub fn send(&self, message: &impl Serialize, descriptors: &[BorrowedFd]) -> io::Result<()> {
        self.send_with(message, descriptors, SendFlags::empty())
    }

    /// Sends a message if there is room for it, because a guardian must not wait for its worker.
    ///
    /// # Errors
    /// Fails with `WouldBlock` if there is no room, and otherwise as [`Channel::send`] does.
    pub fn send_now(&self, message: &impl Serialize, descriptors: &[BorrowedFd]) -> io::Result<()> {
        self.send_with(message, descriptors, SendFlags::DONTWAIT)
    }

    fn send_with(
        &self,
        message: &impl Serialize,
        descriptors: &[BorrowedFd],
        flags: SendFlags,
    ) -> io::Result<()> {
        let bytes = serde_json::to_vec(message)?;
        if bytes.len() > LONGEST {
            return Err(io::Error::new(ErrorKind::InvalidInput, "the message is too long"));
        }
        descriptors::send(&self.0, &bytes, descriptors, flags)
    }

    /// Waits at most `timeout` for a message.
    ///
    /// # Errors
    /// Fails with `InvalidData` if the message is malformed or too long, or if the socket fails.
    pub fn receive<M: DeserializeOwned>(&self, timeout: Duration) -> io::Result<Received<M>> {
        if !wait(&[self.0.as_fd()], timeout)? {
            return Ok(Received::Nothing);
        }
        let mut buffer = vec![0; LONGEST + 1];
        match descriptors::receive(&self.0, &mut buffer) {
            Ok((0, _)) => Ok(Received::End),
            Ok((length, descriptors)) if length <= LONGEST => {
                let message = serde_json::from_slice(&buffer[..length])?;
                Ok(Received::Message(message, descriptors))
            }
            Ok(_) => Err(io::Error::new(ErrorKind::InvalidData, "the message is too long")),
            Err(error) if error.kind() == ErrorKind::Interrupted => Ok(Received::Nothing),
            // the other process has ended with messages unread
            Err(error) if error.kind() == ErrorKind::ConnectionReset => Ok(Received::End),
            Err(error) => Err(error),
        }
    }
}

impl AsFd for Channel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Waits until a descriptor is readable, a signal comes, or `timeout` is over. Returns true if a
/// descriptor is readable.
///
/// # Errors
/// Fails if ppoll(2) fails.
pub fn wait(descriptors: &[BorrowedFd], timeout: Duration) -> io::Result<bool> {
    let mut all: Vec<PollFd> =
        descriptors.iter().map(|fd| PollFd::new(*fd, PollFlags::POLLIN)).collect();
    match ppoll(&mut all, Some(TimeSpec::from_duration(timeout)), None) {
        Ok(ready) => Ok(ready > 0),
        Err(Errno::EINTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;

    use super::*;

    fn pair() -> (Channel, Channel) {
        let (own, other) = Channel::pair().unwrap();
        (own, Channel(other))
    }

    #[test]
    fn messages_come_one_by_one_with_their_descriptors() {
        let (guardian, worker) = pair();
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        guardian.send_now(&"first", &[ours.as_fd()]).unwrap();
        guardian.send_now(&"second", &[]).unwrap();
        drop(ours);
        let soon = Duration::from_secs(5);
        let Received::Message(text, descriptors) = worker.receive::<String>(soon).unwrap() else {
            panic!("nothing has come");
        };
        let [descriptor] = descriptors.try_into().unwrap();
        theirs.write_all(b"x").unwrap();
        let mut byte = [0];
        File::from(descriptor).read_exact(&mut byte).unwrap();
        assert_eq!((text.as_str(), byte), ("first", *b"x"));
        let second = worker.receive::<String>(soon).unwrap();
        assert!(
            matches!(second, Received::Message(text, none) if text == "second" && none.is_empty())
        );
        let none = worker.receive::<String>(Duration::ZERO).unwrap();
        assert!(matches!(none, Received::Nothing));
        worker.send(&1, &[]).unwrap();
        drop(guardian);
        assert!(matches!(worker.receive::<String>(soon), Ok(Received::End)));
    }

    #[test]
    fn nonsense_and_messages_without_end_are_refused() {
        let (guardian, worker) = pair();
        worker.send(&"text", &[]).unwrap();
        let soon = Duration::from_secs(5);
        assert!(guardian.receive::<u32>(soon).is_err());
        assert!(worker.send(&"x".repeat(LONGEST), &[]).is_err());
        let long = vec![b' '; LONGEST + 1];
        descriptors::send(&worker, &long, &[], SendFlags::empty()).unwrap();
        assert!(guardian.receive::<u32>(soon).is_err());
    }

    #[test]
    fn a_guardian_does_not_wait_for_its_worker() {
        let (guardian, _worker) = pair();
        let full = (0..100_000).find_map(|_| guardian.send_now(&"x".repeat(1000), &[]).err());
        assert_eq!(full.unwrap().kind(), ErrorKind::WouldBlock);
    }
}
