//! Expectations of a packet. Only given properties are compared.

use std::fmt::Debug;
use std::net::IpAddr;

use skipstep_model::{Decision, Diverted, Fate, Forwarded, LogRecord, Verdict};
use skipstep_ruleset::{Action, Direction, Reason, RouteKind, RuleId, Timeout};
use skipstep_views::{NextHop, Peer, StateView};

use crate::differences::Differences;
use crate::look::{self, OutFields};
use crate::observe::Observation;
use crate::source::SourceWords;

/// The expected fate of a packet.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Expectation {
    /// `pass`, `block`, `consumed`
    pub verdict: Option<Verdict>,
    /// `rule n`, `default`, `skipped`, `orphan`
    pub decision: Option<Decision>,
    /// `anchor-rule n`: the anchor rule that led to the deciding rule
    pub anchor_rule: Option<Option<u32>>,
    /// `reason`: the reason in the log
    pub reason: Option<Reason>,
    /// `counted`: all counted reasons
    pub counted: Option<Vec<Reason>>,
    /// `new state`, `state`, `no state`
    pub state: Option<StateUse>,
    /// `also state`: other states, by number
    pub others: Vec<(u32, StateWords)>,
    /// `out`, `unchanged`: the packet as it leaves the firewall
    pub out: Option<Out>,
    /// `reply`, `no reply`: all packets sent in answer
    pub replies: Option<Vec<Reply>>,
    /// `forward`, `route`, `no forward`: all packets sent in place of the packet or beside it
    pub forwarded: Option<Vec<Forwarded>>,
    /// `log`, `no log`: all log records
    pub log: Option<Vec<LogWords>>,
    /// `tag`, `no tag`: the packet's tag afterwards
    pub tag: Option<Option<String>>,
    /// `prio`: the packet's priority afterwards
    pub prio: Option<u8>,
    /// `queue`, `no queue`: the packet's queue when it leaves
    pub queue: Option<Option<String>>,
    /// `delay`, `no delay`: the packet's delay before it leaves, in milliseconds
    pub delay: Option<Option<u16>>,
    /// `rtable`: the routing table for the packet
    pub rtable: Option<u32>,
    /// `divert-to`, `divert-reply`, `divert-packet`, `no divert`: the socket or program of this
    /// host that gets the packet
    pub diverted: Option<Option<Diverted>>,
    /// `expired`: states that expired since the previous packet
    pub expired: Option<Vec<u32>>,
    /// `removed`: states that the packet removed
    pub removed: Option<Vec<u32>>,
    /// `states`: number of states afterwards
    pub states: Option<u64>,
    /// `sources`: number of tracked sources afterwards
    pub sources: Option<u64>,
    /// `source`: tracked sources that must exist
    pub tracked: Vec<SourceWords>,
}

/// The expected use of states by a packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StateUse {
    /// The packet neither used nor created a state.
    None,
    /// The packet created a state.
    New(Option<u32>, StateWords),
    /// The packet used an existing state.
    Existing(Option<u32>, StateWords),
}

/// Expected properties of a state. States are numbered from 1 in order of creation.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say all")]
pub struct StateWords {
    pub protocol: Option<u8>,
    pub direction: Option<Direction>,
    /// `on all` is `Some(None)`
    pub interface: Option<Option<String>>,
    pub rdomain: Option<u32>,
    pub rule: Option<Option<RuleId>>,
    pub anchor_rule: Option<Option<u32>>,
    pub wire: Option<[(IpAddr, u16); 2]>,
    pub stack: Option<[(IpAddr, u16); 2]>,
    pub src: Option<PeerWords>,
    pub dst: Option<PeerWords>,
    pub timeout: Option<Timeout>,
    /// Time of expiry, in seconds.
    pub expires: Option<u32>,
    pub packets: Option<[u64; 2]>,
    pub bytes: Option<[u64; 2]>,
    pub flags: Option<u16>,
    pub min_ttl: Option<u8>,
    pub max_mss: Option<u16>,
    pub tag: Option<Option<String>>,
    /// `routed none` is `Some(None)`
    pub route: Option<Option<RouteKind>>,
    /// Text of the [`NextHop`].
    pub next_hop: Option<String>,
}

