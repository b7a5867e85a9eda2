//! Datagrams that are too long for the cable, so that each comes in three fragments, beside
//! connections (RFC 3511, 5.9).

use std::io::ErrorKind;
use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::Context;
use serde::Serialize;

/// Bytes of one: three fragments on a cable of 1500 bytes.
pub const BYTES: usize = 4000;

/// Where they go.
pub const PORT: u16 = 9;

/// How long the last ones may be under way.
const STRAGGLERS: Duration = Duration::from_millis(100);

/// What became of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Datagrams {
    /// Sent, each in fragments.
    pub sent: u64,
    /// Put together again by the server.
    pub received: u64,
}

/// Where they are received.
pub(super) fn listen(at: SocketAddr) -> anyhow::Result<UdpSocket> {
    let receiver = UdpSocket::bind(at).with_context(|| format!("udp port {}", at.port()))?;
    receiver.set_read_timeout(Some(STRAGGLERS)).context("receiver of datagrams")?;
    Ok(receiver)
}

/// Sends when one is due; how many went.
pub(super) fn send(to: SocketAddr, rate: f64, over: &AtomicBool) -> anyhow::Result<u64> {
    let any = if to.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
    let socket = UdpSocket::bind(any).context("sender of datagrams")?;
    let datagram = [0x66; BYTES];
    super::pace::paced(rate, over, |_| match socket.send_to(&datagram, to) {
        Ok(_) => Ok(true),
        // an answer to one before: what filters send back is no reason to stop
        Err(error)
            if [ErrorKind::ConnectionRefused, ErrorKind::PermissionDenied]
                .contains(&error.kind()) =>
        {
            Ok(false)
        }
        Err(error) => Err(error).with_context(|| format!("datagram to {to}")),
    })
}

/// Counts until all have been sent and no more come.
pub(super) fn receive(socket: &UdpSocket, sent_all: &AtomicBool) -> anyhow::Result<u64> {
    let mut buffer = [0; BYTES + 1];
    let mut received = 0;
    loop {
        let last = sent_all.load(Ordering::Relaxed);
        match socket.recv(&mut buffer) {
            Ok(BYTES) => received += 1,
            // of somebody else
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
    fn what_is_sent_is_received_and_paced() {
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
