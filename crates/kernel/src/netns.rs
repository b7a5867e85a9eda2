//! Which network namespace this thread is in. Inode numbers are used again after a namespace is
//! gone; cookies are not, until the next boot.

use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;

use nix::libc;
use serde::{Deserialize, Serialize};

/// A network namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Netns {
    /// Inode of `/proc/thread-self/ns/net`.
    pub inode: u64,
    /// `SO_NETNS_COOKIE`
    pub cookie: u64,
}

impl Netns {
    /// The namespace of the calling thread.
    pub fn current() -> Self {
        Netns {
            inode: inode("/proc/thread-self/ns/net").unwrap_or(0),
            cookie: cookie().unwrap_or(0),
        }
    }

    /// Whether `other` had this one's inode and is therefore gone.
    pub fn succeeds(&self, other: &Netns) -> bool {
        self.inode == other.inode && self.cookie != other.cookie
    }
}

/// True if the calling thread is in the network namespace of process 1.
pub(crate) fn is_first() -> bool {
    let same = |first: &str, ours: &str| Some(inode(first)? == inode(ours)?);
    // the link needs CAP_SYS_PTRACE, which services do not have; files of /proc/net are the
    // namespace's own, and everybody may look at them
    same("/proc/1/ns/net", "/proc/thread-self/ns/net")
        .or_else(|| same("/proc/1/net/dev", "/proc/thread-self/net/dev"))
        .unwrap_or(false)
}

fn inode(path: &str) -> Option<u64> {
    std::fs::metadata(path).map(|metadata| metadata.ino()).ok()
}

fn cookie() -> Option<u64> {
    let socket = std::net::UdpSocket::bind("0.0.0.0:0").ok()?;
    let mut cookie = 0u64;
    let mut length = size_of::<u64>() as libc::socklen_t;
    // SAFETY: the socket is open, value and length are ours and outlive the call
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_NETNS_COOKIE,
            (&raw mut cookie).cast(),
            &raw mut length,
        )
    };
    (result == 0).then_some(cookie)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_namespace_is_known_by_its_cookie() {
        let here = Netns::current();
        assert_ne!(here.cookie, 0);
        assert_eq!(here, Netns::current());
        assert!(!here.succeeds(&here));
        assert!(here.succeeds(&Netns { cookie: here.cookie + 1, ..here }));
        assert!(!here.succeeds(&Netns { inode: here.inode + 1, ..here }));
    }
}
