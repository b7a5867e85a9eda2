//! Conversion of a vector to a scenario case that expects all recorded results.

use std::collections::BTreeMap;

use anyhow::{Context, bail};
use skipstep_model::{Decision, Draw, ForwardRoute, Forwarded, LinkHeader, Verdict};
use skipstep_ruleset::{Direction, Reason, RouteKind, RuleId, Timeout};
use skipstep_scenario::case::{Action, Arrival, Case, Check, RuleCheck, Rules, StatusCheck, Step};
use skipstep_scenario::expect::{
    Expectation, LogWords, Out, PeerWords, Reply, StateUse, StateWords,
};
use skipstep_scenario::look::unhex;
use skipstep_scenario::packet::Packet;
use skipstep_views::Peer;
use skipstep_wire::{checksum, protocol};

use super::vector;

/// Priority of a packet whose record has none.
const DEFAULT_PRIO: u8 = 3;

/// IPv4 addresses of the host that recorded the vectors.
const OWN: [&[u8]; 3] = [&[10, 0, 1, 1], &[10, 0, 2, 1], &[127, 0, 0, 1]];

/// Converts a vector to a case.
///
/// # Errors
/// Fails if the vector has an unknown word or invalid hexadecimal digits.
pub fn case(vector: &vector::Vector) -> anyhow::Result<Case> {
    let mut steps = Vec::new();
    if let Some(key) = vector.syncookie_keys.last() {
        let key = bytes(key)?.try_into().ok().context("a key of syncookies has 16 bytes")?;
        steps.push(Action::Random(Draw::SyncookieKey(key)));
    }
    let mut now = 0;
    let mut states = States { cookies: !vector.syncookie_keys.is_empty(), ..States::default() };
    let mut previous: Option<&vector::Packet> = None;
    for packet in &vector.packets {
        if packet.t > now {
            steps.push(Action::Wait { seconds: packet.t - now, expired: None });
            now = packet.t;
        }
        steps.extend(draws(packet, states.seen).into_iter().map(Action::Random));
        let expectation = expectation(packet, &mut states)?;
        steps.push(match previous.filter(|_| packet.cont) {
            // pf corrects a wrong IP checksum, but a system drops such a packet before pf
            Some(previous) if previous.pre.is_none() && goes_on_as(previous) == packet.packet => {
                Action::Forward(packet.ifname.clone(), expectation)
            }
            Some(previous) => Action::Packet(arrival(packet, Some(previous))?, expectation),
            None => Action::Packet(arrival(packet, None)?, expectation),
        });
        previous = Some(packet);
    }
    steps.extend(vector.counters.iter().map(|counters| {
        let check = RuleCheck {
            evaluations: Some(counters.evaluations),
            packets: Some(counters.packets),
            bytes: Some(counters.bytes),
            states: None,
            created: Some(counters.states_created),
        };
        let rule = RuleId::new(&counters.anchor, counters.nr);
        Action::Check(Check::Rule(Some(rule), check))
    }));
    steps.push(Action::Check(Check::Status(status(vector)?)));
    Ok(Case {
        title: Some(vector.id.clone()),
        rules: Rules { text: vector.rules.clone(), lines: Vec::new() },
        files: Vec::new(),
        steps: steps.into_iter().map(|action| Step { line: 0, action }).collect(),
    })
}

/// Returns the random numbers that pf drew, for each packet.
pub fn all_draws(vector: &vector::Vector) -> Vec<Vec<Draw>> {
    let mut seen = 0;
    let mut of_packet = |packet: &vector::Packet| {
        let draws = draws(packet, seen);
        seen = packet.result.states.iter().map(|state| state.id).fold(seen, u32::max);
        draws
    };
    vector.packets.iter().map(&mut of_packet).collect()
}

/// Returns the random numbers that pf drew for a packet, by purpose. The initial sequence number of
/// `modulate state` is not recorded, but follows from the state.
fn draws(packet: &vector::Packet, states_before: u32) -> Vec<Draw> {
    let result = &packet.result;
    let offsets: Vec<u32> = result
        .states
        .iter()
        .flat_map(|state| state.src_scrub.iter().chain(&state.dst_scrub))
        .map(|scrub| scrub.ts_mod)
        .collect();
    let numbers = result.rng.iter().filter_map(vector::Drawn::number);
    let listed = numbers.map(|number| match offsets.contains(&number) {
        true => Draw::Timestamp(number),
        false => Draw::Sequence(number),
    });
    let made = result.states.iter().filter(|state| state.id > states_before);
    let modulated = made.filter(|state| state.src.seqdiff != 0);
    let first = modulated.map(|state| state.src.seqlo.wrapping_add(state.src.seqdiff));
    first.map(Draw::Sequence).chain(listed).collect()
}

