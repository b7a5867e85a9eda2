//! `route-to`, `reply-to`, `dup-to`: packets that go to a next hop of their state, whatever the
//! routing table says. The next hop was chosen when the state was created (pf-semantics section
//! 11).

use std::net::IpAddr;

use skipstep_reassembly::{fragments, refragment, refragment_ipv4};
use skipstep_ruleset::interface::Interface;
use skipstep_ruleset::{Direction, Reason, RouteKind};
use skipstep_views::NextHop;
use skipstep_wire::checksum;

use crate::cross;
use crate::fate::{Carried, Fate, ForwardRoute, Forwarded, Packet, Verdict};
use crate::firewall::Firewall;
use crate::journal::Journal;
use crate::key::{Ends, StateId};
use crate::link::LinkHeader;
use crate::normalize::IP_CHECKSUM;
use crate::packet::{Descriptor, Malformed};
use crate::patch;
use crate::reply::{self, Undelivered};
use crate::ruling::{Ruling, fate};
use crate::state::State;
use crate::trace::Stage;

/// The next hop of a packet, and the routing table for it.
pub(crate) struct Course {
    hop: NextHop,
    /// Number of the table that has the route to the neighbour.
    table: u32,
}

impl Course {
    /// Returns the neighbour that gets a packet for this destination.
    fn neighbour(&self, destination: IpAddr) -> IpAddr {
        match self.hop.interface {
            Some(_) if self.hop.address.is_unspecified() => destination,
            _ => self.hop.address,
        }
    }
}

/// A packet that is about to cross to the other family, and its next hop there.
pub(crate) struct Across {
    pub packet: Descriptor,
    /// Addresses and ports in the other family.
    pub ends: Ends,
    pub course: Course,
}

impl State {
    /// Returns the next hop of packets of this direction; `along` is true for packets in the
    /// state's direction. The routing table of a rule applies to packets in the rule's direction
    /// only.
    fn course(&self, direction: Direction, along: bool) -> Option<Course> {
        let hop = self.route.clone().filter(|route| match route.kind {
            RouteKind::RouteTo => along,
            RouteKind::ReplyTo => !along,
            RouteKind::DupTo => true,
        })?;
        let table = if direction == self.direction { self.actions.rtable() } else { 0 };
        Some(Course { hop, table })
    }
}

/// The reasons why a packet is not routed.
enum Unrouted {
    /// The sender is not notified.
    Silent,
    /// The sender is notified.
    Notify(Undelivered),
}

impl Firewall {
    /// Sends a packet that passed, or a copy of it, to the next hop of its state.
    pub(crate) fn route(&mut self, input: &Packet, fate: &mut Fate, journal: &mut Journal) {
        let state = fate.state.filter(|_| fate.verdict == Verdict::Pass);
        let Some(course) = state.and_then(|id| {
            let state = self.states.get(id);
            state.course(input.direction, input.direction == state.direction)
        }) else {
            return;
        };
        let copies = course.hop.kind == RouteKind::DupTo;
        let changed = if copies { fate.out.clone() } else { fate.out.take() };
        let mut bytes = changed.unwrap_or_else(|| input.bytes.clone());
        bytes.truncate(skipstep_wire::ip_length(&bytes)); // without bytes that follow in the frame
        let mut packet = Packet { bytes, carried: fate.carried.clone(), ..input.clone() };
        if !copies {
            fate.verdict = Verdict::Consumed;
            fate.carried.diverted = None;
        }
        // parsed before it spends a hop: a neighbour solicitation would be malformed afterwards
        let described =
            self.describe(&packet).or_else(|_| self.describe_translated(input, &packet)).ok();
        match self.send(&mut packet, &course, fate, journal) {
            Ok(()) | Err(Unrouted::Silent) => {}
            Err(Unrouted::Notify(_)) if copies => {}
            Err(Unrouted::Notify(reason)) => {
                if reason == Undelivered::NoRoute {
                    journal.count_only(Reason::NoRoute);
                    fate.counted.push(Reason::NoRoute);
                }
                let is_too_long = matches!(reason, Undelivered::TooBig(_));
                let about = if input.direction == Direction::Out && is_too_long {
                    self.describe(input).ok() // its sender knows it as it was
                } else {
                    described.map(|described| Descriptor { bytes: packet.bytes, ..described })
                };
                fate.replies.extend(self.notify_sender(about, reason, journal));
            }
        }
    }

