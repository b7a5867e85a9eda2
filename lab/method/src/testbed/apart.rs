//! Measurements between two other machines, through an agent on each.

use std::net::IpAddr;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use fwlab_agent::{Agents, Answer, Frames, Machine, Pair, Part, Reach, Tally};
use fwlab_load::raw::sender::Pace;
use fwlab_load::sockets::{Talk, TalkResult};
use fwlab_load::wire::{self, Interfaces, NO_WAY};
use fwlab_net::family::Family;
use fwlab_net::interrupt::Interrupt;
use fwlab_net::placement::Disturbance;
use fwlab_net::topology::End;
use fwlab_net::traffic::ServerAddress;
use fwlab_results::Run;

use crate::plan::{CALIBRATION, Plan, WARM};
use crate::rounds::Measured;

/// Two agents, and the interfaces between which frames go.
#[derive(Clone)]
pub struct Ends {
    /// The agents of client and server.
    pub agents: Agents,
    /// Interfaces of client and server, if the generator makes the load.
    pub interfaces: Interfaces,
}

/// Two agents that are prepared for trials.
pub(super) struct Apart {
    pair: Pair,
    machines: [Machine; 2],
    duration: Duration,
}

impl Apart {
    /// Connects to the agents, gives them their parts, and checks that the load gets through.
    ///
    /// # Errors
    /// Fails if an agent cannot be used, or if the load does not get through. Fails if the load is
    /// not exactly one of sockets and frames.
    pub fn new(ends: &Ends, plan: &Plan, interrupt: &Interrupt) -> anyhow::Result<Apart> {
        let pair = Pair::connect(&ends.agents, interrupt)?;
        match (plan.talk, ends.interfaces.names()) {
            (Some(talk), None) => Apart::talking(pair, talk),
            (None, Some(_)) => Apart::sending(pair, &ends.interfaces, plan),
            _ => {
                bail!("the load is either --traffic, or frames between --client-if and --server-if")
            }
        }
    }

    fn talking(mut pair: Pair, talk: Talk) -> anyhow::Result<Apart> {
        let address = pair.server_address();
        let (family, version) = if address.is_ipv4() { (Family::V4, 4) } else { (Family::V6, 6) };
        ensure!(
            family == talk.family,
            "the server's address is {address}: add --ip {version}, or choose another \
             --server-address"
        );
        // the server's own address leads to the interface that has it
        let machines = pair.machines([Reach::Towards(address), Reach::Towards(address)])?;
        let talk = Talk { way: ServerAddress::At(address), ..talk };
        let mut apart = Apart { pair, machines, duration: talk.duration };
        apart.talk(Talk { duration: WARM, ..talk }, address)?;
        apart.pair.trial()?;
        apart.talk(talk, address)?;
        Ok(apart)
    }

    fn talk(&mut self, talk: Talk, address: IpAddr) -> anyhow::Result<()> {
        let server = Part::Server { talk, address };
        self.pair.prepare(Part::Client(talk), server, talk.duration)
    }

    fn sending(mut pair: Pair, interfaces: &Interfaces, plan: &Plan) -> anyhow::Result<Apart> {
        let names = interfaces.names().context("--client-if and --server-if are missing")?;
        let machines = pair.machines(names.clone().map(Reach::By))?;
        let frames = Frames {
            load: plan.load.clone(),
            interface: names[0].clone(),
            links: interfaces.link_addresses([&machines[0].link, &machines[1].link])?,
            addresses: [End::Client, End::Server].map(|end| end.address(plan.load.ip)),
            pace: Pace::fast(CALIBRATION),
        };
        let mut apart = Apart { pair, machines, duration: plan.duration };
        apart.send(frames.clone(), &names[1])?;
        let [sent, counted] = apart.pair.tallies()?;
        ensure!(
            counted.counts.received > 0,
            "none of {} frames came through: {NO_WAY}",
            sent.counts.sent
        );
        apart.send(Frames { pace: plan.pace(sent.rate()), ..frames }, &names[1])?;
        Ok(apart)
    }

    fn send(&mut self, frames: Frames, counting: &str) -> anyhow::Result<()> {
        let sink = Part::Sink { interface: counting.to_owned() };
        self.pair.prepare(Part::Source(Box::new(frames)), sink, self.duration)
    }

    /// Does a trial.
    ///
    /// # Errors
    /// Fails if an agent is gone, or if the load does not get through.
    pub fn trial(&mut self) -> anyhow::Result<Measured> {
        match self.pair.trial()? {
            [Answer::Heard(heard), Answer::Seen(server)] => Ok(self.talked(heard, &server)),
            [Answer::Frames(sent), Answer::Frames(counted)] => Ok(flooded(&sent, &counted)),
            _ => bail!("unexpected answers: the agents do not have the roles that they were given"),
        }
    }

    fn talked(&self, heard: TalkResult, server: &Disturbance) -> Measured {
        let why = |end: &str, of: &Disturbance| {
            of.doubt_within(self.duration).map(|why| format!("{end}: {why}"))
        };
        Measured {
            value: heard.value,
            doubt: why("client", &heard.disturbance).or_else(|| why("server", server)),
            counts: None,
            latency: heard.latency,
        }
    }

    /// Adds both machines, and the network between them, to the results.
    pub fn describe(&self, run: &mut Run) {
        let [client, server] = &self.machines;
        for (end, machine) in [("client", client), ("server", server)] {
            let environment = machine.environment.clone();
            run.agents.push(fwlab_results::Agent { end: end.to_owned(), environment });
        }
        run.topologies.push(wire::described("two machines", [&client.link, &server.link]));
    }
}

/// Returns the rate of received frames a second, by the sink's clock. There is no latency, because
/// the clocks of the machines differ.
fn flooded(sent: &Tally, counted: &Tally) -> Measured {
    let why = |end: &str, why: Option<String>| why.map(|why| format!("{end}: {why}"));
    let received = counted.counts.received;
    Measured {
        value: received.saturating_sub(1) as f64 / counted.time.as_secs_f64().max(1e-9),
        doubt: why("client", sent.disturbance.doubt_if_busy(sent.time))
            .or_else(|| why("server", counted.disturbance.doubt_within(counted.time))),
        counts: Some(sent.counts.and(counted.counts)),
        latency: None,
    }
}
