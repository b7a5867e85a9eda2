//! Searches between two other machines with connections: the agent of the client makes connections,
//! and the agent of the server serves pages.

use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use fwlab_agent::{
    Agents, Called, Caller, LONGEST_TRIAL, Machine, Made, Pair, Part, Reach, Served,
};
use fwlab_load::connections::{Beside, Calls, Pages, datagrams, flood};
use fwlab_net::family::Family;
use fwlab_net::interrupt::Interrupt;

use super::attempts::{Attempts, BesideCounts, CEILING, CEILING_AT_LEAST, FAST, PROBE, SLOW};
use super::network::pause;
use super::room::PortPairs;
use super::{Measurer, Order, Trial};
use crate::ceiling::USABLE_SHARE;

/// Bytes of headers before the payload of a datagram's first fragment. With them a datagram must be
/// longer than the link's MTU.
const HEADERS: u32 = 28;

/// The longest wait without a message on the terminal.
const SHORT: Duration = Duration::from_secs(2);

/// The addresses and ports of connections.
#[derive(Debug, Clone)]
pub(super) struct Endpoints {
    /// IPv4 or IPv6.
    pub family: Family,
    /// The first port of the server, and the number of ports.
    pub server_ports: (u16, u16),
    /// Source addresses of the client.
    pub clients: Vec<IpAddr>,
    /// A port that the filter forbids. None if the test needs no such port.
    pub forbidden: Option<u16>,
    /// The length in seconds of trials that make connections at a rate.
    pub seconds: f64,
    /// Number of connections that are held open at once. None if connections are not held.
    pub at_once: Option<u64>,
    /// The packets to send beside the connections.
    pub beside: Beside,
}

/// Two agents, and the connections between them.
pub(super) struct ConnectionsApart {
    pair: Pair,
    pub machines: [Machine; 2],
    calls: Calls,
    room: PortPairs,
    seconds: f64,
    /// The highest rate that the client's ports allow, in connections a second. None if the ports
    /// are not the limit.
    bound: Option<f64>,
    /// Number of trials in which the client was late.
    late: usize,
    interrupt: Interrupt,
}

impl ConnectionsApart {
    /// Connects to both agents. Checks that connections get through, and that forbidden ones do
    /// not.
    ///
    /// # Errors
    /// Fails if an agent is not reachable or cannot do its part, if the client has too few ports,
    /// or if the check fails.
    pub fn connect(
        agents: &Agents,
        endpoints: Endpoints,
        interrupt: &Interrupt,
    ) -> anyhow::Result<Self> {
        let mut pair = Pair::connect(agents, interrupt)?;
        let address = pair.server_address();
        let (family, version) = if address.is_ipv4() { (Family::V4, 4) } else { (Family::V6, 6) };
        ensure!(
            family == endpoints.family,
            "the server's address is {address}: add --ip {version}, or choose another \
             --server-address"
        );
        // the server's own address leads to the interface that has it
        let machines = pair.machines([Reach::Towards(address), Reach::Towards(address)])?;
        let (door, ports) = endpoints.server_ports;
        let calls = Calls {
            server: SocketAddr::new(address, door),
            ports,
            clients: endpoints.clients,
            count: PROBE,
            rate: SLOW,
            // held connections end by RST, so even the probes occupy no port of the later
            // connections
            hold: endpoints.at_once.is_some(),
            close: None,
            forbidden: 0,
            forbidden_port: endpoints.forbidden.unwrap_or(door),
            pages: Pages::ONE,
        };
        let room = PortPairs::new(machines[0].ports, &calls);
        room.check(&Calls { count: endpoints.at_once.unwrap_or(PROBE), ..calls.clone() })?;
        let mut apart = ConnectionsApart {
            pair,
            machines,
            calls,
            room,
            seconds: endpoints.seconds,
            bound: None,
            late: 0,
            interrupt: interrupt.clone(),
        };
        let visitor = apart.check(endpoints.forbidden)?;
        apart.check_beside(endpoints.beside, visitor)?;
        Ok(apart)
    }

    /// Checks that a few connections get through, and that no forbidden one does. Returns the
    /// source address that the server sees.
    fn check(&mut self, forbidden: Option<u16>) -> anyhow::Result<IpAddr> {
        let few = self.calls.clone();
        let (made, served) = self.attempt(&few, Beside::Nothing)?;
        ensure!(
            made.outcome.served == PROBE,
            "only {} of {PROBE} connections to {} got their page: the device between client and \
             server must pass them",
            made.outcome.served,
            few.server
        );
        let visitor = served.visitor.context("the server saw no connection")?;
        if let Some(port) = forbidden {
            let (_, served) = self.attempt(&Calls { forbidden: 100, ..few }, Beside::Nothing)?;
            ensure!(
                served.leaked == 0,
                "the device between the agents must block connections to port {port} of the server \
                 (--forbidden-port), but {} of {PROBE} reached it",
                served.leaked
            );
        }
        Ok(visitor)
    }