    /// Returns the ICMP error to the sender of a packet that does not reach its next hop, if the
    /// packet may be answered.
    // Differs from OpenBSD: linux.md, "Too long for the route"
    pub(crate) fn notify_sender(
        &self,
        about: Option<Descriptor>,
        reason: Undelivered,
        journal: &mut Journal,
    ) -> Option<Vec<u8>> {
        let error = reply::undelivered(&about?, reason, &self.world)?;
        journal.tracer.record(|| Stage::Replied(skipstep_wire::print::line(&error)));
        Some(error)
    }

    /// Describes a packet whose translated port is 0, which parsing refuses: the packet before
    /// translation, between its present addresses.
    fn describe_translated(
        &self,
        before: &Packet,
        packet: &Packet,
    ) -> Result<Descriptor, Malformed> {
        let (source, destination) = ends(&packet.bytes);
        Ok(Descriptor { source, destination, ..self.describe(before)? })
    }

    /// Returns the next hop of a packet that is about to cross to the other family.
    pub(crate) fn course_across(&self, state: StateId, packet: &Descriptor) -> Option<Course> {
        let state = self.states.get(state);
        state.course(packet.direction, state.direction_of(packet) == state.direction)
    }

    /// Converts a packet to the other family and sends it to its next hop, without another
    /// evaluation. An error to its sender quotes the packet as it was.
    // Differs from OpenBSD: linux.md, "Forwarding by af-to"
    pub(crate) fn route_across(
        &self,
        input: &Packet,
        across: Across,
        ruling: &Ruling,
        carried: Carried,
        journal: &mut Journal,
    ) -> Fate {
        match self.send_across(input, across) {
            Ok(sent) => {
                let mut fate = fate(input, None, ruling, carried, journal);
                fate.verdict = Verdict::Consumed;
                fate.forwarded = sent;
                fate
            }
            Err(reason) => {
                if reason == Undelivered::NoRoute {
                    journal.count_only(Reason::NoRoute);
                }
                let told = self.notify_sender(self.describe(input).ok(), reason, journal);
                journal.replies.extend(told);
                let mut fate = fate(input, None, ruling, Carried::default(), journal);
                fate.verdict = Verdict::Drop;
                fate
            }
        }
    }

    /// Returns the converted packet, or its fragments. Fails if there is no route, if the TTL has
    /// expired, or if the packet is too long.
    fn send_across(&self, input: &Packet, across: Across) -> Result<Vec<Forwarded>, Undelivered> {
        let Across { mut packet, ends, course } = across;
        let next_hop = course.neighbour(ends.destination.0);
        let way = self.egress_interface(next_hop, &course, input).ok_or(Undelivered::NoRoute)?;
        if packet.ttl <= 1 {
            return Err(Undelivered::Expired);
        }
        let longest = cross::fit(&packet, input, way.mtu as usize)?;
        cross::network(&mut packet, &ends, &self.world);
        decrement_ttl(&mut packet.bytes)?;
        let sent = match longest {
            None => vec![packet.bytes],
            Some(longest) => {
                let id = self.world.draw(u32::MAX);
                fragments(&packet.bytes, longest, id).unwrap_or_default()
            }
        };
        let way = ForwardRoute::Route { interface: way.name.clone(), next_hop };
        Ok(sent.into_iter().map(|bytes| Forwarded { route: way.clone(), bytes }).collect())
    }

    /// Sends `packet` to the next hop. An inbound packet is filtered once more, where it leaves.
    fn send(
        &mut self,
        packet: &mut Packet,
        course: &Course,
        fate: &mut Fate,
        journal: &mut Journal,
    ) -> Result<(), Unrouted> {
        let hop = &course.hop;
        let inbound = packet.direction == Direction::In;
        if inbound {
            decrement_ttl(&mut packet.bytes).map_err(Unrouted::Notify)?;
        }
        let next_hop = course.neighbour(ends(&packet.bytes).1);
        let way = self
            .egress_interface(next_hop, course, packet)
            .ok_or(Unrouted::Notify(Undelivered::NoRoute))?;
        let (interface, mtu) = (way.name.clone(), way.mtu);
        let (to, next) = (interface.clone(), next_hop);
        journal.tracer.record(|| Stage::Routed { interface: to, next_hop: next });
        let mut outgoing = packet.clone();
        if inbound && hop.kind != RouteKind::DupTo {
            outgoing.bytes = self.filter_routed(packet, &interface, fate, journal)?;
        }
        checksum::fix_ipv4_header(&mut outgoing.bytes);
        for bytes in self.fragments_for_mtu(&outgoing, mtu)? {
            let way = ForwardRoute::Route { interface: interface.clone(), next_hop };
            fate.forwarded.push(Forwarded { route: way, bytes });
        }
        Ok(())
    }