/// Expected peer of a state: `state` or `state:seqlo:seqhi:seqdiff:max_win:wscale`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PeerWords {
    /// Only the peer's state.
    State(u8),
    /// All fields.
    Full(Peer),
}

/// The expected form of a passed packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Out {
    /// The packet is unchanged.
    Unchanged,
    /// The packet has exactly these bytes.
    Bytes(Vec<u8>),
    /// The packet has these fields.
    Fields(OutFields),
}

/// An expected packet in answer.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say all")]
pub enum Reply {
    /// Exactly these bytes.
    Bytes(Vec<u8>),
    /// A TCP segment with exactly these flags; `None` is any segment with RST.
    Tcp { flags: Option<u8>, seq: Option<u32>, ack: Option<u32>, ttl: Option<u8> },
    /// An ICMP or ICMPv6 message.
    Icmp { ipv6: bool, kind: u8, code: Option<u8> },
}

/// Expected properties of a log record.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say all")]
pub struct LogWords {
    pub action: Option<Action>,
    /// `default` is `Some(None)`
    pub rule: Option<Option<u32>>,
    pub anchor_rule: Option<Option<u32>>,
    /// `main` is empty
    pub anchor: Option<String>,
    pub reason: Option<Reason>,
    /// Number N of pflogN.
    pub to: Option<u8>,
    /// `none` is `Some(None)`
    pub uid: Option<Option<u32>>,
}

impl Expectation {
    /// Returns an expectation of everything in `observation`, to compare another evaluator with it.
    pub fn complete(observation: &Observation) -> Self {
        let fate = &observation.fate;
        let passed = fate.verdict == Verdict::Pass;
        let settled = !observation.has_ended_states();
        let mut others = observation.changed.clone();
        let state = match observation.state {
            None => StateUse::None,
            Some(number) => {
                others.retain(|&other| other != number);
                let words = observation
                    .view(number)
                    .map(|view| StateWords::complete(view, observation.now))
                    .unwrap_or_default();
                if observation.created.contains(&number) {
                    StateUse::New(Some(number), words)
                } else {
                    StateUse::Existing(Some(number), words)
                }
            }
        };
        Expectation {
            verdict: Some(fate.verdict),
            decision: Some(fate.decision.clone()),
            anchor_rule: Some(fate.anchor_rule),
            reason: Some(fate.reason),
            counted: Some(fate.counted.clone()),
            state: Some(state),
            others: others
                .into_iter()
                .filter_map(|number| Some((number, observation.view(number)?)))
                .filter(|(_, state)| state.expires_at > observation.now)
                .map(|(number, state)| (number, StateWords::complete(state, observation.now)))
                .collect(),
            out: passed.then(|| match &fate.out {
                None => Out::Unchanged,
                Some(bytes) => Out::Bytes(bytes.clone()),
            }),
            replies: Some(fate.replies.iter().cloned().map(Reply::Bytes).collect()),
            forwarded: Some(fate.forwarded.clone()),
            log: Some(fate.log.iter().map(LogWords::complete).collect()),
            // A dropped packet's metadata is invisible.
            tag: passed.then(|| fate.carried.tag.clone()),
            prio: passed.then_some(fate.carried.prio),
            queue: passed.then(|| fate.carried.queue.clone()),
            delay: passed.then_some(Some(fate.carried.delay).filter(|delay| *delay != 0)),
            rtable: passed.then_some(fate.carried.rtable),
            diverted: passed.then_some(fate.carried.diverted),
            expired: Some(observation.expired.clone()),
            removed: settled.then(|| observation.removed.clone()),
            states: settled.then_some(observation.states.len() as u64),
            sources: settled.then_some(observation.sources.len() as u64),
            tracked: match settled {
                true => observation.sources.iter().map(SourceWords::complete).collect(),
                false => Vec::new(),
            },
        }
    }