/// Knowledge about states while a vector is converted.
#[derive(Default)]
struct States {
    /// True if SYN cookies are in use, so SYNs are recreated from cookies.
    cookies: bool,
    /// Number of states so far.
    seen: u32,
    /// Paths of the anchors with the rules that created the states, in order of the states.
    anchors: Vec<String>,
    /// True if the previous packet ended states that pf removes before the next packet. The time of
    /// removal is not visible, so an evaluator may remove them at once.
    ended: bool,
}

/// Returns the bytes with which a packet leaves the inbound side.
fn goes_on_as(packet: &vector::Packet) -> &str {
    packet.result.out.as_deref().unwrap_or(&packet.packet)
}

fn arrival(packet: &vector::Packet, previous: Option<&vector::Packet>) -> anyhow::Result<Arrival> {
    Ok(Arrival {
        direction: direction(&packet.dir)?,
        interface: packet.ifname.clone(),
        packet: Packet::Hex(packet.bytes().context("a packet is not hexadecimal")?),
        link: LinkHeader::default(),
        received_on: previous.map(|previous| previous.ifname.clone()),
        tag: previous.and_then(|previous| previous.result.tag.clone()),
        prio: previous.and_then(|previous| previous.result.prio),
        queue: None,
        delay: None,
        owner: None,
    })
}

fn expectation(packet: &vector::Packet, states: &mut States) -> anyhow::Result<Expectation> {
    let result = &packet.result;
    let verdict = match result.verdict.as_str() {
        "pass" => Verdict::Pass,
        "drop" => Verdict::Drop,
        "consumed" => Verdict::Consumed,
        other => bail!("verdict {other}"),
    };
    let passed = verdict == Verdict::Pass;
    let known = states.seen;
    let ended_before = states.ended;
    states.ended = result.states.iter().any(has_ended);
    let decided = decided(result, states.cookies);
    let mut used = StateWords::default();
    let mut others = Vec::new();
    for state in &result.states {
        states.seen = states.seen.max(state.id);
        // the vector has the anchor of a state's rule only when the rule creates the state
        states.anchors.resize(states.seen as usize, result.anchor.clone());
        let words = state_words(state, &states.anchors[state.id as usize - 1])?;
        if result.state == Some(state.id) {
            used = words;
        } else if !has_ended(state) {
            others.push((state.id, words));
        }
    }
    // packets that a system drops before pf are compared without bytes, because no bytes are right
    let unseen = packet.pre.is_some();
    Ok(Expectation {
        verdict: Some(verdict),
        decision: Some(match decided.rule {
            None => Decision::None,
            Some(number) => rule(decided.anchor, number).map_or(Decision::Default, Decision::Rule),
        }),
        anchor_rule: Some(decided.anchor_rule.and_then(number)),
        reason: decided.reason.map(reason).transpose()?,
        counted: Some(counted(&result.counted)?),
        state: Some(match result.state {
            None => StateUse::None,
            Some(id) if id > known => StateUse::New(Some(id), used),
            Some(id) => StateUse::Existing(Some(id), used),
        }),
        others,
        out: match &result.out {
            _ if !passed || unseen => None,
            None => Some(Out::Unchanged),
            Some(out) => Some(Out::Bytes(without_padding(bytes(out)?))),
        },
        replies: if unseen { None } else { replies(packet)? },
        forwarded: if unseen { None } else { Some(forwarded(packet)?) },
        log: Some(result.log.iter().map(log_words).collect::<anyhow::Result<_>>()?),
        tag: passed.then(|| result.tag.clone()),
        prio: passed.then_some(result.prio.unwrap_or(DEFAULT_PRIO)),
        queue: None,
        delay: None,
        rtable: passed.then_some(result.rtable.unwrap_or(0)),
        diverted: None,
        expired: (!ended_before).then(|| sorted(&result.expired)),
        removed: (!states.ended).then(|| sorted(&result.removed)),
        states: (!states.ended).then_some(result.nstates),
        sources: (!states.ended).then_some(result.src_nodes),
        tracked: Vec::new(),
    })
}

