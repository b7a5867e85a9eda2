//! Whatever is between two other machines, for searches with connections: an agent there makes
//! them, another one serves pages.

use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};

use super::attempts::{Attempts, CEILING, CEILING_AT_LEAST, FAST, PROBE, SLOW, Seen};
use super::network::{BELIEVED, pause};
use super::room::Room;
use super::{Measurer, Order, Trial};
use crate::agent::{
    Agents, Called, Caller, LONGEST_TRIAL, Machine, Made, Pair, Part, Reach, Served,
};
use crate::connections::{Beside, Calls, Pages, datagrams, flood};
use crate::family::Family;
use crate::interrupt::Interrupt;

/// Bytes of headers before the first of a datagram: with them it is to be longer than the link's
/// longest packet.
const HEADERS: u32 = 28;

/// A wait that nobody need be told of.
const SHORT: Duration = Duration::from_secs(2);

/// Which ways connections take, as far as they are not left to the machines.
#[derive(Debug, Clone)]
pub(super) struct Ways {
    /// IPv4 or IPv6.
    pub family: Family,
    /// The first port of the server, and how many there are.
    pub doors: (u16, u16),
    /// Addresses of the client.
    pub clients: Vec<IpAddr>,
    /// A port that a rule forbids, if that is of interest.
    pub forbidden: Option<u16>,
    /// How long trials are that make connections at a rate.
    pub seconds: f64,
    /// Connections that are to be open at once, if they are held.
    pub at_once: Option<u64>,
    /// What is to be sent beside them.
    pub beside: Beside,
}

/// Two agents and what they do.
pub(super) struct ConnectionsApart {
    pair: Pair,
    pub machines: [Machine; 2],
    calls: Calls,
    room: Room,
    seconds: f64,
    /// What the client's ports allow, if that is less than what it manages.
    bound: Option<f64>,
    /// Trials in which the client was late.
    late: usize,
    interrupt: Interrupt,
}

impl ConnectionsApart {
    /// Connects to them, and sees that connections get through which are to, and those do not that
    /// are forbidden.
    ///
    /// # Errors
    /// An agent is not there or cannot do its part, or something else gets through than should.
    pub fn connect(agents: &Agents, ways: Ways, interrupt: &Interrupt) -> anyhow::Result<Self> {
        let mut pair = Pair::connect(agents, interrupt)?;
        let address = pair.server_address();
        let (family, version) = if address.is_ipv4() { (Family::V4, 4) } else { (Family::V6, 6) };
        ensure!(
            family == ways.family,
            "the server is at {address}: --ip {version}, or another --server-address"
        );
        // the server's own address leads to the interface that has it
        let machines = pair.machines([Reach::Towards(address), Reach::Towards(address)])?;
        let (door, ports) = ways.doors;
        let calls = Calls {
            server: SocketAddr::new(address, door),
            ports,
            clients: ways.clients,
            count: PROBE,
            rate: SLOW,
            // they end by RST then, and not even the first ones keep a port from as many as there
            // can be
            hold: ways.at_once.is_some(),
            close: None,
            forbidden: 0,
            forbidden_port: ways.forbidden.unwrap_or(door),
            pages: Pages::ONE,
        };
        let room = Room::new(machines[0].ports, &calls);
        room.check(&Calls { count: ways.at_once.unwrap_or(PROBE), ..calls.clone() })?;
        let mut apart = ConnectionsApart {
            pair,
            machines,
            calls,
            room,
            seconds: ways.seconds,
            bound: None,
            late: 0,
            interrupt: interrupt.clone(),
        };
        let visitor = apart.check(ways.forbidden)?;
        apart.check_beside(ways.beside, visitor)?;
        Ok(apart)
    }

    /// A few connections get through, and none that is forbidden; where the server sees them come
    /// from.
    fn check(&mut self, forbidden: Option<u16>) -> anyhow::Result<IpAddr> {
        let few = self.calls.clone();
        let (made, served) = self.attempt(&few, Beside::Nothing)?;
        ensure!(
            made.outcome.served == PROBE,
            "{} of {PROBE} connections to {} got their page: what is between client and server has to let them through",
            made.outcome.served,
            few.server
        );
        let visitor = served.visitor.context("the server saw nobody")?;
        if let Some(port) = forbidden {
            let (_, served) = self.attempt(&Calls { forbidden: 100, ..few }, Beside::Nothing)?;
            ensure!(
                served.leaked == 0,
                "a rule of what is between the agents is to forbid connections to port {port} of the server \
                 (--forbidden-port), but {} of {PROBE} got as far as that",
                served.leaked
            );
        }
        Ok(visitor)
    }

