//! Many TCP connections at a given rate: the virtual clients and the server of RFC 3511.
//!
//! Each virtual client is an address in a network behind the client's host. One thread runs all
//! clients, and one thread runs the server.

mod beside;
mod client;
pub mod datagrams;
pub mod flood;
mod outcome;
mod pace;
mod ports;
mod server;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use anyhow::Context;
use fwlab_net::family::Family;
use fwlab_net::topology::{End, INTERFACE, Lab, Topology};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use serde::{Deserialize, Serialize};

pub use beside::{Beside, Counter, call_beside};
pub use client::call;
pub use outcome::{CallSummary, Setup, Times};
pub use ports::Ports;
pub use server::{MOST_BYTES, Service};

/// TCP port of the server.
pub const PORT: u16 = 80;

/// Default size of a page (the object of RFC 3511) in bytes.
pub const PAGE: u32 = 64;

/// Largest number of simultaneous connections. Other limits are lower on most machines.
pub const MOST_AT_ONCE: u64 = 400_000;

/// The pages that a client fetches over one connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pages {
    /// Number of pages, fetched one after the other.
    pub requests: u32,
    /// Bytes of each page.
    pub bytes: u32,
}

impl Pages {
    /// One page of the default size.
    pub const ONE: Pages = Pages { requests: 1, bytes: PAGE };
}

/// Number of virtual clients.
const CLIENTS: u32 = 250;

/// Time after which a connection attempt or a request counts as failed. After one second the kernel
/// would retransmit the SYN, which would be a second attempt.
const PATIENCE: Duration = Duration::from_millis(900);

/// Time to wait for packets that are still under way after the last one was sent.
pub const STRAGGLERS: Duration = Duration::from_millis(100);

/// Open files that this process needs besides connections.
const OTHER_FILES: u64 = 256;

/// A plan of connections to attempt.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Calls {
    /// Address and first port of the server.
    pub server: SocketAddr,
    /// Number of server ports from the port of `server` on. The attempts use all combinations of
    /// client address and server port, one after the other.
    pub ports: u16,
    /// Source addresses of the clients. If empty, the kernel chooses the address by its route.
    pub clients: Vec<IpAddr>,
    /// Number of attempts.
    pub count: u64,
    /// Attempts per second.
    pub rate: f64,
    /// True if all connections stay open until the last attempt, and only then fetch their page. If
    /// false, each connection fetches its pages at once and is closed.
    pub hold: bool,
    /// Rate in connections per second at which held connections are closed at the end. None if the
    /// closing is not measured.
    pub close: Option<f64>,
    /// Percentage of attempts that go to `forbidden_port`, which a rule blocks.
    pub forbidden: u32,
    /// Server port that a rule blocks.
    pub forbidden_port: u16,
    /// Pages that each connection fetches. A held connection fetches one page.
    pub pages: Pages,
}

impl Calls {
    /// Returns true if attempt `number` goes to the forbidden port. The forbidden attempts are
    /// evenly spaced.
    fn is_forbidden(&self, number: u64) -> bool {
        let share = u64::from(self.forbidden);
        (number + 1) * share / 100 > number * share / 100
    }

    /// Returns the source address of attempt `number`, or None if the route determines it.
    fn client(&self, number: u64) -> Option<IpAddr> {
        let place = number.checked_rem(self.clients.len() as u64)?;
        self.clients.get(place as usize).copied()
    }

    /// Returns the server address and port of an allowed attempt.
    fn server_of(&self, number: u64) -> SocketAddr {
        let turn = number / self.clients.len().max(1) as u64;
        let port = self.server.port() + (turn % u64::from(self.ports.max(1))) as u16;
        SocketAddr::new(self.server.ip(), port)
    }

    /// Returns the allowed ports of the server.
    pub fn server_ports(&self) -> Vec<u16> {
        (self.server.port()..=u16::MAX).take(self.ports.into()).collect()
    }

    /// Returns the largest number of simultaneous connections, if attempts use up their timeouts.
    pub fn at_once(&self) -> u64 {
        if self.hold {
            return self.count;
        }
        let stages = f64::from(self.pages.requests) + 1.0;
        let waiting = (self.rate * stages * PATIENCE.as_secs_f64()).ceil();
        self.count.min(waiting as u64).clamp(1, MOST_AT_ONCE)
    }

    /// Returns the planned duration, or None if a rate is zero or the duration overflows.
    pub fn length(&self) -> Option<Duration> {
        let count = self.count as f64;
        let seconds = count / self.rate * if self.hold { 2.0 } else { 1.0 }
            + self.close.map_or(0.0, |rate| count / rate);
        Duration::try_from_secs_f64(seconds).ok()
    }

    /// Returns the longest time that connections may need after the planned duration.
    pub fn patience(&self) -> Duration {
        PATIENCE * self.pages.requests.saturating_add(2)
    }
}

/// The results of a plan of connections.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Answers {
    /// Attempts to the allowed ports.
    pub attempted: u64,
    /// Allowed attempts that became connections.
    pub established: u64,
    /// Connections that received all their pages.
    pub served: u64,
    /// Nanoseconds from each request to the last byte of its page.
    pub fetched: Vec<u64>,
    /// Attempts to the forbidden port.
    pub forbidden: u64,
    /// Nanoseconds from each allowed attempt to its established connection.
    pub setup: Vec<u64>,
    /// Time from the first attempt to the last.
    pub took: Duration,
    /// Nanoseconds from each close by the client to the close by the server.
    pub closed: Vec<u64>,
    /// Time from the first close to the last.
    pub closing: Duration,
    /// Total time without the time in which the client thread slept.
    pub busy: Duration,
}

