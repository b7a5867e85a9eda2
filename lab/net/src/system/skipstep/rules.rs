//! Rule sets of skipstep.

use super::Skipstep;
use crate::family::Family;
use crate::rules::Rules;
use crate::topology::End;

/// The states that rules create.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum States {
    None,
    /// States from any packet, because a TCP load begins in the middle of connections.
    Any,
    /// States from TCP handshakes that syncookies complete first.
    Syncookies,
}

impl States {
    /// Returns the options, and the words of the `pass` rule.
    pub(super) fn words(self) -> [&'static str; 2] {
        match self {
            States::None => ["", "no state"],
            States::Any => ["", "flags any keep state (sloppy)"],
            States::Syncookies => ["set syncookies always\n", "flags S/SA keep state"],
        }
    }
}

/// Writes the rule set: a packet passes unless a later rule blocks its port.
pub(super) fn written(way: &Skipstep, rules: &Rules) -> String {
    let (server, protocol) = (rules.server(), rules.transport);
    let inet = if rules.family == Family::V4 { "inet" } else { "inet6" };
    let [options, state] = way.states.words();
    let xdp = if way.xdp { "set xdp on any\n" } else { "" };
    // other filters pass packets with IP options, too
    let pass = format!("pass {state} allow-opts\n");
    let blocks = rules.lines(|port| {
        format!("block drop {inet} proto {protocol} from any to {server} port {port}")
    });
    format!("set evaluator {}\n{xdp}{options}{pass}{blocks}", way.evaluator)
}

/// Writes a rule that translates clients to this host's address. All clients share one address, so
/// all ports are used.
pub(super) fn translation(rules: &Rules) -> String {
    let own = End::Server.gateway(rules.family);
    format!("match out on wan0 proto tcp nat-to {own} port 1024:65535\n")
}
