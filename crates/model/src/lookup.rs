//! Lookup of a packet's state, which then judges the packet (pf-semantics sections 6 to 10).

use std::net::IpAddr;

use skipstep_ruleset::{Family, Reason, Timeout};
use skipstep_wire::{protocol, tcp_flag};

use crate::firewall::Firewall;
use crate::icmp::{self, Mapping};
use crate::icmp_convert::Untranslatable;
use crate::icmp_error::{self, Quoted, QuotedTransport};
use crate::journal::Journal;
use crate::key::{Ends, Key, StateId};
use crate::packet::{Descriptor, Icmp, Tcp, Transport};
use crate::tcp::{self, Tracked};
use crate::trace::Stage;
use crate::translate;
use crate::{cross, modulate, others, reply, timeout};

/// The result of a lookup.
pub(crate) enum Lookup {
    /// No state, or the packet begins a new flow: the rules decide.
    None,
    /// The state lets the packet pass.
    Accepted(StateId),
    /// The state drops the packet.
    Rejected(StateId),
    /// The packet was for the firewall itself, and ends here.
    Consumed(StateId),
}

/// An ICMP message: the packet's own, or one that the packet quotes.
struct Message<'a> {
    protocol: u8,
    source: IpAddr,
    destination: IpAddr,
    header: &'a Icmp,
    mapping: Mapping,
    quoted: bool,
}

impl Firewall {
    /// Looks up the state of a packet, and updates the state.
    pub(crate) fn look_up(&mut self, packet: &mut Descriptor, journal: &mut Journal) -> Lookup {
        let Some(header) = packet.icmp() else {
            let lookup = self.look_up_flow(packet, journal);
            return self.translate(lookup, packet, None, journal);
        };
        let mapping = icmp::mapping(packet.family, header);
        if !mapping.stateless {
            let message = Message {
                protocol: packet.protocol,
                source: packet.source,
                destination: packet.destination,
                header,
                mapping,
                quoted: false,
            };
            let lookup = self.look_up_message(packet, &message, journal);
            return self.translate(lookup, packet, Some(mapping), journal);
        }
        // Neighbour advertisements come here, too. PF takes them for errors with a senseless quote,
        // counts the reason, and lets the rules decide.
        match icmp_error::quoted(packet, self.rulebook.names_sctp_ports) {
            Ok(quoted) => {
                let lookup = self.look_up_quoted(packet, &quoted, journal);
                self.translate_error(lookup, packet, &quoted, journal)
            }
            Err(reason) => {
                journal.set_reason(reason);
                Lookup::None
            }
        }
    }

    /// Translates a packet of a translated flow. With a state, PF writes an id to each ICMP
    /// message, even to types without one.
    fn translate(
        &self,
        lookup: Lookup,
        packet: &mut Descriptor,
        mapping: Option<Mapping>,
        journal: &mut Journal,
    ) -> Lookup {
        let Lookup::Accepted(state) = lookup else { return lookup };
        let Some(ends) = self.states.get(state).ends_on_other_side(packet) else { return lookup };
        let id =
            mapping.map(|mapping| if mapping.reply { ends.destination.1 } else { ends.source.1 });
        if ends.family() == packet.family {
            translate::rewrite(packet, &ends, id);
            return lookup;
        }
        let crossed = cross::transport(packet, &ends, id);
        send_across(packet, ends, crossed, state, journal)
    }

    /// Translates an ICMP error about a packet of a translated flow.
    fn translate_error(
        &self,
        lookup: Lookup,
        packet: &mut Descriptor,
        quoted: &Quoted,
        journal: &mut Journal,
    ) -> Lookup {
        let Lookup::Accepted(state) = lookup else { return lookup };
        let Some(mut ends) = self.states.get(state).ends_on_other_side(packet) else {
            return lookup;
        };
        if ends.family() == packet.family {
            translate::rewrite_error(packet, quoted, &ends.opposite());
            return lookup;
        }
        let crossed = cross::error(packet, quoted, &ends, &self.world);
        cross::name_sender(&mut ends, packet);
        send_across(packet, ends, crossed, state, journal)
    }