/// Returns the addresses of the virtual clients.
pub fn clients(family: Family) -> Vec<IpAddr> {
    let of = |host: u32| match client_network(family) {
        IpAddr::V4(network) => IpAddr::from(Ipv4Addr::from(network.to_bits() + host)),
        IpAddr::V6(network) => Ipv6Addr::from(network.to_bits() + u128::from(host)).into(),
    };
    (1..=CLIENTS).map(of).collect()
}

/// Returns the network of the virtual clients, which lies behind the client's host.
fn client_network(family: Family) -> IpAddr {
    match End::Client.address(family) {
        IpAddr::V4(address) => Ipv4Addr::from((address.to_bits() & !0xff) + 0x100).into(),
        IpAddr::V6(address) => Ipv6Addr::from((address.to_bits() & !0xffff) + 0x1_0000).into(),
    }
}

/// Prepares the hosts for up to `most` simultaneous connections.
///
/// The client's host gets the addresses of the virtual clients and a wide range of local ports. The
/// server's host gets long queues for new connections. This process gets enough open files for both
/// ends of each connection.
///
/// # Errors
/// Fails if the limit of open files cannot be raised, or if the kernel refuses a setting or a
/// route.
pub fn prepare(lab: &Lab, family: Family, most: u64) -> anyhow::Result<()> {
    allow_files(most, 2)?;
    let client = lab.end(End::Client);
    client.set("net/ipv4/ip_local_port_range", "1024 65535")?;
    client.set("net/ipv6/ip_nonlocal_bind", "1")?;
    let length = if family == Family::V4 { 24 } else { 112 };
    let network = format!("{}/{length}", client_network(family));
    client.ip(&format!("route add local {network} dev lo\n"))?;
    let server = lab.end(End::Server);
    if matches!(lab.shape().topology, Topology::Direct | Topology::Bridge) {
        // no router knows the clients' network there
        let client = End::Client.address(family);
        server.ip(&format!("route add {network} via {client} dev {INTERFACE}\n"))?;
    }
    server.set("net/core/somaxconn", "65535")?;
    server.set("net/ipv4/tcp_max_syn_backlog", "65535")
}

/// Raises this process's limit of open files for `connections` simultaneous connections, of which
/// it has `ends` ends each (1 or 2).
///
/// # Errors
/// Fails if the limit cannot be read, or if the hard limit is too low and the process may not raise
/// it.
pub fn allow_files(connections: u64, ends: u64) -> anyhow::Result<()> {
    let files = ends * connections + OTHER_FILES;
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).context("limit of open files")?;
    if soft < files {
        let refused = || {
            let possible = hard.saturating_sub(OTHER_FILES) / ends;
            format!(
                "{connections} simultaneous connections need {files} open files; ulimit -Hn allows \
                 {possible} connections"
            )
        };
        setrlimit(Resource::RLIMIT_NOFILE, files, hard.max(files)).with_context(refused)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn calls(forbidden: u32, family: Family) -> Calls {
        Calls {
            server: SocketAddr::new(End::Server.address(family), 80),
            ports: 1,
            clients: clients(family),
            count: 1000,
            rate: 1.0,
            hold: false,
            close: None,
            forbidden,
            forbidden_port: 1,
            pages: Pages::ONE,
        }
    }

    #[test]
    fn forbidden_attempts_are_as_many_as_asked_for_and_spread() {
        for share in [0, 1, 10, 50, 100] {
            let calls = calls(share, Family::V4);
            let all: Vec<u64> = (0..1000).filter(|&number| calls.is_forbidden(number)).collect();
            assert_eq!(all.len() as u32, share * 10);
            let widest = all.windows(2).map(|pair| pair[1] - pair[0]).max();
            assert!(widest.is_none_or(|widest| widest <= u64::from(100 / share)));
        }
    }

    #[test]
    fn clients_have_addresses_of_their_own_behind_the_clients_host() {
        let of = |number, family| calls(0, family).client(number).unwrap().to_string();
        assert_eq!(of(0, Family::V4), "198.18.1.1");
        assert_eq!(of(u64::from(CLIENTS) - 1, Family::V4), "198.18.1.250");
        assert_eq!(of(u64::from(CLIENTS) + 1, Family::V4), "198.18.1.2");
        assert_eq!(of(249, Family::V6), "2001:2:0:1::1:fa");
    }

    #[test]
    fn each_address_goes_to_each_port() {
        let two = clients(Family::V4)[..2].to_vec();
        let calls = Calls { ports: 2, clients: two, ..calls(0, Family::V4) };
        assert_eq!(calls.server_ports(), [80, 81]);
        let ways = (0..8).map(|number| (calls.client(number), calls.server_of(number)));
        let ways: std::collections::HashSet<_> = ways.collect();
        assert_eq!(ways.len(), 4);
        let routed = Calls { clients: Vec::new(), ..calls };
        assert_eq!((routed.client(3), routed.server_of(3).port()), (None, 81));
    }

    #[test]
    fn duration_and_simultaneous_connections_are_planned() {
        let calls = Calls { count: 5000, rate: 1000.0, ..calls(0, Family::V4) };
        assert_eq!((calls.at_once(), calls.length()), (1800, Some(Duration::from_secs(5))));
        let held = Calls { hold: true, close: Some(500.0), ..calls.clone() };
        assert_eq!((held.at_once(), held.length()), (5000, Some(Duration::from_secs(20))));
        assert_eq!(Calls { rate: 0.0, ..calls }.length(), None);
    }
}
