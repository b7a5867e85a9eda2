//! The network's work on routed packets, done by the test. An inbound packet goes to the program of
//! its egress interface, and a packet too long for the link is fragmented.

use skipstep_abi as abi;
use skipstep_abi::pool::route_kind;
use skipstep_kernel::Result;
use skipstep_model::{Fate, ForwardRoute, Forwarded, LinkHeader, Packet, Verdict};
use skipstep_reassembly::{fragments, refragment, refragment_ipv4};
use skipstep_ruleset::Direction;
use skipstep_wire::checksum;

use crate::passage::Passage;

/// The route of a packet or of its copy.
struct Sent {
    interface: String,
    mtu: usize,
    next_hop: std::net::IpAddr,
}

impl Passage<'_> {
    /// Continues with a routed packet; `after` is the packet after the program.
    pub(crate) fn carry_on(
        &mut self,
        packet: &Packet,
        after: &[u8],
        outcome: &abi::Outcome,
        mut fate: Fate,
    ) -> Result<Fate> {
        let copies = outcome.route == route_kind::DUP_TO;
        if !copies {
            fate.verdict = Verdict::Consumed;
        }
        let inbound = packet.direction == Direction::In;
        let Some(sent) = self.sent(outcome) else {
            return Ok(fate); // the sender got an error, or the packet was dropped in silence
        };
        let mut bytes = after.to_vec();
        if copies && inbound {
            spend_hop(&mut bytes);
        }
        if inbound && !copies {
            let mut outbound = Packet {
                direction: Direction::Out,
                interface: sent.interface.clone(),
                bytes,
                link: LinkHeader::default(),
                received_on: Some(packet.interface.clone()),
                carried: fate.carried.clone(),
                owner: None,
            };
            let mark =
                if packet.carried.fragmentation.is_some() { abi::mark::REASSEMBLED } else { 0 };
            outbound.carried.fragmentation = None;
            // the new state may have expired others (adaptive timeouts), which the first program
            // did not check
            self.programs.sweep.call(&())?;
            let mut second = self.marked(&outbound, mark, true)?;
            fate.counted.append(&mut second.counted);
            fate.counted.sort();
            fate.log.append(&mut second.log);
            fate.replies.append(&mut second.replies);
            fate.forwarded.append(&mut second.forwarded);
            if second.verdict != Verdict::Pass {
                return Ok(fate);
            }
            bytes = second.out.unwrap_or(outbound.bytes);
        }
        checksum::fix_ipv4_header(&mut bytes);
        bytes.truncate(skipstep_wire::ip_length(&bytes));
        let fragments = match packet.carried.fragmentation {
            Some(how) => refragment(&bytes, &how, self.machine.test.random.min(u32::MAX - 1)),
            None if bytes.len() > sent.mtu => refragment_ipv4(&bytes, sent.mtu),
            None => Some(vec![bytes]),
        };
        let way = ForwardRoute::Route { interface: sent.interface, next_hop: sent.next_hop };
        let onward = |bytes| Forwarded { route: way.clone(), bytes };
        fate.forwarded.extend(fragments.into_iter().flatten().map(onward));
        Ok(fate)
    }

    /// Returns the packets that leave after a packet has crossed to the other family.
    pub(crate) fn crossed(&self, after: &[u8], outcome: &abi::Outcome) -> Vec<Forwarded> {
        let sent = self.sent(outcome).filter(|_| outcome.route != route_kind::NO);
        let way = sent.map_or(ForwardRoute::Forward, |sent| ForwardRoute::Route {
            interface: sent.interface,
            next_hop: sent.next_hop,
        });
        let pieces = match outcome.fragment_length as usize {
            0 => vec![after.to_vec()],
            longest => {
                let id = self.machine.test.random.min(u32::MAX - 1);
                fragments(after, longest, id).unwrap_or_default()
            }
        };
        pieces.into_iter().map(|bytes| Forwarded { route: way.clone(), bytes }).collect()
    }

    fn sent(&self, outcome: &abi::Outcome) -> Option<Sent> {
        let interfaces = &self.host.interfaces;
        let interface = interfaces.iter().find(|interface| interface.index == outcome.ifindex);
        interface.map(|interface| Sent {
            interface: interface.name.clone(),
            mtu: interface.mtu as usize,
            next_hop: abi::address_from(outcome.next_hop_family, outcome.next_hop),
        })
    }
}

/// Decrements the hop limit, as the data plane does in a copy; it restores it in the packet.
fn spend_hop(packet: &mut [u8]) {
    let at = if packet[0] >> 4 == 4 { 8 } else { 7 };
    packet[at] = packet[at].wrapping_sub(1);
}