    pub(crate) fn search(
        &mut self,
        packet: &Descriptor,
        key: Key,
        journal: &mut Journal,
    ) -> Option<StateId> {
        self.counters.status.searches += 1;
        let found = self.states.find(&key, packet.direction, &packet.interface);
        let found = found.filter(|id| !self.too_fast(packet, *id));
        journal.tracer.record(|| Stage::Searched { key, found });
        found
    }

    /// Returns true if a packet in the state's direction exceeds the `max-pkt-rate` of the state's
    /// rule. Such a packet finds no state, and the rules decide.
    fn too_fast(&mut self, packet: &Descriptor, id: StateId) -> bool {
        let state = self.states.get(id);
        state.direction == packet.direction
            && self.counters.too_fast(self.rulebook.at(state.rule), self.world.now)
    }

    fn look_up_flow(&mut self, packet: &mut Descriptor, journal: &mut Journal) -> Lookup {
        let (source_port, destination_port) = packet.ports();
        let source = (packet.source, source_port);
        let destination = (packet.destination, destination_port);
        let key = packet.key(packet.protocol, packet.direction, source, destination);
        let Some(id) = self.search(packet, key, journal) else {
            return Lookup::None;
        };
        let (state, now) = (self.states.get_mut(id), self.world.now);
        match &packet.transport {
            Transport::Tcp(segment) => {
                let segment = segment.clone();
                return self.track_tcp(packet, &segment, id, journal);
            }
            _ if packet.protocol == protocol::UDP => {
                others::track_udp(state, packet.direction, now)
            }
            _ => others::track_other(state, packet.direction, now),
        }
        Lookup::Accepted(id)
    }

    /// Returns a timeout of the state's rule in seconds, or else the global timeout.
    fn timeout_of(&self, id: StateId, class: Timeout) -> u32 {
        let rule = self.rulebook.at(self.states.get(id).rule);
        timeout::own_timeout(rule, class)
            .unwrap_or_else(|| self.ruleset.options.timeouts.get(class))
    }

    fn track_tcp(
        &mut self,
        packet: &mut Descriptor,
        segment: &Tcp,
        id: StateId,
        journal: &mut Journal,
    ) -> Lookup {
        if let Some(proxied) = self.proxy(packet, segment, id, journal) {
            if matches!(proxied, Lookup::Rejected(_)) {
                rejected(id, "does not continue the handshake with synproxy", journal);
            }
            return proxied;
        }
        let slack = self.timeout_of(id, Timeout::TcpTsdiff);
        let state = self.states.get_mut(id);
        match tcp::track(state, packet, segment, &self.world, slack) {
            Tracked::Connected if self.exceeds_connections(id) => {
                rejected(id, "too many connections of its source", journal);
                journal.set_reason(Reason::SrcLimit);
            }
            Tracked::Accepted | Tracked::Connected => return Lookup::Accepted(id),
            Tracked::Reopens => {
                self.states.get_mut(id).purge = true;
                journal.tracer.record(|| Stage::Reused(id));
                return Lookup::None;
            }
            Tracked::UnexpectedSyn => {
                rejected(id, "SYN on an open connection", journal);
                let (from, to) = self.states.get_mut(id).peers_mut(packet.direction);
                journal.reply(reply::challenge_ack(packet, segment, from, to, &self.world));
            }
            Tracked::Mismatch => {
                rejected(id, "outside the window", journal);
                journal.set_reason(Reason::StateMismatch);
            }
            Tracked::BadTimestamp => {
                rejected(id, "its timestamp does not follow the previous ones", journal);
                journal.set_reason(Reason::BadTimestamp);
            }
            Tracked::HandshakeMismatch => {
                rejected(id, "does not fit the handshake", journal);
                if !segment.has(tcp_flag::RST) {
                    let modulated = packet.tcp().unwrap_or(segment);
                    journal.reply(reply::handshake_rst(packet, modulated, &self.world));
                }
                journal.set_reason(Reason::StateMismatch);
            }
        }
        Lookup::Rejected(id)
    }

