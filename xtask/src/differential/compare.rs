//! Comparison of the data plane with the model's results of a case, and shrinking of a
//! disagreement.

use std::net::IpAddr;

use skipstep_ruleset::interface::Host;
use skipstep_ruleset::{Direction, Ruleset};
use skipstep_scenario::case::{Action, Case, Step};
use skipstep_scenario::expect::{Expectation, Out, Reply};
use skipstep_scenario::packet::Packet;
use skipstep_scenario::run::{self, Finding, Stop};
use skipstep_scenario::{Engine, Model};

use super::generate::{Generated, load, tags};
use super::{Disagreement, shrink};
use crate::catch::catching;

/// Plays a case on each engine. Returns the first disagreement with the model, with a shrunk case;
/// `None` if all engines agree.
pub fn compare(
    number: u64,
    mut generated: Generated,
    host: &Host,
    engines: &mut [Box<dyn Engine>],
) -> Option<Disagreement> {
    loosen(&mut generated.case, host);
    let Generated { case, ruleset, panic, .. } = generated;
    let built = built(&case);
    for engine in engines {
        let play = || run::play(&built, &ruleset, host, engine.as_mut(), Stop::AtFirst);
        let seen = match catching(play) {
            Ok(Ok(findings)) if findings.is_empty() && panic.is_none() => continue,
            Ok(Ok(findings)) => findings.into_iter().flat_map(|found| found.differences).collect(),
            Ok(Err(reason)) => vec![reason],
            Err(panic) => vec![panic],
        };
        let name = engine.name().to_owned();
        let once = |differences| Disagreement {
            number,
            engine: name.clone(),
            case: case.clone(),
            differences,
        };
        let Some((cut, _)) = disagreement(&case, host, engine.as_mut()) else {
            let only_once = "this was seen once, and not when the case was played again".to_owned();
            return Some(once([vec![only_once], seen].concat()));
        };
        let shrunk =
            shrink::smallest(&cut, |case| disagreement(case, host, engine.as_mut()).is_some());
        return Some(match disagreement(&shrunk, host, engine.as_mut()) {
            Some((case, differences)) => Disagreement { number, engine: name, case, differences },
            None => once(seen),
        });
    }
    None
}

/// Replaces packets in words by their bytes, so that engines need not build them.
fn built(case: &Case) -> Case {
    let mut case = case.clone();
    for step in &mut case.steps {
        if let Action::Packet(arrival, _) = &mut step.action {
            arrival.packet = Packet::Hex(arrival.packet.bytes());
        }
    }
    case
}

/// Compares an engine with the model. Returns the case with the model's results as expectations, up
/// to the first difference, and that difference.
fn disagreement(case: &Case, host: &Host, engine: &mut dyn Engine) -> Option<(Case, Vec<String>)> {
    let (ruleset, later) = load(case, host)?;
    if carries_unknown_name(case, &ruleset, &later) {
        return None;
    }
    let mut recorded = match catching(|| run::record(case, &ruleset, host, &mut Model::new())) {
        Ok(Ok(recorded)) => recorded,
        Ok(Err(_)) => return None,
        Err(panic) => return Some((case.clone(), vec![format!("the model: {panic}")])),
    };
    loosen(&mut recorded, host);
    match catching(|| run::play(&recorded, &ruleset, host, engine, Stop::AtFirst)) {
        Ok(Ok(findings)) => {
            let Finding { step, differences, .. } = findings.into_iter().next()?;
            let mut case = recorded;
            case.steps.truncate(step + 1);
            Some((case, differences))
        }
        Ok(Err(error)) | Err(error) => Some((recorded, vec![error])),
    }
}

/// Returns true if a packet has a tag or a queue that no rule names, which happens when rules were
/// removed. The data plane has no number for the name, so the comparison means nothing.
fn carries_unknown_name(case: &Case, ruleset: &Ruleset, later: &[Ruleset]) -> bool {
    let (mut known, mut queues) = (tags(ruleset), &ruleset.queues);
    let mut later = later.iter();
    case.steps.iter().any(|step| match &step.action {
        Action::Packet(arrival, _) => {
            let is_queue = |name: &String| queues.iter().any(|queue| queue.name == *name);
            arrival.tag.as_ref().is_some_and(|tag| !known.contains(tag))
                || arrival.queue.as_ref().is_some_and(|queue| !is_queue(queue))
        }
        Action::Load(path, _) => {
            if let Some(ruleset) = later.next() {
                known.extend(tags(ruleset));
                if path.is_empty() {
                    queues = &ruleset.queues;
                }
            }
            false
        }
        _ => false,
    })
}

