//! Many TCP connections, begun at a rate: the virtual clients and the server of RFC 3511. Each
//! client is an address of a network behind the client's host, and all of them are one thread; so
//! is the server.

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
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use serde::{Deserialize, Serialize};

pub use beside::{Beside, Counter, call_beside};
pub use client::call;
pub use outcome::{Outcome, Setup, Times};
pub use ports::Ports;
pub use server::{MOST_BYTES, Service};

use crate::family::Family;
use crate::topology::{End, INTERFACE, Lab, Topology};

/// Where pages are fetched.
pub const PORT: u16 = 80;

/// Bytes of a page, the object of RFC 3511, if nothing else is said.
pub const PAGE: u32 = 64;

/// Connections at once: more than other limits allow on most machines.
pub const MOST_AT_ONCE: u64 = 400_000;

/// What is fetched over a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pages {
    /// So many pages, one after the other.
    pub requests: u32,
    /// Bytes of each.
    pub bytes: u32,
}

impl Pages {
    /// One small page.
    pub const ONE: Pages = Pages { requests: 1, bytes: PAGE };
}

/// Virtual clients.
const CLIENTS: u32 = 250;

/// Who is not connected or served after so long has failed: at a second the kernel tries to connect
/// again, and that would be another attempt.
const PATIENCE: Duration = Duration::from_millis(900);

/// How long the last of what was sent may be under way.
pub const STRAGGLERS: Duration = Duration::from_millis(100);

/// Files that are open besides connections.
const OTHER_FILES: u64 = 256;

/// Connections to attempt.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Calls {
    /// Where to.
    pub server: SocketAddr,
    /// Ports of the server from that one on; each combination of one with a client's address has
    /// its turn.
    pub ports: u16,
    /// The clients' addresses; none are the one that the route to the server has.
    pub clients: Vec<IpAddr>,
    /// How many.
    pub count: u64,
    /// Attempts a second.
    pub rate: f64,
    /// Whether all stay open until each was attempted, and only then fetch their page; otherwise
    /// each fetches it at once and is closed.
    pub hold: bool,
    /// Connections a second that are closed in the end, if that is to be seen; only if they are
    /// held.
    pub close: Option<f64>,
    /// Of a hundred attempts those that go to a port where a rule forbids them.
    pub forbidden: u32,
    /// That port.
    pub forbidden_port: u16,
    /// What each fetches; those that are held fetch one page.
    pub pages: Pages,
}

impl Calls {
    /// Whether the attempt of this number is one that a rule forbids; they are spread over all.
    fn is_forbidden(&self, number: u64) -> bool {
        let share = u64::from(self.forbidden);
        (number + 1) * share / 100 > number * share / 100
    }

    /// The address that it is made from, if that is not left to the route; each has its turn.
    fn client(&self, number: u64) -> Option<IpAddr> {
        let place = number.checked_rem(self.clients.len() as u64)?;
        self.clients.get(place as usize).copied()
    }

    /// Where it goes, if no rule forbids it.
    fn door(&self, number: u64) -> SocketAddr {
        let turn = number / self.clients.len().max(1) as u64;
        let port = self.server.port() + (turn % u64::from(self.ports.max(1))) as u16;
        SocketAddr::new(self.server.ip(), port)
    }

    /// The ports of the server that are allowed.
    pub fn doors(&self) -> Vec<u16> {
        (self.server.port()..=u16::MAX).take(self.ports.into()).collect()
    }

    /// Connections that may be open at once, if some of them wait for as long as they may.
    pub fn at_once(&self) -> u64 {
        if self.hold {
            return self.count;
        }
        let stages = f64::from(self.pages.requests) + 1.0;
        let waiting = (self.rate * stages * PATIENCE.as_secs_f64()).ceil();
        self.count.min(waiting as u64).clamp(1, MOST_AT_ONCE)
    }

