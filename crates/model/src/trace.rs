//! The steps of a packet's evaluation, for `pfctl explain`.

use std::fmt;
use std::net::IpAddr;

use skipstep_ruleset::{Action, Reason, RuleId};

use crate::key::{Ends, Key, StateId};

/// The stages of one packet, in order.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Trace {
    /// Stages, the first one first.
    pub stages: Vec<Stage>,
}

/// One step, or one finding.
#[derive(Debug, Clone, PartialEq)]
pub enum Stage {
    /// The interface is in `set skip on`.
    Skipped,
    /// The frame is for another station, and pf does not judge it.
    ForOtherStation,
    /// The packet has an MPLS label, and keeps it.
    Labelled,
    /// The headers were refused.
    Malformed(Reason),
    /// A check that PF makes of each packet failed.
    Refused(Reason),
    /// A fragment waits for the other fragments of its datagram.
    Held,
    /// A fragment completed its datagram, which has this length in bytes and continues in its
    /// place.
    Reassembled(usize),
    /// PF cleared fields that must be 0 in each packet (reserved bits, FIN beside SYN).
    Repaired,
    /// A state was looked up.
    Searched {
        /// Key of the packet, or of the packet that an ICMP error quotes.
        key: Key,
        /// State found, `None` if there is none.
        found: Option<StateId>,
    },
    /// A SYN was answered with a syncookie.
    CookieSent,
    /// A valid syncookie came back, so the SYN is recreated.
    CookieValid,
    /// A state lets the packet pass.
    Accepted(StateId),
    /// The packet does not fit its state.
    Rejected {
        /// Number of the state.
        state: StateId,
        /// Reason, to be printed.
        reason: &'static str,
    },
    /// A SYN came for a connection that has ended, so a new state may replace this one.
    Reused(StateId),
    /// A rule was evaluated.
    Rule {
        /// Name of the rule.
        rule: RuleId,
        /// Line of the rule in pf.conf, 0 if it is not written there.
        line: u32,
        /// Action of the rule; `None` for an anchor rule, which calls others.
        action: Option<Action>,
        /// First criterion that failed; `None` if the rule matched.
        failed: Option<Criterion>,
    },
    /// An anchor rule would exceed the maximum depth.
    TooDeep,
    /// More match rules match the packet than a state can count for.
    TooManyMatches,
    /// Rule evaluation is complete.
    Decided {
        /// Deciding rule: the last matching one or the first with `quick`; `None` is the default
        /// rule.
        rule: Option<RuleId>,
        /// Action of the rule.
        action: Action,
    },
    /// A rule translated the packet to these addresses and ports.
    Translated(Ends),
    /// A state was created.
    Created(StateId),
    /// A state could not be created.
    NotCreated(Reason),
    /// The packet has IP options, but the rule has no `allow-opts`.
    OptionsRefused,
    /// The packet is longer than `max-pkt-size`.
    TooLong {
        /// Value of `max-pkt-size`, in bytes.
        longest: u16,
    },
    /// The packet goes to a next hop of its state, not of the routing table.
    Routed {
        /// Name of the interface where it leaves.
        interface: String,
        /// Address of the next hop.
        next_hop: IpAddr,
    },
    /// The firewall sent this answer, printed in one line.
    Replied(String),
    /// The packet was changed on its way out.
    Changed,
}

/// The criteria of rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say all")]
pub enum Criterion {
    Interface,
    Direction,
    Rdomain,
    Family,
    Protocol,
    Source,
    Destination,
    TcpFlags,
    Os,
    SourcePort,
    DestinationPort,
    User,
    Group,
    IcmpType,
    IcmpCode,
    /// A rule that creates states does not match the answer to an ICMP query.
    NoReply,
    /// `fragment`, or a criterion that fragments never match.
    Fragment,
    Tos,
    Probability,
    Tagged,
    ReceivedOn,
    Prio,
    /// A limiter that is used up; `drops` is true if the packet is dropped.
    StateLimiter {
        drops: bool,
    },
    SourceLimiter {
        drops: bool,
    },
    MaxPktRate,
}

impl Criterion {
    /// Returns the words of the criterion in pf.conf.
    pub fn name(self) -> &'static str {
        match self {
            Criterion::Interface => "on",
            Criterion::Direction => "in/out",
            Criterion::Rdomain => "on rdomain",
            Criterion::Family => "inet/inet6",
            Criterion::Protocol => "proto",
            Criterion::Source => "from",
            Criterion::Destination => "to",
            Criterion::TcpFlags => "flags",
            Criterion::Os => "os",
            Criterion::SourcePort => "from port",
            Criterion::DestinationPort => "to port",
            Criterion::User => "user",
            Criterion::Group => "group",
            Criterion::IcmpType => "icmp-type",
            Criterion::IcmpCode => "icmp-type code",
            Criterion::NoReply => "keep state (not for an ICMP reply)",
            Criterion::Fragment => "fragment",
            Criterion::Tos => "tos",
            Criterion::Probability => "probability",
            Criterion::Tagged => "tagged",
            Criterion::ReceivedOn => "received-on",
            Criterion::Prio => "prio",
            Criterion::StateLimiter { .. } => "state limiter",
            Criterion::SourceLimiter { .. } => "source limiter",
            Criterion::MaxPktRate => "max-pkt-rate",
        }
    }
}

