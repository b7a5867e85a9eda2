//! Frame and context of a packet as the kernel would hand them to a program, and the marks of a
//! packet that leaves.

use skipstep_abi as abi;
use skipstep_classifier::Names;
use skipstep_kernel::program::{Program, Run, SkBuff};
use skipstep_kernel::{Error, Result};
use skipstep_model::{Carried, Hiding, LinkHeader, Packet, VlanTag};
use skipstep_ruleset::Direction;
use skipstep_ruleset::interface::Host;

use crate::network::LINK_ADDRESS;

/// Bytes of an Ethernet header without tags.
pub(crate) const LINK_HEADER: usize = 14;

/// Link address of a station other than this host.
const OTHER_STATION: [u8; 6] = [2, 0, 0, 0, 0, 9];

/// Runs `program` `repeat` times on `packet`, which is on an interface of `host`.
pub(crate) fn run(
    program: &Program,
    packet: &Packet,
    host: &Host,
    names: &Names,
    repeat: u32,
) -> Result<Run> {
    let frame = frame(&link_header(packet, host), &packet.bytes);
    program.run_packet(&frame, &context(packet, host, names)?, repeat)
}

/// Returns the kernel's context of the packet.
pub(crate) fn context(packet: &Packet, host: &Host, names: &Names) -> Result<SkBuff> {
    let here = index_of(host, &packet.interface)?;
    let arrived = match (&packet.received_on, packet.direction) {
        (Some(name), _) => index_of(host, name)?,
        (None, Direction::In) => here,
        (None, Direction::Out) => 0,
    };
    let tag = packet.carried.tag.as_deref().and_then(|tag| names.tags.get(tag));
    let mut context = SkBuff::new();
    context.ifindex = here;
    context.ingress_ifindex = arrived;
    let queue = packet.carried.queue.as_deref().and_then(|queue| names.queues.get(queue));
    context.priority = abi::queue::priority(queue.unwrap_or(0) as u16);
    context.mark = abi::mark::compose(tag.unwrap_or(0) as u16, packet.carried.prio);
    context.departure = [packet.carried.delay.into(), 0];
    Ok(context)
}

/// Returns the marks that the packet carries to the next hook.
pub(crate) fn carried(run: &Run, names: &Names) -> Carried {
    let (tag, prio) = abi::mark::split(run.context.mark);
    let tag = names.tags.name(u32::from(tag)).map(str::to_owned);
    let queue = abi::queue::number(run.context.priority);
    let queue = queue.and_then(|queue| names.queues.name(u32::from(queue))).map(str::to_owned);
    let delay = match run.context.departure {
        [delay, 0] if delay <= abi::delayed::MAX_DELAY => delay as u16,
        _ => 0,
    };
    Carried { tag, prio, queue, delay, ..Carried::default() }
}

pub(crate) fn index_of(host: &Host, name: &str) -> Result<u32> {
    let interface = host.interface(name);
    interface.map(|interface| interface.index).ok_or_else(|| Error::Bpf {
        operation: format!("interface {name}"),
        cause: "the test's host has none of that name".to_owned(),
    })
}

/// Returns the link header of a packet up to its last EtherType. On a port of a bridge every frame
/// is for another station, because frames for this host are not bridged.
pub(crate) fn link_header(packet: &Packet, host: &Host) -> Vec<u8> {
    let interface = host.interface(&packet.interface);
    let is_port = interface.is_some_and(|interface| interface.port);
    let is_loopback = interface.is_some_and(|interface| interface.loopback);
    let mut header = link_header_to(match packet.link.for_other_station || is_port {
        true => OTHER_STATION,
        false if is_loopback => [0; 6],
        false => LINK_ADDRESS,
    });
    for VlanTag { ether_type, id } in &packet.link.tags {
        header.extend(ether_type.to_be_bytes());
        header.extend(id.to_be_bytes());
    }
    match packet.link.hiding {
        Some(Hiding::Snap) => {
            // a length, the service access points and the organization of EtherTypes
            header.extend((packet.bytes.len() as u16 + 8).min(0x5ff).to_be_bytes());
            header.extend([0xaa, 0xaa, 3, 0, 0, 0]);
        }
        // EtherType, and label 16; the EtherType after the label is ignored
        Some(Hiding::Label) => header.extend([0x88, 0x47, 0, 1, 1, 64]),
        None => {}
    }
    header
}

/// Returns the bytes that `link_header` puts between the addresses and the last EtherType.
pub(crate) fn length_of_tags(link: &LinkHeader) -> usize {
    let hiding = match link.hiding {
        Some(Hiding::Snap) => 8,
        Some(Hiding::Label) => 6,
        None => 0,
    };
    link.tags.len() * 4 + hiding
}

/// Returns the link header of a frame for a link address, without tags, up to its EtherType.
pub(crate) fn link_header_to(destination: [u8; 6]) -> Vec<u8> {
    [destination, [2, 0, 0, 0, 0, 2]].concat()
}

/// Returns the frame of a packet: link header, EtherType, packet.
pub(crate) fn frame(link_header: &[u8], packet: &[u8]) -> Vec<u8> {
    let version = packet.first().map_or(4, |byte| byte >> 4);
    let ether_type: u16 = if version == 6 { 0x86dd } else { 0x0800 };
    [link_header, &ether_type.to_be_bytes(), packet].concat()
}