/// Reduces expected ICMP errors to type and code where they may differ from pf's:
///
/// - The answer goes to this host. Linux refuses its own address as a source, so skipstep answers
///   from the packet's destination.
/// - The packet has a broadcast or loopback address. The kernel does not say which own address is
///   right.
/// - The packet is a fragment. The checksum in pf's quote of the datagram is not corrected yet.
/// - The frame continues behind an IPv6 packet. The kernel drops these bytes, and pf quotes them.
fn loosen(case: &mut Case, host: &Host) {
    let mut host = host.clone();
    for at in 0..case.steps.len() {
        if let Action::Host(change) = &case.steps[at].action {
            host = change.applied(&host).unwrap_or(host);
        }
        let (before, rest) = case.steps.split_at_mut(at);
        let Some((outbound, bytes, expected)) = answered(before, &mut rest[0]) else { continue };
        let ends = skipstep_wire::addresses(&bytes);
        let receives = |address| outbound && is_own(&host, address) || is_special(&host, address);
        let special = ends
            .is_none_or(|(source, destination)| receives(source) || is_special(&host, destination));
        let special = special || is_fragment(&bytes) || is_followed(&bytes);
        // no host is 0.0.0.0: the system chooses the sender of a RST to that address
        let nowhere = ends.is_some_and(|(_, to)| to.is_unspecified());
        for reply in expected.replies.iter_mut().flatten() {
            // the answer to a translated packet goes to its translated source
            let receiver = match &*reply {
                Reply::Bytes(bytes) => {
                    skipstep_wire::addresses(bytes).map(|(_, receiver)| receiver)
                }
                _ => None,
            };
            if special || receiver.is_some_and(receives) {
                *reply = if nowhere { reply.as_fields() } else { reply.without_addresses() };
            }
        }
    }
}

/// Returns the bytes of the step's packet if answers are expected, and true if the packet is
/// outbound. `before` has the previous steps.
fn answered<'s>(
    before: &[Step],
    step: &'s mut Step,
) -> Option<(bool, Vec<u8>, &'s mut Expectation)> {
    let (Action::Packet(_, expected) | Action::Forward(_, expected)) = &step.action else {
        return None;
    };
    if expected.replies.as_ref().is_none_or(Vec::is_empty) {
        return None;
    }
    match &mut step.action {
        Action::Packet(arrival, expected) => {
            Some((arrival.direction == Direction::Out, arrival.packet.bytes(), expected))
        }
        Action::Forward(_, expected) => match &before.last()?.action {
            // a forwarded packet leaves as the inbound side rewrote it
            Action::Packet(_, Expectation { out: Some(Out::Bytes(bytes)), .. }) => {
                Some((true, bytes.clone(), expected))
            }
            Action::Packet(arrival, _) => Some((true, arrival.packet.bytes(), expected)),
            _ => None,
        },
        _ => None,
    }
}

/// Returns true if a packet is a fragment of an IPv4 datagram.
fn is_fragment(packet: &[u8]) -> bool {
    let field = packet.get(6..8).map_or(0, |field| u16::from_be_bytes([field[0], field[1]]));
    packet[0] >> 4 == 4 && field & 0x3fff != 0
}

/// Returns true if the frame has bytes behind an IPv6 packet.
fn is_followed(packet: &[u8]) -> bool {
    packet[0] >> 4 == 6 && packet.len() > skipstep_wire::ip_length(packet)
}

fn is_own(host: &Host, address: IpAddr) -> bool {
    let mut own = host.interfaces.iter().flat_map(|interface| &interface.addresses);
    own.any(|own| own.net.addr() == address)
}

/// Returns true for a link-local IPv4, broadcast, loopback or multicast address, and for the first
/// or last address of an own network.
fn is_special(host: &Host, address: IpAddr) -> bool {
    let link_local = match address {
        IpAddr::V4(address) => address.is_link_local() || address.is_broadcast(),
        IpAddr::V6(_) => false,
    };
    let mut own = host.interfaces.iter().flat_map(|interface| &interface.addresses);
    let edge = own.any(|own| own.net.network() == address || own.net.broadcast() == address);
    link_local || address.is_loopback() || address.is_multicast() || edge
}
