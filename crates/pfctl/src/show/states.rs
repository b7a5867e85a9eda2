//! `-s states`: prints the states.

use std::collections::HashMap;
use std::io::{self, Write};
use std::net::IpAddr;

use serde::Serialize;
use serde::ser::{SerializeSeq, Serializer as _};
use serde_json::{Serializer, Value, json};
use skipstep_pfconf::Names;
use skipstep_pfconf::identity::Identities;
use skipstep_ruleset::{Direction, Family, RuleId};
use skipstep_scenario::{OTHER_STATES, TCP_STATES};
use skipstep_views::{NextHop, Peer, StateView};

use super::Detail;

const TCP: u8 = 6;
const ICMP: u8 = 1;
const ICMP6: u8 = 58;

/// Peer state during the handshake of `synproxy` with the source (`PF_TCPS_PROXY_SRC` in pfvar.h).
const PROXY_SRC: u8 = 11;
/// Peer state during its handshake with the destination (`PF_TCPS_PROXY_DST`).
const PROXY_DST: u8 = 12;

const SLOPPY: u16 = 0x0002;
const PFLOW: u16 = 0x0004;

/// The states, with everything that is printed about them.
pub struct StatesView<'a> {
    /// The states in order of creation.
    pub states: &'a [StateView],
    /// Current time in seconds, on the clock of the states.
    pub now: u32,
    /// Host id, printed as creator id: `set hostid`, or a random number.
    pub hostid: u32,
    /// Returns the text for an address: the address, or with `-r` the host's name.
    pub host: &'a dyn Fn(IpAddr) -> String,
    /// The stable identities of the rules in force (JSON only).
    pub identities: &'a Identities,
    /// The stable identities of rules that are in no rule set any more, by the ids of their states
    /// (JSON only).
    pub orphaned: &'a HashMap<u64, String>,
}

impl StatesView<'_> {
    /// Returns the stable identity of the rule that created a state, if the rule is known.
    fn rule_id(&self, state: &StateView) -> Option<&str> {
        match &state.rule {
            Some(rule) => self.identities.get(rule),
            None => self.orphaned.get(&state.id).map(String::as_str),
        }
    }

    /// Returns the states on `interface`, or all states for `None`. Floating states are on `all`.
    fn on(&self, interface: Option<&str>) -> impl Iterator<Item = &StateView> {
        self.states.iter().filter(move |state| interface.is_none_or(|name| name == name_of(state)))
    }
}

/// Writes the states on `interface`, or all states, one by one, because there may be millions.
///
/// # Errors
/// Fails if `out` cannot be written.
pub fn write(
    view: &StatesView,
    interface: Option<&str>,
    detail: Detail,
    out: &mut dyn Write,
) -> io::Result<()> {
    for state in view.on(interface) {
        out.write_all(summary(state, view.host).as_bytes())?;
        if detail.verbose() {
            out.write_all(windows(state).as_bytes())?;
            out.write_all(history(state, view.now).as_bytes())?;
        }
        if detail.very_verbose() {
            writeln!(out, "   id: {:016x} creatorid: {:08x}", state.id, view.hostid)?;
        }
    }
    Ok(())
}

/// Returns the output of [`write()`] as one text.
pub fn text(view: &StatesView, interface: Option<&str>, detail: Detail) -> String {
    let mut text = Vec::new();
    write(view, interface, detail, &mut text).expect("memory takes everything");
    String::from_utf8_lossy(&text).into_owned()
}

/// Returns the interface of a state; a floating state is on `all`.
pub fn name_of(state: &StateView) -> &str {
    state.interface.as_deref().unwrap_or("all")
}

/// Prints a next hop: `10.0.0.1`, `10.0.0.1@em0`, or `em0` if each packet's destination is the next
/// hop.
fn next_hop_text(hop: &NextHop, host: &dyn Fn(IpAddr) -> String) -> String {
    match &hop.interface {
        None => host(hop.address),
        Some(interface) if hop.address.is_unspecified() => interface.clone(),
        Some(interface) => format!("{}@{interface}", host(hop.address)),
    }
}