    /// Returns the interface where the packet leaves for its next hop. An interface that the rule
    /// names needs no route. The routing table has no route to local addresses.
    fn egress_interface(
        &self,
        next_hop: IpAddr,
        course: &Course,
        packet: &Packet,
    ) -> Option<&Interface> {
        let by_table = || {
            if self.world.is_local(next_hop) {
                return None;
            }
            let rdomain = self.world.host.rdomain(&packet.interface);
            self.world.route_in(course.table, next_hop, rdomain).map(|route| &route.interface)
        };
        self.world.interface(course.hop.interface.as_ref().or_else(by_table)?)
    }

    /// Filters a routed packet on the interface where it leaves, and returns its bytes. Adds the
    /// side effects to `fate`.
    fn filter_routed(
        &mut self,
        packet: &Packet,
        interface: &str,
        fate: &mut Fate,
        journal: &mut Journal,
    ) -> Result<Vec<u8>, Unrouted> {
        let mut outbound = Packet {
            direction: Direction::Out,
            interface: interface.to_owned(),
            link: LinkHeader::default(),
            received_on: Some(packet.interface.clone()),
            // a forwarded packet has no local socket
            owner: None,
            ..packet.clone()
        };
        // the router makes the fragments, not the filter
        outbound.carried.fragmentation = None;
        // the new state may have expired other states through adaptive timeouts. pf waits for its
        // purge. In the data plane no lookup finds an expired state
        self.set_time(self.world.now);
        let mut nested = Journal::new(None, std::mem::take(&mut journal.tracer));
        let mut second = self.run(&outbound, &mut nested);
        journal.tracer = nested.tracer;
        fate.counted.append(&mut second.counted);
        fate.counted.sort();
        fate.log.append(&mut second.log);
        fate.replies.append(&mut second.replies);
        fate.forwarded.append(&mut second.forwarded);
        match second.verdict {
            Verdict::Pass => Ok(second.out.unwrap_or(outbound.bytes)),
            Verdict::Drop | Verdict::Consumed => Err(Unrouted::Silent),
        }
    }

    /// Returns the packet, or the fragments that it leaves in.
    fn fragments_for_mtu(&self, packet: &Packet, mtu: u32) -> Result<Vec<Vec<u8>>, Unrouted> {
        let bytes = &packet.bytes;
        let mtu = mtu as usize;
        if bytes[0] >> 4 == 4 {
            return match () {
                () if bytes.len() <= mtu => Ok(vec![bytes.clone()]),
                () if bytes[6] & 0x40 != 0 => {
                    Err(Unrouted::Notify(Undelivered::TooBig(mtu as u32)))
                }
                () => refragment_ipv4(bytes, mtu).ok_or(Unrouted::Silent),
            };
        }
        if let Some(how) = &packet.carried.fragmentation {
            if how.longest() > mtu {
                return Err(Unrouted::Notify(Undelivered::TooBig(mtu as u32)));
            }
            return refragment(bytes, how, self.world.draw(u32::MAX)).ok_or(Unrouted::Silent);
        }
        if bytes.len() > mtu {
            return Err(Unrouted::Notify(Undelivered::TooBig(mtu as u32)));
        }
        Ok(vec![bytes.clone()])
    }
}

fn ends(bytes: &[u8]) -> (IpAddr, IpAddr) {
    skipstep_wire::addresses(bytes).expect("a packet that was filtered has a whole header")
}

/// Decrements TTL or hop limit. Fails if the limit has expired.
// Differs from OpenBSD: linux.md, "Quoted header checksum"
fn decrement_ttl(bytes: &mut [u8]) -> Result<(), Undelivered> {
    let inet = bytes[0] >> 4 == 4;
    let at = if inet { 8 } else { 7 };
    if bytes[at] <= 1 {
        return Err(Undelivered::Expired);
    }
    let left = bytes[at] - 1;
    if inet {
        patch::byte(bytes, IP_CHECKSUM, 0, at, left);
    } else {
        bytes[at] = left;
    }
    Ok(())
}
