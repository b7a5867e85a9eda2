//! Reads the words about the arrival of a packet: its metadata, its socket and its link header.

use skipstep_model::{Hiding, SocketOwner, VlanTag};

use crate::case::Arrival;
use crate::line::{Line, Parsed, number};
use crate::names::ether_type_of_tag;

/// Reads `word`, which is the next one, and its value. Returns false if it is no such word.
pub(super) fn read(arrival: &mut Arrival, word: &str, line: &mut Line) -> Parsed<bool> {
    match word {
        "received-on" => arrival.received_on = Some(line.word_behind("an interface")?),
        "tag" | "tagged" => arrival.tag = Some(line.word_behind("a tag")?),
        "queue" => arrival.queue = Some(line.word_behind("a queue")?),
        "prio" => {
            line.next();
            arrival.prio = Some(line.number("a priority")?);
        }
        "delay" => {
            line.next();
            arrival.delay = Some(line.number("milliseconds")?);
        }
        "owner" => {
            line.next();
            let (uid, gid) = line.value("a user and a group as 1000:100", ids)?;
            arrival.owner = Some(SocketOwner { uid, gid });
        }
        _ => return read_link_word(arrival, word, line),
    }
    Ok(true)
}

/// Reads `vlan 5`, `qinq 5`, `qinq-old 5`, `snap`, `mpls` or `other-station`.
fn read_link_word(arrival: &mut Arrival, word: &str, line: &mut Line) -> Parsed<bool> {
    let link = &mut arrival.link;
    if let Some(ether_type) = ether_type_of_tag(word) {
        line.next();
        link.tags.push(VlanTag { ether_type, id: line.number("a VLAN identifier")? });
        return Ok(true);
    }
    match word {
        "snap" => link.hiding = Some(Hiding::Snap),
        "mpls" => link.hiding = Some(Hiding::Label),
        "other-station" => link.for_other_station = true,
        _ => return Ok(false),
    }
    line.next();
    Ok(true)
}

/// Parses `uid:gid`.
fn ids(text: &str) -> Option<(u32, u32)> {
    let (uid, gid) = text.split_once(':')?;
    Some((number(uid)?, number(gid)?))
}