/// One end of a state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct End {
    /// Address and port on the side that [`summary`] prints first.
    pub outer: (IpAddr, u16),
    /// Address and port on the other side; unlike `outer` only if the state is translated.
    pub inner: (IpAddr, u16),
}

/// The ends of a state in printed order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ends {
    /// End in front of the arrow.
    pub left: End,
    /// End behind the arrow.
    pub right: End,
    /// True for `->`: the left end made the state.
    pub is_outbound: bool,
}

/// Returns the ends of a state. A state that crosses address families is always outbound.
pub fn ends(state: &StateView) -> Ends {
    let is_outbound = state.direction == Direction::Out;
    let (outer, mut inner) =
        if is_outbound { (state.wire, state.stack) } else { (state.stack, state.wire) };
    if matches!(state.protocol, ICMP | ICMP6) {
        // the type of a query is never translated, but only one key has it at the right index
        let kind = if is_outbound { 0 } else { 1 };
        inner[kind].1 = outer[kind].1;
    }
    let crosses = outer[0].0.is_ipv4() != inner[0].0.is_ipv4();
    let inner = if crosses { [inner[1], inner[0]] } else { inner };
    Ends {
        left: End { outer: outer[1], inner: inner[1] },
        right: End { outer: outer[0], inner: inner[0] },
        is_outbound: is_outbound || crosses,
    }
}

/// Prints `all tcp 192.0.2.7:80 <- 10.0.1.5:1025       ESTABLISHED:ESTABLISHED`. The next hop that
/// `route-to`, `reply-to` or `dup-to` gave the state follows the packet's destination, in braces.
pub fn summary(state: &StateView, host: &dyn Fn(IpAddr) -> String) -> String {
    let Ends { left: left_end, right: right_end, is_outbound } = ends(state);
    let arrow = if is_outbound { "->" } else { "<-" };
    let (left, right) = peers(state);
    let hop = state.route.as_ref().map(|hop| format!(" {{{}}}", next_hop_text(hop, host)));
    let hop = hop.unwrap_or_default();
    let (hop_in, hop_out) = match state.direction {
        Direction::In => (hop.as_str(), ""),
        Direction::Out => ("", hop.as_str()),
    };
    format!(
        "{} {} {}{hop_in} {arrow} {}{hop_out}       {}\n",
        name_of(state),
        protocol_name(state.protocol),
        endpoint(left_end.outer, left_end.inner, state.rdomain, host),
        endpoint(right_end.outer, right_end.inner, state.rdomain, host),
        peer_states(state.protocol, left.state, right.state),
    )
}

/// Prints the states of both peers, or a single word during a handshake of `synproxy`.
pub fn peer_states(protocol: u8, left: u8, right: u8) -> String {
    let is = |state| protocol == TCP && (left == state || right == state);
    if is(PROXY_SRC) {
        return "PROXY:SRC".to_owned();
    }
    if is(PROXY_DST) {
        return "PROXY:DST".to_owned();
    }
    format!("{}:{}", peer_state(protocol, left, right), peer_state(protocol, right, left))
}

/// Returns the peers in printed order: first the peer on the host's side, which is the creator of
/// an outbound state. Then follows the peer on the network's side.
pub fn peers(state: &StateView) -> (&Peer, &Peer) {
    match state.direction {
        Direction::Out => (&state.src, &state.dst),
        Direction::In => (&state.dst, &state.src),
    }
}

/// Returns the name of a protocol, or its number if it has no name.
pub fn protocol_name(protocol: u8) -> String {
    match Names::builtin().protocol_name(protocol) {
        Some(name) => name.to_string(),
        None => protocol.to_string(),
    }
}

/// Prints an endpoint, with its untranslated address and port in parentheses. The routing domain
/// stands in front of each address, if it is not 0.
fn endpoint(
    outer: (IpAddr, u16),
    inner: (IpAddr, u16),
    rdomain: u32,
    host: &dyn Fn(IpAddr) -> String,
) -> String {
    let domain = if rdomain == 0 { String::new() } else { format!("({rdomain}) ") };
    let side = |(address, port)| {
        format!("{domain}{}", with_port(&host(address), port, Family::from_address(address)))
    };
    if outer == inner { side(outer) } else { format!("{} ({})", side(outer), side(inner)) }
}