    /// Returns the differences as text; empty if all expectations are met.
    pub fn compare(&self, observation: &Observation) -> Vec<String> {
        let mut differences = Differences::default();
        let fate = &observation.fate;
        differences.compare("expired", &self.expired, observation.expired.clone());
        differences.compare("verdict", &self.verdict, fate.verdict);
        differences.compare("decided by", &self.decision, fate.decision.clone());
        differences.compare("anchor rule", &self.anchor_rule, fate.anchor_rule);
        differences.compare("reason", &self.reason, fate.reason);
        differences.compare("counted", &self.counted, fate.counted.clone());
        self.compare_state(observation, &mut differences);
        self.compare_packets(fate, &mut differences);
        differences.compare("tag", &self.tag, fate.carried.tag.clone());
        differences.compare("prio", &self.prio, fate.carried.prio);
        differences.compare("queue", &self.queue, fate.carried.queue.clone());
        let delay = Some(fate.carried.delay).filter(|delay| *delay != 0);
        differences.compare("delay", &self.delay, delay);
        differences.compare("rtable", &self.rtable, fate.carried.rtable);
        differences.compare("divert", &self.diverted, fate.carried.diverted);
        differences.compare("removed", &self.removed, observation.removed.clone());
        differences.compare("states", &self.states, observation.states.len() as u64);
        differences.compare("sources", &self.sources, observation.sources.len() as u64);
        for words in &self.tracked {
            words.compare(&observation.sources, &mut differences);
        }
        differences.0
    }

    fn compare_state(&self, observation: &Observation, differences: &mut Differences) {
        if let Some(expected) = &self.state {
            let (fresh, number, words) = match expected {
                StateUse::None => (false, None, None),
                StateUse::New(number, words) => (true, *number, Some(words)),
                StateUse::Existing(number, words) => (false, *number, Some(words)),
            };
            match (words, observation.state) {
                (None, None) => {}
                (None, Some(found)) => {
                    differences.0.push(format!("state: expected none, found state {found}"))
                }
                (Some(_), None) => differences.0.push("state: expected one, found none".into()),
                (Some(words), Some(found)) => {
                    let created = observation.created.contains(&found);
                    if created != fresh {
                        let name = |fresh| if fresh { "a new one" } else { "an old one" };
                        differences.0.push(format!(
                            "state: expected {}, found {}",
                            name(fresh),
                            name(created)
                        ));
                    }
                    differences.compare("state number", &number, found);
                    words.compare(found, observation, differences);
                }
            }
        }
        for (number, words) in &self.others {
            words.compare(*number, observation, differences);
        }
    }

    fn compare_packets(&self, fate: &Fate, differences: &mut Differences) {
        match &self.out {
            None => {}
            Some(Out::Unchanged) => differences.compare(
                "out",
                &Some("unchanged".into()),
                look::hex_or(&fate.out, "unchanged"),
            ),
            Some(Out::Bytes(bytes))
                if fate.out.as_ref().is_some_and(|out| look::same(bytes, out)) => {}
            Some(Out::Bytes(bytes)) => differences.compare(
                "out",
                &Some(look::hex(bytes)),
                look::hex_or(&fate.out, "unchanged"),
            ),
            Some(Out::Fields(expected)) => match &fate.out {
                Some(found) => expected.compare(&look::fields(found), differences),
                None => {
                    differences.0.push("out: expected a changed packet, found it unchanged".into())
                }
            },
        }
        if let Some(replies) = &self.replies {
            if replies.len() != fate.replies.len() {
                let found: Vec<String> =
                    fate.replies.iter().map(|reply| look::hex(reply)).collect();
                differences.0.push(format!("replies: expected {}, found {found:?}", replies.len()));
            }
            for (expected, found) in replies.iter().zip(&fate.replies) {
                if let Some(difference) = expected.difference(found) {
                    differences.0.push(difference);
                }
            }
        }
        if !self.forwarded.as_ref().is_some_and(|expected| same_way(expected, &fate.forwarded)) {
            differences.compare("forwarded", &self.forwarded, fate.forwarded.clone());
        }
        if let Some(log) = &self.log {
            let same = log.len() == fate.log.len()
                && log.iter().zip(&fate.log).all(|(words, record)| words.hold(record));
            if !same {
                let found: Vec<LogWords> = fate.log.iter().map(LogWords::complete).collect();
                differences.0.push(format!("log: expected {log:?}, found {found:?}"));
            }
        }
    }
}

