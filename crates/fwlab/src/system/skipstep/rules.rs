//! What rules of skipstep say.

use super::Skipstep;
use crate::family::Family;
use crate::rules::Rules;
use crate::topology::End;

/// Whether rules make states, and of what.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum States {
    None,
    /// Of any packet: a load of TCP begins in the middle of connections.
    Any,
    /// Of handshakes that are answered in the server's place first.
    Syncookies,
}

impl States {
    /// What options and a rule say.
    pub(super) fn words(self) -> [&'static str; 2] {
        match self {
            States::None => ["", "no state"],
            States::Any => ["", "flags any keep state (sloppy)"],
            States::Syncookies => ["set syncookies always\n", "flags S/SA keep state"],
        }
    }
}

/// All of them: a packet passes unless a later rule blocks its port.
pub(super) fn written(way: &Skipstep, rules: &Rules) -> String {
    let (server, protocol) = (rules.server(), rules.transport);
    let inet = if rules.family == Family::V4 { "inet" } else { "inet6" };
    let [options, state] = way.states.words();
    let xdp = if way.xdp { "set xdp on any\n" } else { "" };
    // other filters let IP options pass
    let pass = format!("pass {state} allow-opts\n");
    let blocks = rules.lines(|port| {
        format!("block drop {inet} proto {protocol} from any to {server} port {port}")
    });
    format!("set evaluator {}\n{xdp}{options}{pass}{blocks}", way.evaluator)
}

/// What has clients seem to be this host; all ports are used, as all of them share one address.
pub(super) fn translation(rules: &Rules) -> String {
    let own = End::Server.gateway(rules.family);
    format!("match out on wan0 proto tcp nat-to {own} port 1024:65535\n")
}
