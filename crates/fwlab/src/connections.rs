//! Many TCP connections, begun at a rate: the virtual clients and the server of RFC 3511. Each client is an address of a
//! network behind the client's host, and all of them are one thread; so is the server.

mod beside;
mod client;
pub mod datagrams;
pub mod flood;
mod server;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use anyhow::Context;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use serde::Serialize;

pub use client::call;
pub use server::Service;

use crate::topology::{End, Family, INTERFACE, Lab, Topology};

/// Where pages are fetched.
pub const PORT: u16 = 80;

/// Bytes of a page, the object of RFC 3511, if nothing else is said.
pub const PAGE: u32 = 64;

/// What is fetched over a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
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
const CLIENTS: u64 = 250;

/// Who is not connected or served after so long has failed: at a second the kernel tries to connect again, and that would
/// be another attempt.
const PATIENCE: Duration = Duration::from_millis(900);

/// Files that are open besides connections.
const OTHER_FILES: u64 = 256;

/// Connections to attempt.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Calls {
    /// Where to.
    pub server: SocketAddr,
    /// The address before that of the first virtual client.
    pub clients: IpAddr,
    /// How many.
    pub count: u64,
    /// Attempts a second.
    pub rate: f64,
    /// Whether all stay open until each was attempted, and only then fetch their page; otherwise each fetches it at
    /// once and is closed.
    pub hold: bool,
    /// Connections a second that are closed in the end, if that is to be seen; only if they are held.
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

    /// The virtual client that makes it; each has its turn.
    fn client(&self, number: u64) -> IpAddr {
        let host = (number % CLIENTS + 1) as u32;
        match self.clients {
            IpAddr::V4(address) => Ipv4Addr::from(address.to_bits() + host).into(),
            IpAddr::V6(address) => Ipv6Addr::from(address.to_bits() + u128::from(host)).into(),
        }
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
    /// Nanoseconds from when each connection was closed by its client until the server had done the same.
    pub closed: Vec<u64>,
    /// From when the first was closed to when the last was.
    pub closing: Duration,
}

/// A network of virtual clients, behind the client's host.
pub fn clients(family: Family) -> IpAddr {
    match End::Client.address(family) {
        IpAddr::V4(address) => Ipv4Addr::from((address.to_bits() & !0xff) + 0x100).into(),
        IpAddr::V6(address) => Ipv6Addr::from((address.to_bits() & !0xffff) + 0x1_0000).into(),
    }
}

/// Gives the client's host the addresses of the virtual clients, both hosts room for many connections, and this process
/// as many files as `most` connections take at both ends.
///
/// # Errors
/// The kernel refuses something.
pub fn prepare(lab: &Lab, family: Family, most: u64) -> anyhow::Result<()> {
    let files = 2 * most + OTHER_FILES;
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).context("limit of open files")?;
    if soft < files {
        let refused = || {
            let possible = hard.saturating_sub(OTHER_FILES) / 2;
            format!(
                "{most} connections at once want {files} open files; ulimit -Hn allows {possible} connections"
            )
        };
        setrlimit(Resource::RLIMIT_NOFILE, files, hard.max(files)).with_context(refused)?;
    }
    let client = lab.end(End::Client);
    client.set("net/ipv4/ip_local_port_range", "1024 65535")?;
    client.set("net/ipv6/ip_nonlocal_bind", "1")?;
    let length = if family == Family::V4 { 24 } else { 112 };
    let network = format!("{}/{length}", clients(family));
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

#[cfg(test)]
mod tests {
    use super::*;

    fn calls(forbidden: u32, family: Family) -> Calls {
        let (server, clients) = (SocketAddr::new(End::Server.address(family), 80), clients(family));
        let (count, rate, hold, close, forbidden_port) = (1000, 1.0, false, None, 1);
        let pages = Pages::ONE;
        Calls { server, clients, count, rate, hold, close, forbidden, forbidden_port, pages }
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
        let of = |number, family| calls(0, family).client(number).to_string();
        assert_eq!(of(0, Family::V4), "198.18.1.1");
        assert_eq!(of(CLIENTS - 1, Family::V4), "198.18.1.250");
        assert_eq!(of(CLIENTS + 1, Family::V4), "198.18.1.2");
        assert_eq!(of(249, Family::V6), "2001:2:0:1::1:fa");
    }
}