    /// What is sent beside connections has to be what it is meant to be there.
    fn check_beside(&mut self, beside: Beside, visitor: IpAddr) -> anyhow::Result<()> {
        match beside {
            Beside::Nothing => {}
            Beside::Datagrams(_) => {
                let link = &self.machines[0].link;
                ensure!(
                    datagrams::BYTES as u32 + HEADERS > link.mtu,
                    "datagrams of {} bytes are no fragments where packets may be as long: the client's {} has an MTU of {}",
                    datagrams::BYTES,
                    link.name,
                    link.mtu
                );
            }
            Beside::Syns(_) => {
                let nobody = flood::attackers(visitor.is_ipv4());
                let back = Reach::Towards(nobody);
                let back = self.pair.server_machine(back).with_context(|| {
                    format!("the server answers SYNs that come from the network of {nobody}")
                })?;
                let to_visitors = self.pair.server_machine(Reach::Towards(visitor))?;
                ensure!(
                    back.link == to_visitors.link,
                    "the server's answers to a flood from the network of {nobody} would leave by {}, and not by {}, where \
                     its clients are: its route there has to lead the same way",
                    back.link.name,
                    to_visitors.link.name
                );
            }
        }
        Ok(())
    }

    /// What became of calls, when there are as many ways to the server as they take.
    fn attempt(&mut self, calls: &Calls, beside: Beside) -> anyhow::Result<(Made, Served)> {
        self.room.check(calls)?;
        let wait = self.room.wait(calls, Instant::now());
        if wait > SHORT {
            let seconds = wait.as_secs_f64();
            eprintln!("{seconds:.0} s until connections that were closed give back their ports");
        }
        pause(wait.as_secs_f64(), &self.interrupt);
        self.interrupt.check()?;
        let called = Called {
            address: calls.server.ip(),
            ports: calls.doors(),
            forbidden_port: (calls.forbidden > 0).then_some(calls.forbidden_port),
            at_once: calls.at_once(),
            beside,
        };
        let caller = Caller { calls: calls.clone(), beside };
        let length = calls.length().context("a trial's length")?.saturating_add(calls.patience());
        let length = length.min(LONGEST_TRIAL);
        self.pair.prepare(Part::Caller(Box::new(caller)), Part::Called(called), length)?;
        let said = self.pair.connections();
        self.room.take(calls, Instant::now());
        said
    }

    /// What is to be said of a result, which nobody sees in it.
    pub fn doubts(&self) -> Vec<String> {
        let bound = self.bound.map(|most| {
            let reasons = self.room.reasons();
            format!(
                "the client can make {most:.0} connections a second for {} s: {reasons}",
                self.seconds
            )
        });
        let late = (self.late > 0).then(|| {
            let trials = self.late;
            format!(
                "the client was late in {trials} trials: what failed in them may be its own doing"
            )
        });
        bound.into_iter().chain(late).collect()
    }
}

impl Measurer for ConnectionsApart {
    fn trial(&mut self, order: &Order) -> anyhow::Result<Trial> {
        let attempts = Attempts::of(order, &self.calls)?;
        let (made, served) = self.attempt(&attempts.calls, attempts.beside)?;
        self.late += usize::from(attempts.in_time(&made.outcome) < 1.0);
        let seen = Seen { sent: made.sent, received: served.received, leaked: served.leaked };
        Ok(attempts.trial(&made.outcome, seen))
    }

    fn wait(&mut self, seconds: f64) {
        pause(seconds, &self.interrupt);
    }

    /// What the client gets done without a break when it makes connections as fast as it goes,
    /// whatever becomes of them, and somewhat less; and no more than it has ports for.
    fn most(&mut self, pages: Pages) -> anyhow::Result<Option<f64>> {
        // what they take is not to be waited for before the first trial
        let allowed = (self.room.total() / 2).max(1);
        let count = (CEILING / u64::from(pages.requests)).max(CEILING_AT_LEAST).min(allowed);
        let all = Calls { count, rate: FAST, pages, ..self.calls.clone() };
        let (made, _) = self.attempt(&all, Beside::Nothing)?;
        ensure!(made.outcome.served > 0, "none of {count} connections at once got all its pages");
        let busy = made.outcome.busy.max(Duration::from_micros(1));
        let most = (count as f64 / busy.as_secs_f64() * BELIEVED).floor().max(1.0);
        let allowed = self.room.most(self.seconds).floor();
        // those that are held are as many as they are, no matter how many a second
        if self.calls.hold || most <= allowed {
            return Ok(Some(most));
        }
        self.bound = Some(allowed);
        Ok(self.bound)
    }
}