fn same_way(expected: &[Forwarded], found: &[Forwarded]) -> bool {
    let same = |(one, other): (&Forwarded, &Forwarded)| {
        one.route == other.route && look::same(&one.bytes, &other.bytes)
    };
    expected.len() == found.len() && expected.iter().zip(found).all(same)
}

impl OutFields {
    fn compare(&self, found: &OutFields, differences: &mut Differences) {
        fn one<T: PartialEq + Debug>(
            what: &str,
            expected: Option<T>,
            found: Option<T>,
            differences: &mut Differences,
        ) {
            if expected.is_some() && expected != found {
                differences.0.push(format!("out {what}: expected {expected:?}, found {found:?}"));
            }
        }
        one("ttl", self.ttl, found.ttl, differences);
        one("tos", self.tos, found.tos, differences);
        one("df", self.df, found.df, differences);
        one("id", self.id, found.id, differences);
        one("mss", self.mss, found.mss, differences);
        one("seq", self.seq, found.seq, differences);
        one("ack", self.ack, found.ack, differences);
    }
}

/// The RST flag of TCP.
const RST: u8 = 4;

impl Reply {
    /// Returns the comparable part of a reply if the source address of an ICMP message may differ.
    pub fn without_addresses(&self) -> Reply {
        match self.as_fields() {
            Reply::Tcp { .. } => self.clone(),
            other => other,
        }
    }

    /// Returns the fields of a reply without its addresses, for ICMP and TCP.
    pub fn as_fields(&self) -> Reply {
        let Reply::Bytes(bytes) = self else { return self.clone() };
        if let Some(look::Icmp { ipv6, kind, code }) = look::icmp(bytes) {
            return Reply::Icmp { ipv6, kind, code: Some(code) };
        }
        let Some(look::Tcp { flags, seq, ack }) = look::tcp(bytes) else { return self.clone() };
        let ttl = look::fields(bytes).ttl;
        Reply::Tcp { flags: Some(flags), seq: Some(seq), ack: Some(ack), ttl }
    }

    /// Returns the difference if `packet` is not this reply.
    fn difference(&self, packet: &[u8]) -> Option<String> {
        let holds = match self {
            Reply::Bytes(bytes) => look::same(bytes, packet),
            Reply::Tcp { flags, seq, ack, ttl } => look::tcp(packet).is_some_and(|tcp| {
                flags.map_or(tcp.flags & RST != 0, |flags| flags == tcp.flags)
                    && seq.is_none_or(|seq| seq == tcp.seq)
                    && ack.is_none_or(|ack| ack == tcp.ack)
                    && ttl.is_none_or(|ttl| look::fields(packet).ttl == Some(ttl))
            }),
            Reply::Icmp { ipv6, kind, code } => look::icmp(packet).is_some_and(|found| {
                found.ipv6 == *ipv6
                    && found.kind == *kind
                    && code.is_none_or(|code| code == found.code)
            }),
        };
        let expected = match self {
            Reply::Bytes(bytes) => look::hex(bytes),
            other => format!("{other:?}"),
        };
        (!holds).then(|| format!("reply: expected {expected}, found {}", look::hex(packet)))
    }
}

impl LogWords {
    fn complete(record: &LogRecord) -> Self {
        LogWords {
            action: Some(record.action),
            rule: Some(record.rule),
            anchor_rule: Some(record.anchor_rule),
            anchor: Some(record.anchor.clone()),
            reason: Some(record.reason),
            to: Some(record.to),
            uid: record.uid.map(Some),
        }
    }