    /// Looks up the state of an ICMP query or of its answer.
    fn look_up_message(
        &mut self,
        packet: &Descriptor,
        message: &Message,
        journal: &mut Journal,
    ) -> Lookup {
        let mut lookup = self.look_up_message_from(packet, message, false, journal);
        let answer_to_all = packet.family == Family::Inet6 && message.mapping.reply;
        if answer_to_all && !matches!(lookup, Lookup::Accepted(_)) {
            // perhaps one node answers a query to all nodes
            match self.look_up_message_from(packet, message, true, journal) {
                Lookup::None => {}
                found => lookup = found,
            }
        }
        lookup
    }

    fn look_up_message_from(
        &mut self,
        packet: &Descriptor,
        message: &Message,
        from_all: bool,
        journal: &mut Journal,
    ) -> Lookup {
        let &Message { protocol, source, destination, header, mapping, quoted } = message;
        let addresses = icmp::key_addresses(protocol, header, source, destination, from_all);
        let Some((source, destination)) = addresses else {
            return Lookup::None;
        };
        let (source_port, destination_port) = mapping.ports();
        let direction = if quoted { packet.direction.opposite() } else { packet.direction };
        let (source, destination) = ((source, source_port), (destination, destination_port));
        let key = packet.key(protocol, direction, source, destination);
        let Some(id) = self.search(packet, key, journal) else {
            return Lookup::None;
        };
        let state = self.states.get_mut(id);
        let through = state.direction_of(packet);
        let forward = state.direction == if quoted { through.opposite() } else { through };
        if !state.sloppy && forward == mapping.reply {
            rejected(id, "query and answer have changed sides", journal);
            return Lookup::Rejected(id);
        }
        if !quoted {
            state.refresh(self.world.now, Timeout::IcmpError);
        }
        Lookup::Accepted(id)
    }

    /// Looks up the state of the packet that an ICMP error quotes. The error does not prolong the
    /// state.
    fn look_up_quoted(
        &mut self,
        packet: &mut Descriptor,
        quoted: &Quoted,
        journal: &mut Journal,
    ) -> Lookup {
        let (source_port, destination_port) = match &quoted.transport {
            QuotedTransport::Tcp { source_port, destination_port, .. }
            | QuotedTransport::Udp { source_port, destination_port }
            | QuotedTransport::Sctp { source_port, destination_port } => {
                (*source_port, *destination_port)
            }
            QuotedTransport::Icmp(header) => {
                let message = Message {
                    protocol: quoted.protocol,
                    source: quoted.source,
                    destination: quoted.destination,
                    header,
                    mapping: icmp::mapping(packet.family, header),
                    quoted: true,
                };
                return self.look_up_message(packet, &message, journal);
            }
            QuotedTransport::Other => (0, 0),
        };
        let source = (quoted.source, source_port);
        let destination = (quoted.destination, destination_port);
        // the quoted packet went in the opposite direction
        let direction = packet.direction.opposite();
        let key = packet.key(quoted.protocol, direction, source, destination);
        let Some(id) = self.search(packet, key, journal) else {
            return Lookup::None;
        };
        if let QuotedTransport::Tcp { seq, .. } = quoted.transport {
            let state = self.states.get_mut(id);
            if !icmp_error::fits_connection(state, packet, seq) {
                rejected(id, "the quoted segment is outside the window", journal);
                journal.set_reason(Reason::StateMismatch);
                return Lookup::Rejected(id);
            }
            let (_, sender) = state.peers_mut(state.direction_of(packet));
            modulate::quoted(packet, quoted.offset, sender);
        }
        Lookup::Accepted(id)
    }
}

/// Accepts a packet that crosses families, or rejects it if the other family lacks its message.
fn send_across(
    packet: &mut Descriptor,
    ends: Ends,
    crossed: Result<(), Untranslatable>,
    state: StateId,
    journal: &mut Journal,
) -> Lookup {
    match crossed {
        Ok(()) => {
            packet.crosses_to = Some(ends);
            Lookup::Accepted(state)
        }
        Err(Untranslatable) => {
            rejected(state, "there is no such ICMP message in the other family", journal);
            Lookup::Rejected(state)
        }
    }
}

fn rejected(state: StateId, reason: &'static str, journal: &mut Journal) {
    journal.tracer.record(|| Stage::Rejected { state, reason });
}
