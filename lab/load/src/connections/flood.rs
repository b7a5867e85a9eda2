//! A SYN flood beside connections (RFC 3511, 5.5). Each SYN has a source address from a network
//! where nobody answers, and its own source port.

use std::io::IoSliceMut;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use anyhow::Context;
use etherparse::{NetSlice, PacketBuilder, SlicedPacket, TransportSlice};
use fwlab_net::family::Family;
use fwlab_net::topology::End;
use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, SockaddrStorage, recvmsg, sendto,
    setsockopt, socket, sockopt,
};
use nix::sys::time::TimeVal;
use serde::Serialize;

use super::STRAGGLERS;

/// Number of source addresses.
const ATTACKERS: u64 = 250;

/// Receive buffer of the counting socket in bytes.
const BUFFER: usize = 16 << 20;

/// Counters of the flood.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Flood {
    /// SYNs sent.
    pub sent: u64,
    /// SYNs that reached the server.
    pub received: u64,
}

/// Returns the network of the source addresses: behind the client's host, and apart from the
/// virtual clients.
pub fn attackers(v4: bool) -> IpAddr {
    match End::Client.address(if v4 { Family::V4 } else { Family::V6 }) {
        IpAddr::V4(address) => Ipv4Addr::from((address.to_bits() & !0xff) + 0x200).into(),
        IpAddr::V6(address) => Ipv6Addr::from((address.to_bits() & !0xffff) + 0x2_0000).into(),
    }
}

/// Builds SYN `number`, from the IP header on.
fn segment(number: u64, to: SocketAddr) -> Vec<u8> {
    let host = number % ATTACKERS + 1;
    let port = 1024 + (number / ATTACKERS % 60_000) as u16;
    let builder = match (attackers(to.is_ipv4()), to.ip()) {
        (IpAddr::V4(from), IpAddr::V4(to)) => {
            let from = Ipv4Addr::from(from.to_bits() + host as u32);
            PacketBuilder::ipv4(from.octets(), to.octets(), 64)
        }
        (IpAddr::V6(from), IpAddr::V6(to)) => {
            let from = Ipv6Addr::from(from.to_bits() + u128::from(host));
            PacketBuilder::ipv6(from.octets(), to.octets(), 64)
        }
        _ => unreachable!("the attackers have the server's address family"),
    };
    let mut packet = Vec::new();
    let syn = builder.tcp(port, to.port(), number as u32, 8192).syn();
    syn.write(&mut packet, &[]).expect("a vector takes all");
    packet
}

/// Sends SYNs at `rate` per second until `over` is set, and returns their number.
pub(super) fn send(to: SocketAddr, rate: f64, over: &AtomicBool) -> anyhow::Result<u64> {
    let family = if to.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 };
    let socket = socket(family, SockType::Raw, SockFlag::SOCK_CLOEXEC, SockProtocol::Raw)
        .context("sender of SYNs")?;
    let address = SockaddrStorage::from(SocketAddr::new(to.ip(), 0));
    super::pace::paced(rate, over, |number| {
        match sendto(socket.as_raw_fd(), &segment(number, to), &address, MsgFlags::empty()) {
            // a full queue counts as a loss on the way
            Ok(_) | Err(Errno::ENOBUFS) => Ok(true),
            // an answer of the filter does not end the flood
            Err(Errno::EPERM | Errno::ECONNREFUSED | Errno::EHOSTUNREACH) => Ok(true),
            Err(error) => Err(error).with_context(|| format!("SYN to {to}")),
        }
    })
}

/// Opens a packet socket that receives all frames of this network namespace.
pub(super) fn listen() -> anyhow::Result<OwnedFd> {
    let what = "counter of SYNs";
    let socket =
        socket(AddressFamily::Packet, SockType::Raw, SockFlag::SOCK_CLOEXEC, SockProtocol::EthAll)
            .context(what)?;
    setsockopt(&socket, sockopt::RcvBufForce, &BUFFER).context(what)?;
    let patience = TimeVal::new(0, STRAGGLERS.as_micros() as i64);
    setsockopt(&socket, sockopt::ReceiveTimeout, &patience).context(what)?;
    Ok(socket)
}

/// Counts SYNs of the flood until all were sent and no more arrive, regardless of other traffic.
pub(super) fn count(socket: &OwnedFd, sent_all: &AtomicBool, v4: bool) -> anyhow::Result<u64> {
    let from = attackers(v4);
    let mut frame = [0; 256];
    let (mut count, mut last, mut latest) = (0, false, Instant::now());
    loop {
        if !last && sent_all.load(Ordering::Relaxed) {
            (last, latest) = (true, Instant::now());
        }
        let mut piece = [IoSliceMut::new(&mut frame)];
        let read = recvmsg::<()>(socket.as_raw_fd(), &mut piece, None, MsgFlags::empty());
        match read.map(|message| message.bytes) {
            Ok(length) if is_one(&frame[..length], from) => {
                (count, latest) = (count + 1, Instant::now())
            }
            Ok(_) if last && latest.elapsed() > STRAGGLERS => return Ok(count),
            Ok(_) => {}
            Err(Errno::EAGAIN) if last => return Ok(count),
            Err(Errno::EAGAIN | Errno::EINTR) => {}
            Err(error) => return Err(error).context("counter of SYNs"),
        }
    }
}

/// Returns true if a frame is a SYN from the attackers' network.
fn is_one(frame: &[u8], attackers: IpAddr) -> bool {
    let Ok(packet) = SlicedPacket::from_ethernet(frame) else { return false };
    let theirs = match (&packet.net, attackers) {
        (Some(NetSlice::Ipv4(ip)), IpAddr::V4(network)) => {
            ip.header().source_addr().to_bits() & !0xff == network.to_bits()
        }
        (Some(NetSlice::Ipv6(ip)), IpAddr::V6(network)) => {
            ip.header().source_addr().to_bits() & !0xffff == network.to_bits()
        }
        _ => false,
    };
    let syn =
        matches!(&packet.transport, Some(TransportSlice::Tcp(tcp)) if tcp.syn() && !tcp.ack());
    theirs && syn
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn syns_have_distinct_sources_and_are_recognized() {
        for server in ["198.19.0.2:80", "[2001:2:0:2::2]:80"] {
            let to: SocketAddr = server.parse().unwrap();
            let mut seen = std::collections::HashSet::new();
            for number in 0..1000 {
                let packet = segment(number, to);
                let kind: u16 = if to.is_ipv4() { 0x0800 } else { 0x86dd };
                let mut frame = vec![2; 12];
                frame.extend(kind.to_be_bytes());
                frame.extend(&packet);
                assert!(is_one(&frame, attackers(to.is_ipv4())));
                assert!(!is_one(&frame, super::super::client_network(Family::V4)));
                let sliced = SlicedPacket::from_ip(&packet).unwrap();
                let Some(TransportSlice::Tcp(tcp)) = sliced.transport else { panic!() };
                assert_eq!(tcp.destination_port(), 80);
                assert!(seen.insert((packet[8..40].to_vec(), tcp.source_port())));
            }
        }
    }
}