/// Prints an address with its port: `10.0.0.1:22`, `::1[22]`; port 0 is left out.
pub fn with_port(host: &str, port: u16, family: Family) -> String {
    match (port, family) {
        (0, _) => host.to_owned(),
        (port, Family::Inet) => format!("{host}:{port}"),
        (port, Family::Inet6) => format!("{host}[{port}]"),
    }
}

/// Returns the name of a peer's state. ICMP has none; if one peer's state has no name, both are
/// numbers.
fn peer_state(protocol: u8, state: u8, other: u8) -> String {
    let names: &[&str] = match protocol {
        TCP => &TCP_STATES,
        ICMP | ICMP6 => &[],
        _ => &OTHER_STATES,
    };
    match (names.get(usize::from(state)), names.get(usize::from(other))) {
        (Some(name), Some(_)) => name.to_string(),
        _ => state.to_string(),
    }
}

/// Prints the TCP windows as `[lowest acceptable sequence number + window]`, with modulation and
/// scaling.
fn windows(state: &StateView) -> String {
    if state.protocol != TCP {
        return String::new();
    }
    let (left, right) = peers(state);
    let scaled = left.wscale != 0 && right.wscale != 0;
    format!("   {}  {}\n", window(left, scaled), window(right, scaled))
}

fn window(peer: &Peer, scaled: bool) -> String {
    let mut text = format!("[{} + {}]", peer.seqlo, peer.seqhi.wrapping_sub(peer.seqlo));
    if peer.seqdiff != 0 {
        text += &format!("(+{})", peer.seqdiff);
    }
    if scaled {
        text += &format!(" wscale {}", peer.shift());
    }
    text
}

fn history(state: &StateView, now: u32) -> String {
    let anchor = state.anchor_rule.map(|number| format!(", anchor {number}")).unwrap_or_default();
    let rule = state.rule.as_ref().map(|rule| format!(", rule {}", rule.number));
    let rule = rule.unwrap_or_default();
    let words = [
        (state.flags & SLOPPY != 0, ", sloppy"),
        (state.flags & PFLOW != 0, ", pflow"),
        (state.tracked, ", source-track"),
    ];
    let words: String = words.into_iter().filter(|(is, _)| *is).map(|(_, word)| word).collect();
    format!(
        "   age {}, expires in {}, {}:{} pkts, {}:{} bytes{anchor}{rule}{words}\n",
        clock(now.saturating_sub(state.created_at)),
        clock(state.expires_at.saturating_sub(now)),
        state.packets[0],
        state.packets[1],
        state.bytes[0],
        state.bytes[1],
    )
}

/// Formats seconds as hours, minutes and seconds.
pub fn clock(seconds: u32) -> String {
    format!("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60)
}

/// Writes a list with an object for each state on `interface`, or for all states.
///
/// # Errors
/// Fails if `out` cannot be written.
pub fn write_json(
    view: &StatesView,
    interface: Option<&str>,
    out: &mut dyn Write,
) -> io::Result<()> {
    // the serializer writes single tokens; this buffer saves a virtual call for each
    let mut out = io::BufWriter::new(out);
    let mut serializer = Serializer::pretty(&mut out);
    let creatorid = format!("{:08x}", view.hostid);
    let mut list = serializer.serialize_seq(None)?;
    for state in view.on(interface) {
        list.serialize_element(&StateObject::from_state(state, view, &creatorid))?;
    }
    list.end()?;
    writeln!(out)?;
    out.flush()
}

/// Returns the list of [`write_json`] as one value.
pub fn json(view: &StatesView, interface: Option<&str>) -> Value {
    let creatorid = format!("{:08x}", view.hostid);
    view.on(interface)
        .map(|state| json!(StateObject::from_state(state, view, &creatorid)))
        .collect()
}

/// A state with the fields of its JSON object. Serializing it directly is much faster than making a
/// [`Value`] first. The fields are in alphabetical order, as in a `Value`.
#[derive(Serialize)]
struct StateObject<'a> {
    age: u32,
    bytes: [u64; 2],
    creatorid: &'a str,
    destination: PeerObject,
    direction: &'static str,
    expires_in: u32,
    id: String,
    interface: &'a str,
    packets: [u64; 2],
    protocol: String,
    rdomain: u32,
    route: Option<HopObject<'a>>,
    rule: &'a Option<RuleId>,
    rule_id: Option<&'a str>,
    sloppy: bool,
    source: PeerObject,
    source_track: bool,
    stack: [EndObject; 2],
    tag: &'a Option<String>,
    timeout: &'static str,
    wire: [EndObject; 2],
}