/// Cuts off bytes behind an IPv6 packet in its frame. OpenBSD's stack removes them after pf, so the
/// recordings have them; evaluators need not.
fn without_padding(mut packet: Vec<u8>) -> Vec<u8> {
    packet.truncate(skipstep_wire::ip_length(&packet));
    packet
}

/// The decision about a packet.
struct Decided<'a> {
    rule: Option<i64>,
    anchor: &'a str,
    anchor_rule: Option<i64>,
    reason: Option<&'a str>,
}

/// Returns the decision about a packet. The recorder put the pass through pf that ended first in
/// front. If a packet returns a cookie, that is the pass of the recreated SYN; the packet's own
/// pass is the last nested one.
fn decided(result: &vector::PacketResult, cookies: bool) -> Decided<'_> {
    match result.nested.last().filter(|_| cookies) {
        Some(own) => Decided {
            rule: own.rule,
            anchor: &own.anchor,
            anchor_rule: own.anchor_rule,
            reason: own.reason.as_deref(),
        },
        None => Decided {
            rule: result.rule,
            anchor: &result.anchor,
            anchor_rule: result.anchor_rule,
            reason: result.reason.as_deref(),
        },
    }
}

/// Converts the answers. Returns `None` if an answer has a link-local address with the number of an
/// interface (fe80:2::…), as OpenBSD's kernel uses it internally. Addresses of an ICMP error to
/// this host itself are not compared: Linux drops its own address as a source, so skipstep answers
/// from the destination of the packet.
fn replies(packet: &vector::Packet) -> anyhow::Result<Option<Vec<Reply>>> {
    let mut replies = Vec::new();
    for emitted in packet.result.emitted.iter().filter(|emitted| emitted.kind == "send") {
        let mut answer = bytes(&emitted.packet)?;
        let scoped = |address: Option<&[u8]>| matches!(address, Some([0xfe, 0x80, a, b, ..]) if (*a, *b) != (0, 0));
        if answer[0] >> 4 == 6 && (scoped(answer.get(8..24)) || scoped(answer.get(24..40))) {
            return Ok(None);
        }
        let to_itself =
            packet.dir == "out" && answer[0] >> 4 == 4 && OWN.contains(&&answer[16..20]);
        if packet.result.verdict == "consumed" {
            correct_quote(&mut answer);
        }
        let reply = Reply::Bytes(answer);
        replies.push(if to_itself { reply.without_addresses() } else { reply });
    }
    Ok(Some(replies))
}

/// Corrects the checksum in the quote of an ICMP error. pf decrements the TTL of a packet that it
/// routes. The IP output corrects the header's checksum later, so an ICMP error in between quotes
/// the previous checksum. skipstep updates both at once.
fn correct_quote(answer: &mut [u8]) {
    const QUOTE: usize = 28;
    let is_error = answer[0] >> 4 == 4 && answer[9] == protocol::ICMP;
    if is_error && let Some(quoted) = answer.get_mut(QUOTE..) {
        checksum::fix_ipv4_header(quoted);
        checksum::fix(answer);
    }
}

/// Converts packets that are sent in place of the packet or besides.
fn forwarded(packet: &vector::Packet) -> anyhow::Result<Vec<Forwarded>> {
    let mut forwarded = Vec::new();
    for emitted in &packet.result.emitted {
        let way = match (emitted.kind.as_str(), &emitted.ifname, emitted.nexthop) {
            ("send", ..) => continue,
            ("forward", ..) => ForwardRoute::Forward,
            ("route", Some(interface), Some(next_hop)) => {
                ForwardRoute::Route { interface: interface.clone(), next_hop }
            }
            (kind, ..) => bail!("emitted {kind}"),
        };
        let mut bytes = bytes(&emitted.packet)?;
        with_drawn_id(&mut bytes);
        forwarded.push(Forwarded { route: way, bytes });
    }
    Ok(forwarded)
}

/// Replaces the identification of fragments. The recorder used the same number for all fragments
/// that pf creates; the evaluators draw it, and every draw is 0.
fn with_drawn_id(packet: &mut [u8]) {
    const RECORDED: [u8; 4] = [0x11, 0x22, 0x33, 0x44];
    let fragment_header = packet.windows(4).take(200).position(|bytes| bytes == RECORDED);
    if let Some(at) = fragment_header.filter(|_| packet[0] >> 4 == 6) {
        packet[at..at + 4].fill(0);
    }
}

/// Returns each counted reason once. The status shows a reason that a packet counts twice.
fn counted(counted: &BTreeMap<String, usize>) -> anyhow::Result<Vec<Reason>> {
    let mut reasons =
        counted.keys().map(|name| reason(name)).collect::<anyhow::Result<Vec<_>>>()?;
    reasons.sort_unstable();
    Ok(reasons)
}

