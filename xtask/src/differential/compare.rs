//! Plays a case on the data plane, which must do what the model did; shrinks it where it does not.

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

/// The first of the engines that does not do what the model did is told, with the case shrunk.
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
            Ok(Err(why)) => vec![why],
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

/// The case with the bytes of its packets in place of the words, which all engines would build
/// anew.
fn built(case: &Case) -> Case {
    let mut case = case.clone();
    for step in &mut case.steps {
        if let Action::Packet(arrival, _) = &mut step.action {
            arrival.packet = Packet::Hex(arrival.packet.bytes());
        }
    }
    case
}

/// How an engine's play of a case differs from the model's: the case with the model's results
/// expected, up to the first difference, and that difference.
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

/// Whether a packet carries a tag or a queue that no rule knows, as may happen when rules were left
/// out. The data plane has none of that name, so that means nothing.
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

/// Leaves out of the expectations the addresses of ICMP errors where skipstep deliberately
/// answers from another address than pf: with the destination of the packet instead of an own
/// address if Linux would refuse its own address as a source (an answer to this host itself), or
/// if the kernel does not say which own address is right (broadcast and loopback addresses).
/// And what they quote of a datagram put together of fragments, whose checksum pf has not settled
/// yet, and of what follows an IPv6 packet in its frame, which the kernel does not keep.
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
        // nobody is at 0.0.0.0: whom the system makes the sender of a RST from there is its
        // business
        let nowhere = ends.is_some_and(|(_, to)| to.is_unspecified());
        for reply in expected.replies.iter_mut().flatten() {
            // a translated packet is answered to whom it is from by then
            let receiver = match &*reply {
                Reply::Bytes(bytes) => {
                    skipstep_wire::addresses(bytes).map(|(_, receiver)| receiver)
                }
                _ => None,
            };
            if special || receiver.is_some_and(receives) {
                *reply = if nowhere { reply.in_words() } else { reply.without_addresses() };
            }
        }
    }
}

/// The packet of a step that is answered, and whether it is on its way out; `before` are the steps
/// before it.
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
            // on its way out it is what the way in made of it
            Action::Packet(_, Expectation { out: Some(Out::Bytes(bytes)), .. }) => {
                Some((true, bytes.clone(), expected))
            }
            Action::Packet(arrival, _) => Some((true, arrival.packet.bytes(), expected)),
            _ => None,
        },
        _ => None,
    }
}

/// Whether a packet is a piece of an IPv4 datagram.
fn is_fragment(packet: &[u8]) -> bool {
    let field = packet.get(6..8).map_or(0, |field| u16::from_be_bytes([field[0], field[1]]));
    packet[0] >> 4 == 4 && field & 0x3fff != 0
}

/// Whether something follows an IPv6 packet in its frame.
fn is_followed(packet: &[u8]) -> bool {
    packet[0] >> 4 == 6 && packet.len() > skipstep_wire::ip_length(packet)
}

fn is_own(host: &Host, address: IpAddr) -> bool {
    let mut own = host.interfaces.iter().flat_map(|interface| &interface.addresses);
    own.any(|own| own.net.addr() == address)
}

/// Whether an address is one of IPv4's link-local ones, loopback, multicast, or the first or last
/// of an own network.
fn is_special(host: &Host, address: IpAddr) -> bool {
    let link_local = match address {
        IpAddr::V4(address) => address.is_link_local() || address.is_broadcast(),
        IpAddr::V6(_) => false,
    };
    let mut own = host.interfaces.iter().flat_map(|interface| &interface.addresses);
    let edge = own.any(|own| own.net.network() == address || own.net.broadcast() == address);
    link_local || address.is_loopback() || address.is_multicast() || edge
}
