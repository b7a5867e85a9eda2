//! Rule lists among which the BPF programs look up the deciding rule, without the rest of the
//! packet path. `fwlab speed` and `xtask bench` measure with them; no network is needed.
//!
//! The rules are samples of `skipstep_samples`, or ClassBench lists. Each list is loaded
//! as the text of a pf.conf. Every packet lies in the box of a rule drawn at random, so caches help
//! little. For some packets the result is compared with the model, which evaluates one rule after
//! the other.

pub mod classbench;
mod header;

use anyhow::{Context as _, bail, ensure};
use skipstep_classifier::tree::{Covering, INET, INET6, Space};
use skipstep_model::{Carried, Decision, LinkHeader, Packet};
use skipstep_pfconf::Context;
use skipstep_ruleset::interface::{Host, Interface};
use skipstep_ruleset::{Direction, Ruleset};
use skipstep_samples::{ListShape, packets, rules, rules6};
use skipstep_scenario::Engine as _;
use skipstep_scenario::Model;
use skipstep_testing::{FAILED, LookupPacket, Lookups, NO_RULE, PACKETS};

use self::header::Header;

/// Number of rule evaluations that the model may need in all; it limits the packets compared.
const COMPARED_RULES: usize = 3_000_000;

/// A rule list of either family, and the packets to look up.
pub struct List {
    /// The list's name in results.
    pub name: String,
    text: String,
    rules: usize,
    headers: Vec<Header>,
}

/// A rule list that is loaded.
pub struct Loaded {
    /// The loaded rules.
    pub ruleset: Ruleset,
    /// The host for which the rules were loaded.
    pub host: Host,
}

impl List {
    /// Draws a sample of `count` rules, of IPv6 if `six` is true, otherwise of IPv4.
    pub fn sample(kind: ListShape, count: usize, six: bool) -> List {
        let name = format!("{}{}", kind.name(), if six { " IPv6" } else { "" });
        if six {
            let rules = rules6(kind, count, 1);
            List::new(name, &INET6, &rules, &packets(&rules, PACKETS, 2))
        } else {
            let rules = rules(kind, count, 1);
            List::new(name, &INET, &rules, &packets(&rules, PACKETS, 2))
        }
    }

    /// Makes a list of ClassBench's rules. The packets are ClassBench's `trace`, or drawn here if
    /// there is none. A trace is shuffled, because it has a run of packets for each rule.
    pub fn of_classbench(name: &str, rules: &[Covering<6>], trace: Option<Vec<[u32; 6]>>) -> List {
        let Some(mut trace) = trace else {
            let packets = packets(rules, PACKETS, 2);
            return List::new(name.to_owned(), &INET, rules, &packets);
        };
        fastrand::Rng::with_seed(2).shuffle(&mut trace);
        let packets: Vec<_> = trace.iter().copied().cycle().take(PACKETS).collect();
        List::new(format!("{name}, its trace"), &INET, rules, &packets)
    }

    fn new<const N: usize>(
        name: String,
        space: &'static Space<N>,
        rules: &[Covering<N>],
        points: &[[u32; N]],
    ) -> List {
        let mut text = String::new();
        for rule in rules {
            header::write_rule(&mut text, space, rule);
        }
        let headers =
            (0..).zip(points).map(|(number, point)| Header::from_point(space, point, number));
        List { name, text, rules: rules.len(), headers: headers.collect() }
    }

    /// Returns the number of rules.
    pub fn rules(&self) -> usize {
        self.rules
    }

    /// Loads the rules and the packets into `lookups`.
    ///
    /// # Errors
    /// Fails if pf.conf's parser rejects the rules, or if the kernel refuses the rules or packets.
    pub fn load(&self, lookups: &mut Lookups) -> anyhow::Result<Loaded> {
        let host = host();
        let ruleset = match skipstep_pfconf::load(&self.text, &Context::new(&host)) {
            Ok(loaded) => loaded.ruleset,
            Err(rejected) => bail!("{}: {}", self.name, rejected.diagnostics[0]),
        };
        ensure!(ruleset.rules.len() == self.rules, "{}: {} rules", self.name, ruleset.rules.len());
        let ids = lookups.load(&ruleset, &host)?;
        let id = |header: &Header| {
            ids.get(&header.interface).copied().with_context(|| header.interface.clone())
        };
        let packets = self.headers.iter().map(|header| Ok(header.packet(id(header)?)));
        lookups.set_packets(&packets.collect::<anyhow::Result<Vec<LookupPacket>>>()?)?;
        Ok(Loaded { ruleset, host })
    }

    /// Compares lookups with the model, and returns the number of differences. `decided` has the
    /// number of the deciding rule for each packet. Only a part of the packets is compared.
    ///
    /// # Errors
    /// Fails if a lookup failed, or if the model refuses the rules.
    pub fn differ(&self, loaded: &Loaded, decided: &[u32]) -> anyhow::Result<usize> {
        let failed = decided.iter().filter(|decided| **decided == FAILED).count();
        ensure!(failed == 0, "{}: {failed} lookups failed", self.name);
        let mut model = Model::new();
        model.load(&loaded.ruleset, &loaded.host).map_err(anyhow::Error::msg)?;
        let wanted = (COMPARED_RULES / self.rules.max(1)).clamp(30, 2000);
        let mut differ = 0;
        for place in (0..PACKETS).step_by(PACKETS / wanted) {
            let header = &self.headers[place];
            let Some(bytes) = header.bytes() else { continue };
            let expected = match model.packet(&inbound(&header.interface, bytes)).decision {
                Decision::Rule(rule) => rule.number,
                _ => NO_RULE,
            };
            differ += usize::from(decided[place] != expected);
        }
        Ok(differ)
    }
}

fn inbound(interface: &str, bytes: Vec<u8>) -> Packet {
    Packet {
        direction: Direction::In,
        interface: interface.to_owned(),
        bytes,
        link: LinkHeader::default(),
        received_on: None,
        carried: Carried::default(),
        owner: None,
    }
}

fn host() -> Host {
    let interface = |index: u32| Interface {
        name: format!("em{index}"),
        index: index + 1,
        mtu: 1500,
        ..Interface::default()
    };
    Host { interfaces: (0..4).map(interface).collect(), routes: Vec::new() }
}
