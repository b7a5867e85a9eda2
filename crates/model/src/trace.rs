//! What happened to a packet, stage by stage, for `pfctl explain`.

use std::fmt;
use std::net::IpAddr;

use skipstep_ruleset::{Action, Reason, RuleId};

use crate::state::{Key, StateId};
use crate::translate::Ends;

/// The stages of one packet, in order.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Trace {
    /// What was done.
    pub stages: Vec<Stage>,
}

/// One thing that was done or found out.
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
    /// What PF asks of every packet was not met.
    Refused(Reason),
    /// A fragment waits for the others of its datagram.
    Held,
    /// It was the last one missing: the datagram of so many bytes goes on in its place.
    Reassembled(usize),
    /// PF changed what must not be set in any packet (reserved bits, FIN beside SYN).
    Repaired,
    /// The state table was asked.
    Searched {
        /// Key of the packet, or of the packet an ICMP error quotes.
        key: Key,
        /// State found.
        found: Option<StateId>,
    },
    /// The packet fits its state.
    /// A SYN was answered with a cookie.
    CookieSent,
    /// A cookie came back: the SYN is made again.
    CookieValid,
    /// A state lets the packet pass.
    Accepted(StateId),
    /// The packet does not fit its state.
    Rejected {
        /// The state.
        state: StateId,
        /// Why not.
        why: &'static str,
    },
    /// A SYN for a connection that has ended: its state is given up.
    Reused(StateId),
    /// A rule was looked at.
    Rule {
        /// Its name.
        rule: RuleId,
        /// Its line in pf.conf, 0 if nobody wrote it.
        line: u32,
        /// Its action; `None` for an anchor rule, which calls others.
        action: Option<Action>,
        /// The first criterion that failed; `None` if the rule matched.
        failed: Option<Criterion>,
    },
    /// An anchor rule would have led deeper than PF goes.
    TooDeep,
    /// More match rules match the packet than a state can count for.
    TooManyMatches,
    /// No rule was left to look at.
    Decided {
        /// The last rule that matched or the first with `quick`; `None` is the default rule.
        rule: Option<RuleId>,
        /// Its action.
        action: Action,
    },
    /// A rule gave the packet other ends.
    Translated(Ends),
    /// A state was made.
    Created(StateId),
    /// A state should have been made and could not.
    NotCreated(Reason),
    /// IP options without `allow-opts`.
    OptionsRefused,
    /// Longer than `max-pkt-size`.
    TooLong {
        /// What it says.
        longest: u16,
    },
    /// It goes another way than the routing table says.
    Routed {
        /// By this interface …
        interface: String,
        /// … to this neighbour.
        next_hop: IpAddr,
    },
    /// The firewall answered.
    Replied(String),
    /// The packet was changed on its way out.
    Changed,
}

/// What a rule asks of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
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
    /// A rule that makes states does not match the answer to an ICMP query.
    NoReply,
    /// `fragment`, or a criterion that fragments cannot meet.
    Fragment,
    Tos,
    Probability,
    Tagged,
    ReceivedOn,
    Prio,
    /// A limiter that has no more to give; `drops` says that the packet is dropped for it.
    StateLimiter {
        drops: bool,
    },
    SourceLimiter {
        drops: bool,
    },
    MaxPktRate,
}

impl Criterion {
    /// The word in pf.conf.
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

/// Collects a trace if somebody wants one.
#[derive(Debug, Default)]
pub(crate) struct Tracer(Option<Trace>);

impl Tracer {
    pub fn on() -> Self {
        Tracer(Some(Trace::default()))
    }

    pub fn tell(&mut self, stage: impl FnOnce() -> Stage) {
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
            Stage::Labelled => write!(f, "link header: an MPLS label, not looked behind"),
            Stage::ForOtherStation => write!(f, "link header: for another station"),
            Stage::Malformed(reason) => write!(f, "headers: refused, {}", reason.name()),
            Stage::Refused(reason) => write!(f, "normalize: refused, {}", reason.name()),
            Stage::Held => write!(f, "fragment: held until the others come"),
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
            Stage::Rejected { state, why } => write!(f, "state: {state} rejects the packet: {why}"),
            Stage::Reused(id) => write!(f, "state: {id} has ended and makes way"),
            Stage::Rule { rule, line, action, failed } => {
                write!(f, "rule {rule} (line {line}, {}): ", action.map_or("anchor", action_name))?;
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
            Stage::Created(id) => write!(f, "state: {id} made"),
            Stage::NotCreated(reason) => write!(f, "state: not made, {}", reason.name()),
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

/// An address with a port.
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
