//! The order of steps for each packet (pf-semantics section 3).

use std::sync::Arc;

use skipstep_ruleset::{Direction, Family, Reason, Unattached};
use skipstep_wire::checksum;

use crate::fate::{Carried, Diverted, Fate, Packet, Verdict};
use crate::firewall::Firewall;
use crate::journal::Journal;
use crate::packet::{Descriptor, Malformed};
use crate::trace::{Stage, Trace, Tracer};

impl Firewall {
    /// Filters a packet.
    pub fn packet(&mut self, packet: &Packet) -> Fate {
        let mut journal = Journal::new(uid(packet), Tracer::default());
        self.run(packet, &mut journal)
    }

    /// Filters a packet, and also returns the steps on its way.
    pub fn explain(&mut self, packet: &Packet) -> (Fate, Trace) {
        let mut journal = Journal::new(uid(packet), Tracer::on());
        let fate = self.run(packet, &mut journal);
        (fate, journal.tracer.finish())
    }

    pub(crate) fn run(&mut self, input: &Packet, journal: &mut Journal) -> Fate {
        if self.is_skipped(&input.interface) {
            journal.tracer.record(|| Stage::Skipped);
            return untouched(input);
        }
        if let Some(fate) = self.decide_foreign_frame(input, journal) {
            return fate;
        }
        if input.link.has_label() && self.may_keep_label(input) {
            journal.tracer.record(|| Stage::Labelled);
            return untouched(input);
        }
        if input.link.hides_packet() || input.link.has_label() {
            return self.refuse_hidden(input, journal);
        }
        let fate = match self.describe(input) {
            Ok(packet) if has_bad_checksum(input, &packet) => {
                let family = packet.family;
                let malformed = Malformed { reason: Reason::ProtoCksum, total_len: 0, family };
                self.refuse(input, malformed, journal)
            }
            Ok(packet)
                if packet.is_fragment()
                    && !is_nested(input, &packet)
                    && self.waits(input, &packet, journal) =>
            {
                self.reassemble(input, packet, journal)
            }
            Ok(packet) => self.filter(input, packet, journal),
            Err(malformed) => self.refuse(input, malformed, journal),
        };
        for reason in &journal.counted {
            self.counters.status.reasons[*reason as usize] += 1;
        }
        fate
    }

    /// Parses a packet, with the routing domain of its interface.
    pub(crate) fn describe(&self, packet: &Packet) -> Result<Descriptor, Malformed> {
        // Differs from OpenBSD: linux.md, "Routing domains"
        let rdomain = self.world.host.rdomain(&packet.interface);
        let stays_on_bridge = packet.direction == Direction::In && self.comes_by_port(packet);
        let mut descriptor = Descriptor { rdomain, stays_on_bridge, ..Descriptor::parse(packet)? };
        if self.rulebook.names_sctp_ports {
            descriptor.read_sctp_ports()?;
        }
        Ok(descriptor)
    }

    /// Decides about a frame that came in for another station's link address. Such a frame belongs
    /// to a device on top of the interface, or to no device. Returns `None` if the packet is
    /// judged, as on a port of a bridge.
    // Differs from OpenBSD: linux.md, "Frames for other stations"
    fn decide_foreign_frame(&self, input: &Packet, journal: &mut Journal) -> Option<Fate> {
        if !input.link.for_other_station
            || input.direction == Direction::Out
            || self.comes_by_port(input)
        {
            return None;
        }
        journal.tracer.record(|| Stage::ForOtherStation);
        let verdict = if input.link.tags.is_empty() { Verdict::Drop } else { Verdict::Pass };
        let carried = match verdict {
            Verdict::Pass => input.carried.clone(),
            _ => Carried::default(),
        };
        Some(Fate::unjudged(verdict, carried))
    }

    /// Returns true if a packet with an MPLS label passes unchanged: on its way out, or across a
    /// bridge. Elsewhere this host may remove the label, and nothing would judge the packet behind
    /// it.
    // Differs from OpenBSD: linux.md, "Packets inside of packets"
    fn may_keep_label(&self, input: &Packet) -> bool {
        input.direction == Direction::Out
            || self.comes_by_port(input)
            || self.ruleset.options.unattached == Unattached::Pass
    }

    fn comes_by_port(&self, input: &Packet) -> bool {
        self.world.interface(&input.interface).is_some_and(|found| found.port)
    }

    fn is_skipped(&self, name: &str) -> bool {
        let skip = &self.ruleset.options.skip;
        skip.iter().any(|skipped| {
            skipped == name
                || self
                    .world
                    .interface(name)
                    .is_some_and(|interface| interface.has_name_or_group(skipped))
        })
    }

    /// Judges a packet with sound headers, and then routes and fragments it.
    pub(crate) fn filter(
        &mut self,
        input: &Packet,
        packet: Descriptor,
        journal: &mut Journal,
    ) -> Fate {
        let family = packet.family;
        let mut fate = self.judge(input, packet, journal);
        if !matches!(fate.carried.diverted, Some(Diverted::Packet(_))) {
            self.route(input, &mut fate, journal);
            self.fragment_again(input, family, &mut fate, journal);
        }
        fate
    }

    /// Decides about a packet and carries out the decision, without routing.
    pub(crate) fn judge(
        &mut self,
        input: &Packet,
        mut packet: Descriptor,
        journal: &mut Journal,
    ) -> Fate {
        let (ruleset, rulebook) = (Arc::clone(&self.ruleset), Arc::clone(&self.rulebook));
        let ruling = self.decide(&ruleset, &rulebook, input, &mut packet, journal);
        self.settle(input, packet, ruling, journal)
    }
}

/// Returns the user that owns the packet's socket.
fn uid(packet: &Packet) -> Option<u32> {
    packet.owner.map(|owner| owner.uid)
}

/// Returns the fate of a packet that the firewall does not judge.
pub(crate) fn untouched(input: &Packet) -> Fate {
    // no rule diverts the packet to a socket
    Fate::unjudged(Verdict::Pass, Carried { diverted: None, ..input.carried.clone() })
}

/// Returns true if the header of an inbound IPv4 packet is damaged. A host's IP input drops such
/// packets before pf sees them.
// Differs from OpenBSD: linux.md, "Checksums"
fn has_bad_checksum(input: &Packet, packet: &Descriptor) -> bool {
    let header_len = usize::from(input.bytes[0] & 15) * 4;
    packet.family == Family::Inet
        && input.direction == Direction::In
        && checksum::internet(&input.bytes[..header_len]) != 0
}

/// Returns true if a fragment comes from a datagram that this host has already reassembled.
fn is_nested(input: &Packet, packet: &Descriptor) -> bool {
    packet.family == Family::Inet6 && input.carried.fragmentation.is_some()
}
