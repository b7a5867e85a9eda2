//! Loads of real sockets: a server at one end of a network, and clients at the other that behave
//! like netperf, netstrain and similar programs.

mod client;
mod external;
mod ftp_session;
pub(crate) mod listener;
mod rules;
mod server;

use std::net::IpAddr;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context;
use serde::{Deserialize, Serialize};

use crate::family::Family;
use crate::host::Host;
use crate::interrupt::Interrupt;
use crate::placement::{Disturbance, KinWatch, Placement, Watch};
use crate::raw::frame::Transport;
use crate::results::Latency;
use crate::topology::{End, Lab};

pub use external::serve;
pub use rules::{check_borders, check_rules};
pub use server::{CHARGEN, HTTP, Server, TCP_PORTS};

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

/// A load of sockets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Talk {
    /// The kind of the load.
    pub kind: TrafficKind,
    /// The transport protocol.
    pub transport: Transport,
    /// The address family.
    pub family: Family,
    /// Bytes of payload of each request, answer, page and file.
    pub size: usize,
    /// The duration of the load.
    pub duration: Duration,
    /// Number of simultaneous clients.
    pub clients: usize,
    /// True if the server opens the data connections of FTP.
    pub active: bool,
    /// The end of the network that is the server.
    pub to: End,
    /// The address by which clients reach the server.
    pub way: ServerAddress,
}

impl Talk {
    /// Returns the load of client `number`, with that client's server.
    fn of_client(&self, number: usize) -> Talk {
        match self.way {
            ServerAddress::Each => {
                Talk { way: ServerAddress::At(self.to.address_of(number, self.family)), ..*self }
            }
            _ => *self,
        }
    }
}

/// The result of a load.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TalkResult {
    /// The value, in the unit of its kind.
    pub value: f64,
    /// The times of the transactions, or None if the load has no transactions.
    pub latency: Option<Latency>,
    /// Disturbances of the client's CPU during the load.
    pub disturbance: Disturbance,
}

/// The result of one client, and the time in which it ran.
struct Turn {
    said: client::ClientResult,
    begin: Instant,
    end: Instant,
}

/// Returns the rate of all clients, from the first begin to the last end. Clients that share a CPU
/// may not all run at the same time.
fn together<'t>(turns: impl Iterator<Item = &'t Turn> + Clone) -> f64 {
    let begin = turns.clone().map(|turn| turn.begin).min();
    let end = turns.clone().map(|turn| turn.end).max();
    let all = begin.zip(end).map_or(Duration::ZERO, |(begin, end)| end - begin).as_secs_f64();
    let done = |turn: &Turn| turn.said.value * (turn.end - turn.begin).as_secs_f64();
    turns.map(done).sum::<f64>() / all
}

/// Runs a load from the client to the server of a network.
///
/// # Errors
/// Fails if the server cannot be reached, or if a signal arrives.
pub fn talk(
    lab: &Lab,
    talk: &Talk,
    at: Placement,
    interrupt: &Interrupt,
) -> anyhow::Result<TalkResult> {
    let others = lab.device().into_iter().chain([lab.end(talk.to)]).collect();
    talk_from(lab.end(End::Client), others, talk, at, interrupt)
}

/// Runs a load from a host. Rates of several clients are added up, and their times merged. Programs
/// on `others` are part of the load, so their use of the CPU is no disturbance.
///
/// # Errors
/// Fails if the server cannot be reached, if the thread cannot use its CPU, or if a signal arrives.
pub fn talk_from(
    host: &Host,
    others: Vec<&Host>,
    talk: &Talk,
    at: Placement,
    interrupt: &Interrupt,
) -> anyhow::Result<TalkResult> {
    let kin = KinWatch::begin(at.cpu, others)?;
    let one = &|number: usize| -> anyhow::Result<(Turn, Disturbance)> {
        host.enter()?;
        at.take()?;
        let watch = Watch::begin(at.cpu)?;
        let begin = Instant::now();
        let said = client::run(talk, number, at, interrupt)?;
        Ok((Turn { said, begin, end: Instant::now() }, watch.end()?))
    };
    let all = thread::scope(|scope| {
        let clients: Vec<_> =
            (0..talk.clients.max(1)).map(|number| scope.spawn(move || one(number))).collect();
        let join = |client: thread::ScopedJoinHandle<'_, _>| {
            client.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        clients.into_iter().map(join).collect::<anyhow::Result<Vec<_>>>()
    })?;
    let (_, mut disturbance) =
        *all.iter().max_by_key(|(_, one)| one.switches).context("no client")?;
    disturbance.others = kin.end()?.others;
    let times: Vec<_> = all.iter().filter_map(|(turn, _)| turn.said.latency.as_ref()).collect();
    let latency = (!times.is_empty()).then(|| Latency::merged(times.iter().copied()));
    let value = match (talk.kind, &latency) {
        (TrafficKind::Ping, Some(latency)) => latency.quantile(0.5).unwrap_or_default() as f64,
        _ if talk.kind.programs().is_empty() => together(all.iter().map(|(turn, _)| turn)),
        _ => all.iter().map(|(turn, _)| turn.said.value).sum(),
    };
    Ok(TalkResult { value, latency, disturbance })
}
