//! Loads of real sockets: a server at one end of a network, and clients at the other that behave
//! like netperf, netstrain and similar programs.

mod client;
mod external;
mod ftp_session;
pub(crate) mod listener;
mod rules;
mod server;

use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context;
use fwlab_net::family::Family;
use fwlab_net::host::Host;
use fwlab_net::interrupt::Interrupt;
use fwlab_net::placement::{Disturbance, KinWatch, Placement, Watch};
use fwlab_net::topology::{End, Lab};
use fwlab_net::traffic::{ServerAddress, TrafficKind};
use fwlab_net::transport::Transport;
use fwlab_results::Latency;
use serde::{Deserialize, Serialize};

pub use external::serve;
pub use rules::{check_borders, check_rules};
pub use server::Server;

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