    fn hold(&self, record: &LogRecord) -> bool {
        self.action.is_none_or(|action| action == record.action)
            && self.rule.is_none_or(|rule| rule == record.rule)
            && self.anchor_rule.is_none_or(|number| number == record.anchor_rule)
            && self.anchor.as_ref().is_none_or(|anchor| *anchor == record.anchor)
            && self.reason.is_none_or(|reason| reason == record.reason)
            && self.to.is_none_or(|to| to == record.to)
            && self.uid.is_none_or(|uid| uid == record.uid)
    }
}

impl StateWords {
    /// Returns an expectation of everything in a state. The timeout of an expired state is left
    /// out, because evaluators report different ones until they remove the state.
    pub fn complete(state: &StateView, now: u32) -> Self {
        let lives = state.expires_at > now;
        StateWords {
            protocol: Some(state.protocol),
            direction: Some(state.direction),
            interface: Some(state.interface.clone()),
            rdomain: Some(state.rdomain),
            rule: Some(state.rule.clone()),
            anchor_rule: Some(state.anchor_rule),
            wire: Some(state.wire),
            stack: Some(state.stack),
            src: Some(PeerWords::Full(state.src)),
            dst: Some(PeerWords::Full(state.dst)),
            timeout: lives.then_some(state.timeout),
            expires: lives.then_some(state.expires_at),
            packets: Some(state.packets),
            bytes: Some(state.bytes),
            flags: Some(state.flags),
            min_ttl: Some(state.min_ttl),
            max_mss: Some(state.max_mss),
            tag: Some(state.tag.clone()),
            route: Some(state.route.as_ref().map(|hop| hop.kind)),
            next_hop: state.route.as_ref().map(NextHop::to_string),
        }
    }

    fn compare(&self, number: u32, observation: &Observation, differences: &mut Differences) {
        let Some(found) = observation.view(number) else {
            if *self != StateWords::default() {
                differences.0.push(format!("state {number}: expected, but missing"));
            }
            return;
        };
        let mut own = Differences::default();
        own.compare("protocol", &self.protocol, found.protocol);
        own.compare("direction", &self.direction, found.direction);
        own.compare("interface", &self.interface, found.interface.clone());
        own.compare("rdomain", &self.rdomain, found.rdomain);
        own.compare("rule", &self.rule, found.rule.clone());
        own.compare("anchor rule", &self.anchor_rule, found.anchor_rule);
        own.compare("wire", &self.wire, found.wire);
        own.compare("stack", &self.stack, found.stack);
        compare_peer("src", self.src, found.src, &mut own);
        compare_peer("dst", self.dst, found.dst, &mut own);
        own.compare("timeout", &self.timeout, found.timeout);
        own.compare("expires", &self.expires, found.expires_at);
        own.compare("packets", &self.packets, found.packets);
        own.compare("bytes", &self.bytes, found.bytes);
        own.compare("flags", &self.flags, found.flags);
        own.compare("min-ttl", &self.min_ttl, found.min_ttl);
        own.compare("max-mss", &self.max_mss, found.max_mss);
        own.compare("tag", &self.tag, found.tag.clone());
        own.compare("routed", &self.route, found.route.as_ref().map(|hop| hop.kind));
        if self.next_hop.is_some() {
            let hop = found.route.as_ref().map(NextHop::to_string);
            own.compare("next hop", &Some(self.next_hop.clone()), hop);
        }
        differences
            .0
            .extend(own.0.into_iter().map(|difference| format!("state {number} {difference}")));
    }
}

fn compare_peer(
    side: &str,
    expected: Option<PeerWords>,
    found: Peer,
    differences: &mut Differences,
) {
    match expected {
        None => {}
        Some(PeerWords::State(state)) => differences.compare(side, &Some(state), found.state),
        Some(PeerWords::Full(peer)) => differences.compare(side, &Some(peer), found),
    }
}
