//! Connections to an agent whose peers have not proved yet that they have the key. Their number is
//! bounded. A flood displaces its own connections, so a controller still gets in.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Ipv6Addr, Shutdown, SocketAddr, TcpStream};
use std::sync::{Mutex, PoisonError};

/// The most connections at once.
const MOST: usize = 64;

/// The connections, numbered in the order of arrival.
#[derive(Default)]
pub struct Strangers(Mutex<Waiting>);

#[derive(Default)]
struct Waiting {
    next: u64,
    connections: BTreeMap<u64, (IpAddr, TcpStream)>,
}

impl Strangers {
    /// Adds a connection, and returns its number. If there is no room, shuts down the oldest
    /// connection of the host that has most. A controller has one connection, and a host that
    /// floods has many.
    ///
    /// # Errors
    /// Fails if the socket cannot be duplicated.
    pub fn admit(&self, stream: &TcpStream, peer: SocketAddr) -> io::Result<u64> {
        let stream = stream.try_clone()?;
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if waiting.connections.len() >= MOST
            && let Some(number) = waiting.displaced()
            && let Some((_, stream)) = waiting.connections.remove(&number)
        {
            // the thread that reads it sees the end; a peer that is gone has shut it down already
            let _ = stream.shutdown(Shutdown::Both);
        }
        let number = waiting.next;
        waiting.next += 1;
        waiting.connections.insert(number, (host(peer.ip()), stream));
        Ok(number)
    }

    /// Removes a connection, and returns true if it was not displaced before.
    pub fn remove(&self, number: u64) -> bool {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.connections.remove(&number).is_some()
    }
}

impl Waiting {
    /// Returns the number of the connection that makes room: the oldest of the host that has most.
    fn displaced(&self) -> Option<u64> {
        let mut counts: BTreeMap<IpAddr, usize> = BTreeMap::new();
        for (host, _) in self.connections.values() {
            *counts.entry(*host).or_default() += 1;
        }
        let most = counts.values().max().copied()?;
        let mut in_order = self.connections.iter();
        in_order.find(|(_, (host, _))| counts.get(host) == Some(&most)).map(|(number, _)| *number)
    }
}

/// Returns the address under which a connection is counted: all addresses of an IPv6 /64 count as
/// one.
fn host(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0).into()
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::net::TcpListener;

    use super::*;

    /// Makes a connection that comes from `peer` as far as strangers are counted.
    fn connect(strangers: &Strangers, peer: &str) -> (u64, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let far = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (near, _) = listener.accept().unwrap();
        (strangers.admit(&near, peer.parse().unwrap()).unwrap(), far)
    }

    #[test]
    fn a_flood_displaces_its_own_connections() {
        let strangers = Strangers::default();
        let (controller, _own) = connect(&strangers, "192.0.2.1:1000");
        let mut flood: Vec<(u64, TcpStream)> =
            (0..3 * MOST).map(|_| connect(&strangers, "192.0.2.9:1000")).collect();
        assert_eq!(strangers.0.lock().unwrap().connections.len(), MOST);
        assert!(strangers.remove(controller), "a host with one connection keeps it");
        let (oldest, stream) = &mut flood[0];
        assert!(!strangers.remove(*oldest));
        assert_eq!(stream.read(&mut [0]).unwrap(), 0, "it was shut down");
        assert!(strangers.remove(flood.last().unwrap().0), "the latest has the room");
    }

    #[test]
    fn a_network_of_ipv6_counts_as_one_host() {
        let strangers = Strangers::default();
        let (controller, _own) = connect(&strangers, "[2001:db8::1]:1000");
        let flood: Vec<_> = (0..2 * MOST)
            .map(|last| connect(&strangers, &format!("[2001:db8:0:1::{last:x}]:1000")))
            .collect();
        assert!(strangers.remove(controller));
        assert!(!strangers.remove(flood[0].0));
    }
}