    /// How long all that takes, unless somebody is late; none if that is no time.
    pub fn length(&self) -> Option<Duration> {
        let count = self.count as f64;
        let seconds = count / self.rate * if self.hold { 2.0 } else { 1.0 }
            + self.close.map_or(0.0, |rate| count / rate);
        Duration::try_from_secs_f64(seconds).ok()
    }

    /// How long the last of them may take besides.
    pub fn patience(&self) -> Duration {
        PATIENCE * self.pages.requests.saturating_add(2)
    }
}

/// What became of them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Answers {
    /// Attempts that are allowed.
    pub attempted: u64,
    /// Those that became connections.
    pub established: u64,
    /// Those of them that got all their pages.
    pub served: u64,
    /// Nanoseconds from each request until its page was there.
    pub fetched: Vec<u64>,
    /// Attempts that a rule forbids.
    pub forbidden: u64,
    /// Nanoseconds from each allowed attempt until its connection was there.
    pub setup: Vec<u64>,
    /// From when the first attempt was made to when the last was.
    pub took: Duration,
    /// Nanoseconds from when each connection was closed by its client until the server had done the
    /// same.
    pub closed: Vec<u64>,
    /// From when the first was closed to when the last was.
    pub closing: Duration,
    /// How long there was something to do, which is all the time but that in which nothing was due
    /// and nothing came.
    pub busy: Duration,
}

/// The virtual clients.
pub fn clients(family: Family) -> Vec<IpAddr> {
    let of = |host: u32| match client_network(family) {
        IpAddr::V4(network) => IpAddr::from(Ipv4Addr::from(network.to_bits() + host)),
        IpAddr::V6(network) => Ipv6Addr::from(network.to_bits() + u128::from(host)).into(),
    };
    (1..=CLIENTS).map(of).collect()
}

/// Their network, behind the client's host.
fn client_network(family: Family) -> IpAddr {
    match End::Client.address(family) {
        IpAddr::V4(address) => Ipv4Addr::from((address.to_bits() & !0xff) + 0x100).into(),
        IpAddr::V6(address) => Ipv6Addr::from((address.to_bits() & !0xffff) + 0x1_0000).into(),
    }
}

/// Gives the client's host the addresses of the virtual clients, both hosts room for many
/// connections, and this process as many files as `most` connections take at both ends.
///
/// # Errors
/// The kernel refuses something.
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
        // no router knows them there
        let client = End::Client.address(family);
        server.ip(&format!("route add {network} via {client} dev {INTERFACE}\n"))?;
    }
    server.set("net/core/somaxconn", "65535")?;
    server.set("net/ipv4/tcp_max_syn_backlog", "65535")
}

/// Lets this process have as many files open as so many connections at once take, if it has some of
/// their ends, one or both.
///
/// # Errors
/// The kernel refuses that.
pub fn allow_files(connections: u64, ends: u64) -> anyhow::Result<()> {
    let files = ends * connections + OTHER_FILES;
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).context("limit of open files")?;
    if soft < files {
        let refused = || {
            let possible = hard.saturating_sub(OTHER_FILES) / ends;
            format!(
                "{connections} connections at once want {files} open files; ulimit -Hn allows {possible} connections"
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
        assert_eq!(calls.doors(), [80, 81]);
        let ways = (0..8).map(|number| (calls.client(number), calls.door(number)));
        let ways: std::collections::HashSet<_> = ways.collect();
        assert_eq!(ways.len(), 4);
        let routed = Calls { clients: Vec::new(), ..calls };
        assert_eq!((routed.client(3), routed.door(3).port()), (None, 81));
    }

    #[test]
    fn what_calls_take_is_known_before() {
        let calls = Calls { count: 5000, rate: 1000.0, ..calls(0, Family::V4) };
        assert_eq!((calls.at_once(), calls.length()), (1800, Some(Duration::from_secs(5))));
        let held = Calls { hold: true, close: Some(500.0), ..calls.clone() };
        assert_eq!((held.at_once(), held.length()), (5000, Some(Duration::from_secs(20))));
        assert_eq!(Calls { rate: 0.0, ..calls }.length(), None);
    }
}
