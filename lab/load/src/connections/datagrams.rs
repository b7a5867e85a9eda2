//! UDP datagrams of three fragments each, sent beside connections (RFC 3511, 5.9).

use std::io::ErrorKind;
use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::Context;
use serde::Serialize;

/// Payload of a datagram in bytes: three fragments at an MTU of 1500 bytes.
pub const BYTES: usize = 4000;

/// UDP port of the receiver.
pub const PORT: u16 = 9;

/// Time to wait for the last datagrams.
const STRAGGLERS: Duration = Duration::from_millis(100);

/// Counters of the datagrams sent beside connections.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Datagrams {
    /// Datagrams sent, each in fragments.
    pub sent: u64,
    /// Datagrams reassembled by the server.
    pub received: u64,
}

/// Opens the socket of the receiver.
pub(super) fn listen(at: SocketAddr) -> anyhow::Result<UdpSocket> {
    let receiver = UdpSocket::bind(at).with_context(|| format!("udp port {}", at.port()))?;
    receiver.set_read_timeout(Some(STRAGGLERS)).context("receiver of datagrams")?;
    Ok(receiver)
}

/// Sends datagrams at `rate` per second until `over` is set, and returns their number.
pub(super) fn send(to: SocketAddr, rate: f64, over: &AtomicBool) -> anyhow::Result<u64> {
    let any = if to.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
    let socket = UdpSocket::bind(any).context("sender of datagrams")?;
    let datagram = [0x66; BYTES];
    super::pace::paced(rate, over, |_| match socket.send_to(&datagram, to) {
        Ok(_) => Ok(true),
        // an ICMP error for an earlier datagram: an answer of the filter does not end the traffic
        Err(error)
            if [ErrorKind::ConnectionRefused, ErrorKind::PermissionDenied]
                .contains(&error.kind()) =>
        {
            Ok(false)
        }
        Err(error) => Err(error).with_context(|| format!("datagram to {to}")),
    })
}

/// Counts datagrams until all were sent and no more arrive.
pub(super) fn receive(socket: &UdpSocket, sent_all: &AtomicBool) -> anyhow::Result<u64> {
    let mut buffer = [0; BYTES + 1];
    let mut received = 0;
    loop {
        let last = sent_all.load(Ordering::Relaxed);
        match socket.recv(&mut buffer) {
            Ok(BYTES) => received += 1,
            // a datagram of another sender
            Ok(_) => {}
            Err(error) if [ErrorKind::WouldBlock, ErrorKind::TimedOut].contains(&error.kind()) => {
                if last {
                    return Ok(received);
                }
            }
            Err(error) => return Err(error).context("receiver of datagrams"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn datagrams_are_received_and_paced() {
        let receiver = listen("127.0.0.1:0".parse().unwrap()).unwrap();
        let to = receiver.local_addr().unwrap();
        let (sent_all, over) = (AtomicBool::new(false), AtomicBool::new(false));
        thread::scope(|scope| {
            let received = scope.spawn(|| receive(&receiver, &sent_all).unwrap());
            let sent = scope.spawn(|| send(to, 500.0, &over).unwrap());
            thread::sleep(Duration::from_millis(200));
            over.store(true, Ordering::Relaxed);
            let sent = sent.join().unwrap();
            sent_all.store(true, Ordering::Relaxed);
            assert!((50..=200).contains(&sent), "{sent}");
            assert_eq!(received.join().unwrap(), sent);
        });
    }
}
