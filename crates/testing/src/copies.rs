//! Packets that the data plane sends beside the packet of a test run: copies, which really leave. A
//! packet socket reads all packets that leave the test's network.

use std::cell::RefCell;
use std::os::fd::{AsRawFd, OwnedFd};

use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, LinkAddr, SockFlag, SockProtocol, SockType, recvfrom, socket,
};
use skipstep_kernel::Result;
use skipstep_kernel::error::Context;
use skipstep_wire::protocol;

use crate::arrival::LINK_HEADER;

thread_local! {
    /// The socket in this thread's network. Test runs of all its engines use this network,
    /// whichever engine made it.
    static SOCKET: RefCell<Option<OwnedFd>> = const { RefCell::new(None) };
}

/// Bytes of a buffer, longer than any packet of a test.
const LONGEST: usize = 4096;

/// The kernel's packet type of a packet that leaves.
const PACKET_OUTGOING: u8 = 4;

/// Opens the socket in the current network of this thread.
pub(crate) fn listen() -> Result<()> {
    let socket = socket(
        AddressFamily::Packet,
        SockType::Raw,
        SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC,
        SockProtocol::EthAll,
    );
    let socket = socket.context(|| "packet socket".to_owned())?;
    SOCKET.set(Some(socket));
    Ok(())
}

/// Discards the packets that have left so far.
pub(crate) fn forget() -> Result<()> {
    sent_by(0).map(drop)
}

/// Returns the TCP segments that left by an interface since the last call, from the IP header on.
/// Other packets come from the network itself.
pub(crate) fn sent_by(index: u32) -> Result<Vec<Vec<u8>>> {
    let mut sent = Vec::new();
    let mut frame = vec![0; LONGEST];
    loop {
        let (length, from) = match receive(&mut frame) {
            Ok(received) => received,
            Err(Errno::EAGAIN) => return Ok(sent),
            Err(error) => return Err(error).context(|| "packet socket: read".to_owned()),
        };
        let packet = frame.get(LINK_HEADER..length).unwrap_or_default();
        let leaves = from.is_some_and(|from| {
            from.ifindex() == index as usize && from.pkttype() == PACKET_OUTGOING
        });
        if leaves && is_tcp(packet) {
            sent.push(packet.to_vec());
        }
    }
}

fn receive(frame: &mut [u8]) -> nix::Result<(usize, Option<LinkAddr>)> {
    SOCKET.with_borrow(|socket| match socket {
        Some(socket) => recvfrom::<LinkAddr>(socket.as_raw_fd(), frame),
        None => Err(Errno::EAGAIN),
    })
}

fn is_tcp(packet: &[u8]) -> bool {
    match packet.first().map(|byte| byte >> 4) {
        Some(4) => packet.get(9) == Some(&protocol::TCP),
        Some(6) => packet.get(6) == Some(&protocol::TCP),
        _ => false,
    }
}
