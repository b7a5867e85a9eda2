//! The network namespace of this thread. The kernel reuses the inode number of a namespace that is
//! gone, but no cookie before the next boot.

use std::fs;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use nix::libc;
use serde::{Deserialize, Serialize};

/// A network namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Netns {
    /// Inode of `/proc/thread-self/ns/net`, 0 if unknown.
    pub inode: u64,
    /// `SO_NETNS_COOKIE`, 0 if unknown.
    pub cookie: u64,
}

impl Netns {
    /// Returns the namespace of the calling thread.
    pub fn current() -> Self {
        Netns {
            inode: inode("/proc/thread-self/ns/net").unwrap_or(0),
            cookie: cookie().unwrap_or(0),
        }
    }

    /// True if `other` had the inode of this namespace; then `other` is gone.
    pub fn succeeds(&self, other: &Netns) -> bool {
        self.inode == other.inode && self.cookie != other.cookie
    }
}

/// Returns the inode of the PID namespace that this process sees in /proc.
pub(crate) fn processes() -> u64 {
    inode("/proc/thread-self/ns/pid").unwrap_or(0)
}

/// True if a thread is in the network namespace with an inode, or if a mount or an open file keeps
/// the namespace. True also without CAP_SYS_PTRACE, which services lack, because /proc then hides
/// the users.
pub(crate) fn is_used(wanted: u64) -> bool {
    if !may_look() {
        return true;
    }
    let link = format!("net:[{wanted}]");
    let leads_there = |path: &Path| fs::read_link(path).is_ok_and(|to| to == Path::new(&link));
    let mounted = ["/proc/self/mountinfo", "/proc/1/mountinfo"]
        .map(|mounts| fs::read_to_string(mounts).unwrap_or_default())
        .iter()
        .any(|mounts| mounts.contains(&link));
    mounted
        || entries(Path::new("/proc")).any(|process| {
            let mut threads = entries(&process.join("task"));
            threads.any(|thread| leads_there(&thread.join("ns/net")))
                || entries(&process.join("fd")).any(|file| leads_there(&file))
        })
}

/// True if this thread has CAP_SYS_PTRACE, without which /proc hides the namespaces of processes.
fn may_look() -> bool {
    const CAP_SYS_PTRACE: u32 = 19;
    let status = fs::read_to_string("/proc/thread-self/status").unwrap_or_default();
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let bits = effective.and_then(|bits| u64::from_str_radix(bits.trim(), 16).ok());
    bits.is_some_and(|bits| bits >> CAP_SYS_PTRACE & 1 == 1)
}

fn entries(folder: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path())
}

/// True if the calling thread is in the network namespace of process 1.
pub(crate) fn is_first() -> bool {
    let same = |first: &str, ours: &str| Some(inode(first)? == inode(ours)?);
    // reading the link needs CAP_SYS_PTRACE, which services lack; the files of /proc/net belong to
    // the namespace, and every user may stat them
    same("/proc/1/ns/net", "/proc/thread-self/ns/net")
        .or_else(|| same("/proc/1/net/dev", "/proc/thread-self/net/dev"))
        .unwrap_or(false)
}

fn inode(path: &str) -> Option<u64> {
    fs::metadata(path).map(|metadata| metadata.ino()).ok()
}

fn cookie() -> Option<u64> {
    let socket = std::net::UdpSocket::bind("0.0.0.0:0").ok()?;
    let mut cookie = 0u64;
    let mut length = size_of::<u64>() as libc::socklen_t;
    // SAFETY: the socket is open, and value and length outlive the call
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

    #[test]
    fn a_namespace_is_used_while_a_thread_is_in_it() {
        assert!(is_used(Netns::current().inode));
        assert_eq!(is_used(1), !may_look());
    }
}
