//! A socket that sends whole frames through an interface: slower than the generator, but available
//! everywhere.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use nix::libc;

use crate::error::{Context, Result};

/// Largest number of frames that one call sends.
pub const PACKET_BATCH: usize = 64;

/// A packet socket.
pub struct PacketSocket(OwnedFd);

impl PacketSocket {
    /// Opens a socket that sends through an interface of the calling thread's network namespace,
    /// past its queueing discipline.
    ///
    /// # Errors
    /// Fails if the process lacks CAP_NET_RAW, or if there is no such interface.
    pub fn new(ifindex: u32) -> Result<Self> {
        let operation = || format!("packet socket: interface {ifindex}");
        // SAFETY: the arguments are numbers only
        let fd = unsafe { libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0) };
        done(fd).context(operation)?;
        // SAFETY: the kernel has just returned this descriptor, and nothing else owns it
        let socket = PacketSocket(unsafe { OwnedFd::from_raw_fd(fd) });
        // SAFETY: a structure of numbers and arrays, for which zero is valid
        let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
        address.sll_family = libc::AF_PACKET as u16;
        address.sll_ifindex = ifindex as i32;
        // SAFETY: the address lives until the call returns and has the size given
        let bound = unsafe {
            libc::bind(
                fd,
                (&raw const address).cast(),
                size_of::<libc::sockaddr_ll>() as libc::socklen_t,
            )
        };
        done(bound).context(operation)?;
        let on: libc::c_int = 1;
        // SAFETY: the value lives until the call returns and has the size given
        let set = unsafe {
            libc::setsockopt(
                fd,
                libc::SOL_PACKET,
                libc::PACKET_QDISC_BYPASS,
                (&raw const on).cast(),
                size_of::<libc::c_int>() as libc::socklen_t,
            )
        };
        done(set).context(operation)?;
        Ok(socket)
    }

    /// Sends at most [`PACKET_BATCH`] frames. Returns the number of frames sent.
    ///
    /// # Errors
    /// Fails if the kernel sends none, for example because its queue is full or the interface is
    /// down.
    pub fn send(&self, frames: &[Vec<u8>]) -> io::Result<usize> {
        let frames = &frames[..frames.len().min(PACKET_BATCH)];
        let mut parts: Vec<libc::iovec> = frames
            .iter()
            .map(|frame| libc::iovec {
                iov_base: frame.as_ptr().cast_mut().cast(),
                iov_len: frame.len(),
            })
            .collect();
        let mut messages: Vec<libc::mmsghdr> = parts
            .iter_mut()
            .map(|part| {
                // SAFETY: a structure of numbers and pointers, for which zero is valid
                let mut message: libc::mmsghdr = unsafe { std::mem::zeroed() };
                message.msg_hdr.msg_iov = part;
                message.msg_hdr.msg_iovlen = 1;
                message
            })
            .collect();
        // SAFETY: messages point to parts and parts to frames, and all live until the call returns;
        // the kernel writes only the length sent of each message
        let sent = unsafe {
            libc::sendmmsg(self.0.as_raw_fd(), messages.as_mut_ptr(), messages.len() as u32, 0)
        };
        done(sent)?;
        Ok(sent as usize)
    }
}

fn done(result: libc::c_int) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