/// Collects a trace if one is requested.
#[derive(Debug, Default)]
pub(crate) struct Tracer(Option<Trace>);

impl Tracer {
    pub fn on() -> Self {
        Tracer(Some(Trace::default()))
    }

    pub fn record(&mut self, stage: impl FnOnce() -> Stage) {
        if let Some(trace) = &mut self.0 {
            trace.stages.push(stage());
        }
    }

    pub fn finish(self) -> Trace {
        self.0.unwrap_or_default()
    }
}

impl fmt::Display for Trace {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        self.stages.iter().try_for_each(|stage| writeln!(f, "{stage}"))
    }
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Stage::Skipped => write!(f, "interface: skipped"),
            Stage::Labelled => write!(f, "link header: an MPLS label, not parsed further"),
            Stage::ForOtherStation => write!(f, "link header: for another station"),
            Stage::Malformed(reason) => write!(f, "headers: refused, {}", reason.name()),
            Stage::Refused(reason) => write!(f, "normalize: refused, {}", reason.name()),
            Stage::Held => write!(f, "fragment: held until the other fragments arrive"),
            Stage::Reassembled(bytes) => write!(f, "fragment: the last one, {bytes} bytes go on"),
            Stage::Repaired => write!(f, "normalize: repaired"),
            Stage::Searched { key, found } => {
                let end = |index: usize| Endpoint((key.address[index], key.port[index]));
                write!(f, "state: {} <-> {} ", end(0), end(1))?;
                match found {
                    Some(id) => write!(f, "found, {id}"),
                    None => write!(f, "not found"),
                }
            }
            Stage::CookieSent => write!(f, "syncookie: sent"),
            Stage::CookieValid => write!(f, "syncookie: came back, the SYN is made again"),
            Stage::Accepted(id) => write!(f, "state: {id} accepts the packet"),
            Stage::Rejected { state, reason } => {
                write!(f, "state: {state} rejects the packet: {reason}")
            }
            Stage::Reused(id) => write!(f, "state: {id} is closed and is replaced"),
            Stage::Rule { rule, line, action, failed } => {
                let line = if *line > 0 { format!("line {line}, ") } else { String::new() };
                write!(f, "rule {rule} ({line}{}): ", action.map_or("anchor", action_name))?;
                match failed {
                    Some(criterion) => write!(f, "no match, {}", criterion.name()),
                    None => write!(f, "match"),
                }
            }
            Stage::TooManyMatches => write!(f, "rules: too many match rules"),
            Stage::TooDeep => write!(f, "rules: anchors too deep inside each other"),
            Stage::Decided { rule: Some(rule), action } => {
                write!(f, "rules: {} by rule {rule}", action_name(*action))
            }
            Stage::Decided { rule: None, action } => {
                write!(f, "rules: {} by default, no rule matched", action_name(*action))
            }
            Stage::Translated(ends) => {
                let (from, to) = (Endpoint(ends.source), Endpoint(ends.destination));
                write!(f, "translate: {from} -> {to}")
            }
            Stage::Created(id) => write!(f, "state: {id} created"),
            Stage::NotCreated(reason) => write!(f, "state: not created, {}", reason.name()),
            Stage::OptionsRefused => write!(f, "options: refused, the rule has no allow-opts"),
            Stage::TooLong { longest } => write!(f, "length: refused, max-pkt-size {longest}"),
            Stage::Routed { interface, next_hop } => {
                write!(f, "route: to {next_hop} by {interface}")
            }
            Stage::Replied(packet) => write!(f, "reply: {packet}"),
            Stage::Changed => write!(f, "scrub: changed the packet"),
        }
    }
}

fn action_name(action: Action) -> &'static str {
    match action {
        Action::Pass => "pass",
        Action::Block => "block",
        Action::Match => "match",
    }
}

/// An address with a port, as pf prints it.
struct Endpoint((IpAddr, u16));

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let (address, port) = self.0;
        match address {
            IpAddr::V4(v4) => write!(f, "{v4}:{port}"),
            IpAddr::V6(v6) => write!(f, "{v6}[{port}]"),
        }
    }
}
