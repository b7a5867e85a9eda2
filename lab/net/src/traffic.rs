//! Traffic of sockets as a system under test meets it: its kind, the ports of the server, and the
//! address by which clients reach the server.

use std::net::IpAddr;
use std::ops::RangeInclusive;

use serde::{Deserialize, Serialize};

use crate::family::Family;
use crate::topology::End;
use crate::transport::Transport;

/// Port of echo: sends all data back.
pub const ECHO: u16 = 7;
/// Port of discard: reads to the end, and then sends the number of bytes (64 bits, network byte
/// order).
pub const DISCARD: u16 = 9;
/// Port of the one-shot service: reads a request that begins with its length (32 bits, network byte
/// order), sends the request back and closes.
pub const ONCE: u16 = 17;
/// Port of chargen: sends until the client closes.
pub const CHARGEN: u16 = 19;
/// Port of FTP sessions.
pub const FTP: u16 = 21;
/// Port of HTTP: `GET /N` returns N bytes.
pub const HTTP: u16 = 80;
/// Ports of passive data connections of FTP.
pub const DATA_PORTS: RangeInclusive<u16> = 10_000..=10_199;

/// TCP ports that a proxy must forward, as inclusive ranges.
pub const TCP_PORTS: [(u16, u16); 7] = [
    (ECHO, ECHO),
    (DISCARD, DISCARD),
    (ONCE, ONCE),
    (CHARGEN, CHARGEN),
    (FTP, FTP),
    (HTTP, HTTP),
    (*DATA_PORTS.start(), *DATA_PORTS.end()),
];

/// The kind of a load of sockets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TrafficKind {
    /// requests and responses, one after the other, over one connection
    Rr,
    /// connect, send a request, read the response, close; repeatedly
    Crr,
    /// bytes to the server, at full speed
    Send,
    /// bytes from the server, at full speed
    Receive,
    /// bytes in both directions, at full speed
    Both,
    /// datagrams that the server returns; measures the round trip
    Ping,
    /// fetch a page over a new connection; repeatedly
    Http,
    /// log in to an FTP server, fetch a file of --size bytes, log out; repeatedly
    Ftp,
    /// fetch large files in one FTP session
    FtpBulk,
    /// bytes that iperf3 sends to the server
    Iperf3,
    /// bytes that iperf3 receives from the server
    Iperf3Reverse,
    /// requests and responses of netperf (TCP_RR, UDP_RR)
    NetperfRr,
    /// requests and responses of netperf, each over a new connection (TCP_CRR)
    NetperfCrr,
}

/// The address by which clients reach the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ServerAddress {
    /// The server's own address.
    Straight,
    /// The address of the host in the middle, whose configuration names the server.
    Proxy,
    /// The address of the host in the middle. The user name of an FTP session names the server.
    Named,
    /// A given address.
    At(IpAddr),
    /// The address of a different server for each client, from a different source address each:
    /// [`crate::topology::Lab::multiply`].
    Each,
}

impl ServerAddress {
    /// Returns the address to which clients connect.
    pub fn address(self, to: End, family: Family) -> IpAddr {
        match self {
            ServerAddress::Straight | ServerAddress::Each => to.address(family),
            ServerAddress::Proxy | ServerAddress::Named => End::Client.gateway(family),
            ServerAddress::At(address) => address,
        }
    }

    /// Returns the user name of an FTP session with a server.
    pub fn user(self, server: IpAddr) -> String {
        match (self, server) {
            (ServerAddress::Named, IpAddr::V4(server)) => format!("anonymous@{server}"),
            (ServerAddress::Named, IpAddr::V6(server)) => format!("anonymous@[{server}]"),
            _ => "anonymous".to_owned(),
        }
    }
}

impl TrafficKind {
    /// Returns the name of the load in results.
    pub fn name(self) -> &'static str {
        match self {
            TrafficKind::Rr => "rr",
            TrafficKind::Crr => "crr",
            TrafficKind::Send => "send",
            TrafficKind::Receive => "receive",
            TrafficKind::Both => "both",
            TrafficKind::Ping => "ping",
            TrafficKind::Http => "http",
            TrafficKind::Ftp => "ftp",
            TrafficKind::FtpBulk => "ftp-bulk",
            TrafficKind::Iperf3 => "iperf3",
            TrafficKind::Iperf3Reverse => "iperf3-reverse",
            TrafficKind::NetperfRr => "netperf-rr",
            TrafficKind::NetperfCrr => "netperf-crr",
        }
    }

    /// Returns the name and the unit of the measured value.
    pub fn quantity(self) -> (&'static str, &'static str) {
        match self {
            TrafficKind::Rr | TrafficKind::NetperfRr => ("transactions", "1/s"),
            TrafficKind::Crr | TrafficKind::NetperfCrr => ("connections", "1/s"),
            TrafficKind::Send | TrafficKind::Receive | TrafficKind::Both | TrafficKind::FtpBulk => {
                ("throughput", "Mbit/s")
            }
            TrafficKind::Iperf3 | TrafficKind::Iperf3Reverse => ("throughput", "Mbit/s"),
            TrafficKind::Ping => ("round trip", "ns"),
            TrafficKind::Http => ("pages", "1/s"),
            TrafficKind::Ftp => ("sessions", "1/s"),
        }
    }

    /// Returns the external programs of the load, which must be in the path of client and server.
    pub fn programs(self) -> &'static [&'static str] {
        match self {
            TrafficKind::Iperf3 | TrafficKind::Iperf3Reverse => &["iperf3"],
            TrafficKind::NetperfRr | TrafficKind::NetperfCrr => &["netperf", "netserver"],
            _ => &[],
        }
    }

    /// Returns true if the load can use a transport protocol.
    pub fn takes(self, transport: Transport) -> bool {
        match self {
            TrafficKind::Rr | TrafficKind::NetperfRr => true,
            TrafficKind::Ping => transport == Transport::Udp,
            _ => transport == Transport::Tcp,
        }
    }
}