    /// Checks that datagrams beside connections are fragmented, and that answers to SYNs of a flood
    /// leave by the interface of the clients.
    fn check_beside(&mut self, beside: Beside, visitor: IpAddr) -> anyhow::Result<()> {
        match beside {
            Beside::Nothing => {}
            Beside::Datagrams(_) => {
                let link = &self.machines[0].link;
                ensure!(
                    datagrams::BYTES as u32 + HEADERS > link.mtu,
                    "datagrams of {} bytes are not fragmented: the client's {} has an MTU of {}, \
                     choose a smaller one",
                    datagrams::BYTES,
                    link.name,
                    link.mtu
                );
            }
            Beside::Syns(_) => {
                let nobody = flood::attackers(visitor.is_ipv4());
                let back = Reach::Towards(nobody);
                let back = self.pair.server_machine(back).with_context(|| {
                    format!("the server needs a route for its answers to the SYNs from {nobody}")
                })?;
                let to_visitors = self.pair.server_machine(Reach::Towards(visitor))?;
                ensure!(
                    back.link == to_visitors.link,
                    "the server's answers to a flood from the network of {nobody} leave by {}, but \
                     its clients are behind {}: route both networks by one interface",
                    back.link.name,
                    to_visitors.link.name
                );
            }
        }
        Ok(())
    }

    /// Makes the calls as soon as enough ports are free, and returns the results of both agents.
    fn attempt(&mut self, calls: &Calls, beside: Beside) -> anyhow::Result<(Made, Served)> {
        self.room.check(calls)?;
        let wait = self.room.wait(calls, Instant::now());
        if wait > SHORT {
            let seconds = wait.as_secs_f64();
            eprintln!("waiting {seconds:.0} s for the ports of closed connections (TIME-WAIT)");
        }
        pause(wait.as_secs_f64(), &self.interrupt);
        self.interrupt.check()?;
        let called = Called {
            address: calls.server.ip(),
            ports: calls.server_ports(),
            forbidden_port: (calls.forbidden > 0).then_some(calls.forbidden_port),
            at_once: calls.at_once(),
            beside,
        };
        let caller = Caller { calls: calls.clone(), beside };
        let length = calls.length().context("a trial's length")?.saturating_add(calls.patience());
        let length = length.min(LONGEST_TRIAL);
        self.pair.prepare(Part::Caller(Box::new(caller)), Part::Called(called), length)?;
        let said = self.pair.connections();
        self.room.record(calls, Instant::now());
        said
    }

    /// Returns the reasons to doubt the result that the result itself does not show.
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
                "the client was late in {trials} trials: it may have caused their failures itself"
            )
        });
        bound.into_iter().chain(late).collect()
    }
}

impl Measurer for ConnectionsApart {
    fn trial(&mut self, order: &Order) -> anyhow::Result<Trial> {
        let attempts = Attempts::from_order(order, &self.calls)?;
        let (made, served) = self.attempt(&attempts.calls, attempts.beside)?;
        self.late += usize::from(attempts.in_time(&made.outcome) < 1.0);
        let seen =
            BesideCounts { sent: made.sent, received: served.received, leaked: served.leaked };
        Ok(attempts.trial(&made.outcome, seen))
    }

    fn wait(&mut self, seconds: f64) {
        pause(seconds, &self.interrupt);
    }

    /// Returns a rate slightly below the highest at which the client makes connections, in
    /// connections a second. Failed connections count too. The client's ports may bound the rate
    /// further.
    fn most(&mut self, pages: Pages) -> anyhow::Result<Option<f64>> {
        // uses at most half of the ports, so that the first trial need not wait for them
        let allowed = (self.room.total() / 2).max(1);
        let count = (CEILING / u64::from(pages.requests)).max(CEILING_AT_LEAST).min(allowed);
        let all = Calls { count, rate: FAST, pages, ..self.calls.clone() };
        let (made, _) = self.attempt(&all, Beside::Nothing)?;
        ensure!(
            made.outcome.served > 0,
            "none of {count} simultaneous connections got all its pages"
        );
        let busy = made.outcome.busy.max(Duration::from_micros(1));
        let most = (count as f64 / busy.as_secs_f64() * USABLE_SHARE).floor().max(1.0);
        let allowed = self.room.most(self.seconds).floor();
        // the number of held connections does not depend on the rate
        if self.calls.hold || most <= allowed {
            return Ok(Some(most));
        }
        self.bound = Some(allowed);
        Ok(self.bound)
    }
}