fn log_words(record: &vector::LogRecord) -> anyhow::Result<LogWords> {
    Ok(LogWords {
        action: Some(match record.action.as_str() {
            "pass" => skipstep_ruleset::Action::Pass,
            "block" => skipstep_ruleset::Action::Block,
            "match" => skipstep_ruleset::Action::Match,
            other => bail!("log action {other}"),
        }),
        rule: Some(number(record.rule)),
        anchor_rule: Some(number(record.anchor_rule)),
        anchor: None,
        reason: Some(reason(&record.reason)?),
        to: None,
        uid: None,
    })
}

fn state_words(state: &vector::State, anchor: &str) -> anyhow::Result<StateWords> {
    let pair =
        |key: &(std::net::IpAddr, u16, std::net::IpAddr, u16)| [(key.0, key.1), (key.2, key.3)];
    Ok(StateWords {
        protocol: Some(state.proto),
        direction: Some(direction(&state.dir)?),
        interface: Some((state.interface != "all").then(|| state.interface.clone())),
        rdomain: Some(0),
        rule: Some(rule(anchor, state.rule)),
        anchor_rule: Some(number(state.anchor_rule)),
        wire: Some(pair(&state.wire)),
        stack: Some(pair(&state.stack)),
        src: Some(peer(&state.src)),
        dst: Some(peer(&state.dst)),
        timeout: if has_ended(state) { None } else { Some(timeout(&state.timeout)?) },
        expires: u32::try_from(state.expires_at).ok(),
        packets: Some(state.packets),
        bytes: Some(state.bytes),
        flags: Some(state.flags),
        min_ttl: Some(state.min_ttl),
        max_mss: Some(state.max_mss),
        tag: Some(state.tag.clone()),
        route: Some(route(state.rt)?),
        next_hop: None,
    })
}

/// Converts OpenBSD's number of `route-to` and similar options; 0 is none.
fn route(number: u8) -> anyhow::Result<Option<RouteKind>> {
    Ok(match number {
        0 => None,
        1 => Some(RouteKind::RouteTo),
        2 => Some(RouteKind::DupTo),
        3 => Some(RouteKind::ReplyTo),
        other => bail!("rt {other}"),
    })
}

/// Returns true if a state has ended and waits for its removal.
fn has_ended(state: &vector::State) -> bool {
    state.timeout == "purge"
}

fn timeout(name: &str) -> anyhow::Result<Timeout> {
    Timeout::by_name(name).with_context(|| format!("timeout {name}"))
}

fn peer(peer: &vector::Peer) -> PeerWords {
    PeerWords::Full(Peer {
        state: peer.state,
        seqlo: peer.seqlo,
        seqhi: peer.seqhi,
        seqdiff: peer.seqdiff,
        max_win: peer.max_win,
        wscale: peer.wscale,
    })
}

fn status(vector: &vector::Vector) -> anyhow::Result<StatusCheck> {
    let mut reasons: Vec<(Reason, u64)> =
        Reason::ALL.into_iter().map(|reason| (reason, 0)).collect();
    for (name, count) in &vector.status.reasons {
        reasons[reason(name)? as usize].1 = *count;
    }
    Ok(StatusCheck {
        states: None,
        searches: Some(vector.status.searches),
        inserts: Some(vector.status.inserts),
        removals: Some(vector.status.removals),
        reasons,
    })
}

fn rule(anchor: &str, number: i64) -> Option<RuleId> {
    let number = u32::try_from(number).ok()?;
    Some(RuleId::new(anchor, number))
}

/// Converts the number of a rule; -1 is none.
fn number(number: i64) -> Option<u32> {
    u32::try_from(number).ok()
}

fn reason(name: &str) -> anyhow::Result<Reason> {
    Reason::by_name(name).with_context(|| format!("reason {name}"))
}

fn direction(name: &str) -> anyhow::Result<Direction> {
    match name {
        "in" => Ok(Direction::In),
        "out" => Ok(Direction::Out),
        other => bail!("direction {other}"),
    }
}

fn bytes(hex: &str) -> anyhow::Result<Vec<u8>> {
    unhex(hex).context("a packet is not hexadecimal")
}

fn sorted(numbers: &[u32]) -> Vec<u32> {
    let mut numbers = numbers.to_vec();
    numbers.sort_unstable();
    numbers
}