#[derive(Serialize)]
struct PeerObject {
    seqhi: u32,
    seqlo: u32,
    state: String,
    window: u16,
    wscale: u32,
}

#[derive(Serialize)]
struct EndObject {
    address: IpAddr,
    port: u16,
}

#[derive(Serialize)]
struct HopObject<'a> {
    kind: &'static str,
    next_hop: IpAddr,
    interface: Option<&'a str>,
}

impl<'a> StateObject<'a> {
    fn from_state(state: &'a StateView, view: &'a StatesView, creatorid: &'a str) -> Self {
        let ends = |key: [(IpAddr, u16); 2]| key.map(|(address, port)| EndObject { address, port });
        let peer = |peer: &Peer, other: &Peer| PeerObject {
            seqhi: peer.seqhi,
            seqlo: peer.seqlo,
            state: peer_state(state.protocol, peer.state, other.state),
            window: peer.max_win,
            wscale: peer.shift(),
        };
        StateObject {
            age: view.now.saturating_sub(state.created_at),
            bytes: state.bytes,
            creatorid,
            destination: peer(&state.dst, &state.src),
            direction: if state.direction == Direction::In { "in" } else { "out" },
            expires_in: state.expires_at.saturating_sub(view.now),
            id: format!("{:016x}", state.id),
            interface: name_of(state),
            packets: state.packets,
            protocol: protocol_name(state.protocol),
            rdomain: state.rdomain,
            route: state.route.as_ref().map(|hop| HopObject {
                kind: hop.kind.name(),
                next_hop: hop.address,
                interface: hop.interface.as_deref(),
            }),
            rule: &state.rule,
            rule_id: view.rule_id(state),
            sloppy: state.flags & SLOPPY != 0,
            source: peer(&state.src, &state.dst),
            source_track: state.tracked,
            stack: ends(state.stack),
            tag: &state.tag,
            timeout: state.timeout.name(),
            wire: ends(state.wire),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn if_one_peer_state_has_no_name_both_are_numbers() {
        const UDP: u8 = 17;
        assert_eq!(peer_state(UDP, 1, 2), "SINGLE");
        assert_eq!(peer_state(UDP, 1, 3), "1");
        assert_eq!(peer_state(ICMP, 0, 0), "0");
        assert_eq!(peer_state(TCP, 10, 9), "TIME_WAIT");
    }

    #[test]
    fn a_handshake_of_the_proxy_has_a_name() {
        assert_eq!(peer_states(TCP, 0, PROXY_SRC), "PROXY:SRC");
        assert_eq!(peer_states(TCP, PROXY_DST, 0), "PROXY:DST");
        assert_eq!(peer_states(TCP, 4, 4), "ESTABLISHED:ESTABLISHED");
    }

    #[test]
    fn hours_grow_beyond_two_digits() {
        assert_eq!(clock(86_399), "23:59:59");
        assert_eq!(clock(432_000), "120:00:00");
    }

    #[test]
    fn ports_of_ipv6_stand_in_brackets() {
        assert_eq!(with_port("::1", 22, Family::Inet6), "::1[22]");
        assert_eq!(with_port("10.0.0.1", 22, Family::Inet), "10.0.0.1:22");
        assert_eq!(with_port("10.0.0.1", 0, Family::Inet), "10.0.0.1");
    }

    #[test]
    fn hosts_may_have_names() {
        let side = ("10.0.0.1".parse().unwrap(), 22);
        let other = ("10.0.0.2".parse().unwrap(), 22);
        let name = |address: IpAddr| format!("host-{address}");
        assert_eq!(endpoint(side, other, 0, &name), "host-10.0.0.1:22 (host-10.0.0.2:22)");
        assert_eq!(endpoint(side, side, 7, &name), "(7) host-10.0.0.1:22");
    }
}
