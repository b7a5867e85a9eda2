//! Translation: new addresses and ports of a packet by rules, and the rewritten packet
//! (pf-semantics sections 10 and 11).

use std::net::IpAddr;

use skipstep_ruleset::{AfTo, Family, LegacyKind, PoolKind, PoolPorts, Ports};
use skipstep_wire::protocol;

use crate::af_to;
use crate::endpoint::Endpoint;
use crate::evaluation::{Context, Question};
use crate::icmp::{self, Mapping};
use crate::icmp_error::{Quoted, QuotedTransport};
use crate::key::{Ends, Key};
use crate::packet::{Descriptor, Transport};
use crate::patch::Checksum;
use crate::pool::{self, Pools};
use crate::pool_inputs::{Purpose, RulePool};
use crate::port::{self, Flow, Found, Search};
use crate::rulebook::Entry;

impl Ends {
    /// Returns the pairs of a packet as it came.
    pub(crate) fn from_packet(packet: &Descriptor, mapping: Option<Mapping>) -> Self {
        let (source_port, destination_port) =
            mapping.map_or_else(|| packet.ports(), |mapping| mapping.ports());
        Ends {
            source: (packet.source, source_port),
            destination: (packet.destination, destination_port),
        }
    }

    /// Returns the key of the state of `packet` with these pairs.
    pub(crate) fn key(&self, packet: &Descriptor) -> Key {
        let Ends { mut source, mut destination } = *self;
        if self.family() != packet.family {
            let protocol = af_to::other_protocol(packet.protocol);
            let crossed = packet.direction.opposite();
            return Key::new(packet.rdomain, self.family(), protocol, crossed, source, destination);
        }
        if let Some(message) = packet.icmp()
            && let Some((from, to)) =
                icmp::key_addresses(packet.protocol, message, source.0, destination.0, false)
        {
            (source.0, destination.0) = (from, to);
        }
        packet.key(packet.protocol, packet.direction, source, destination)
    }
}

/// The translation by the rules that matched so far.
#[derive(Debug)]
pub(crate) struct Translation<'r> {
    /// Addresses and ports that the next rule compares.
    pub ends: Ends,
    /// Rule whose pool chose the source.
    pub nat: Option<&'r Entry>,
    /// Rule whose pool chose the destination.
    pub rdr: Option<&'r Entry>,
    /// Last rule that translated.
    last: Option<&'r Entry>,
}

/// A request for a new source.
#[derive(Clone, Copy)]
struct Wanted<'a> {
    of: RulePool<'a>,
    /// Family of the new address.
    family: Family,
    question: &'a Question<'a, 'a>,
}

/// Error: no address or no port is left.
pub(crate) struct Exhausted;

impl<'r> Translation<'r> {
    pub fn new(question: &Question) -> Self {
        let ends = Ends::from_packet(question.packet, question.mapping);
        Translation { ends, nat: None, rdr: None, last: None }
    }

    /// Translates by a matching rule.
    ///
    /// # Errors
    ///
    /// Fails if a pool has no address or no free port left, or if `af-to` cannot convert the
    /// destination.
    pub fn apply(
        &mut self,
        rule: &'r Entry,
        question: &Question,
        context: &mut Context,
    ) -> Result<(), Exhausted> {
        if let Some(af_to) = &rule.af_to {
            return self.cross(rule, af_to, question, context);
        }
        if let Some(of) = pool_of(rule, Purpose::Nat) {
            let family = question.packet.family;
            let chosen = self.new_source(of, family, question, context)?;
            self.forget((Purpose::Nat, self.ends.source.0), question, context.pools);
            (self.nat, self.last) = (Some(rule), Some(rule));
            self.ends.source = chosen;
        }
        if let Some(of) = pool_of(rule, Purpose::Rdr) {
            let chosen = self.new_destination(of, question, context)?;
            self.forget((Purpose::Rdr, self.ends.destination.0), question, context.pools);
            (self.rdr, self.last) = (Some(rule), Some(rule));
            self.ends.destination = chosen;
        }
        Ok(())
    }

    /// Translates to the other family, for `af-to`.
    fn cross(
        &mut self,
        rule: &'r Entry,
        af_to: &AfTo,
        question: &Question,
        context: &mut Context,
    ) -> Result<(), Exhausted> {
        let of = |purpose| pool_of(rule, purpose);
        let from = of(Purpose::Nat).ok_or(Exhausted)?;
        let source = self.new_source(from, af_to.family, question, context)?;
        let mut chosen = None;
        if let Some(to) = of(Purpose::Rdr) {
            let inputs = question.pool_inputs();
            let address = context.choose(to, inputs, af_to.family, source.0, None);
            chosen = Some(address.ok_or(Exhausted)?.address);
        }
        let (destination, port) = self.ends.destination;
        let port = match question.packet.keeps_ports() {
            true => port,
            false => af_to::destination_port(question.packet.protocol, port, af_to.to.as_ref()),
        };
        let destination = match (source.0, destination) {
            (IpAddr::V4(_), IpAddr::V6(packet)) => {
                af_to::to_inet(packet, rule, af_to, chosen).ok_or(Exhausted)?.into()
            }
            (IpAddr::V6(own), IpAddr::V4(packet)) => {
                af_to::to_inet6(packet, rule, af_to, own, chosen).into()
            }
            _ => return Err(Exhausted),
        };
        self.nat = Some(rule);
        self.rdr = af_to.to.as_ref().map(|_| rule);
        self.ends = Ends { source, destination: (destination, port) };
        Ok(())
    }

    /// Returns an address of the pool with a free port. For a packet that crosses families, PF
    /// looks up the packet's own destination in the new family, so each port is free.
    // Differs from OpenBSD: linux.md, "Source ports"
    fn new_source(
        &self,
        of: RulePool,
        family: Family,
        question: &Question,
        context: &mut Context,
    ) -> Result<(IpAddr, u16), Exhausted> {
        let inside = Endpoint {
            rdomain: question.packet.rdomain,
            end: Ends::from_packet(question.packet, question.mapping).source,
        };
        let maps = of.pool.endpoint_independent && question.packet.protocol == protocol::UDP;
        if maps && let Some(outside) = context.endpoints.take_reference(inside) {
            if of.pool.kind == PoolKind::LeastStates {
                context.pools.count(of, question.pool_inputs(), family, outside.0, 1);
            }
            return Ok(outside);
        }
        let end = self.search(Wanted { of, family, question }, context).ok_or(Exhausted)?;
        if maps {
            context.endpoints.insert(inside, Endpoint { end, ..inside });
        }
        Ok(end)
    }

    /// Searches a source for an endpoint without a mapping: ports in OpenBSD's order, then at
    /// random.
    fn search(&self, wanted: Wanted, context: &mut Context) -> Option<(IpAddr, u16)> {
        let Wanted { of, family, question } = wanted;
        let mut search = Search::new(of.pool.ports);
        let mut address = None;
        let mut sets = port::sets(of.pool.ports, question.world).peekable();
        while let Some(ports) = sets.next() {
            let end = self.search_in_order(&mut search, &mut address, ports, wanted, context);
            if end.is_some() {
                return end;
            }
            if sets.peek().is_none() || search.order_is_exhausted() {
                break;
            }
        }
        let source = af_to::read_as(family, self.ends.source.0);
        while search.begins_random() {
            let ports = search.draw_range(of.pool.ports, question.world);
            if chooses_again(&of.pool.kind) {
                let inputs = question.pool_inputs();
                let chosen = context.choose(of, inputs, family, source, Some(&mut None))?;
                address = Some(chosen.address);
            }
            let address = address?;
            let found = self.port(&mut search, address, ports, wanted, context);
            if let Found::Port(port) = found {
                return Some((address, port));
            }
        }
        None
    }

    /// Searches the ports of one range in order. Sets `last` to the address that it tried last.
    fn search_in_order(
        &self,
        search: &mut Search,
        last: &mut Option<IpAddr>,
        ports: PoolPorts,
        wanted: Wanted,
        context: &mut Context,
    ) -> Option<(IpAddr, u16)> {
        let Wanted { of, family, question } = wanted;
        let several = chooses_again(&of.pool.kind);
        let source = af_to::read_as(family, self.ends.source.0);
        let mut first = None;
        let mut again = false;
        loop {
            let chosen =
                context.choose(of, question.pool_inputs(), family, source, Some(&mut first))?;
            // a search that began with the remembered address of the source ends at the next one,
            // untested
            let address =
                Some(chosen.address).filter(|address| !again || first != Some(*address))?;
            *last = Some(address);
            again = true;
            search.in_order(several && first.is_some());
            match self.port(search, address, ports, wanted, context) {
                Found::Port(port) => return Some((address, port)),
                Found::Taken if !several || search.order_is_exhausted() => return None,
                Found::Taken => {}
            }
        }
    }

    /// Searches a free port of one address.
    fn port(
        &self,
        search: &mut Search,
        address: IpAddr,
        ports: PoolPorts,
        wanted: Wanted,
        context: &mut Context,
    ) -> Found {
        let Wanted { of, family, question } = wanted;
        let (destination, port) = self.ends.destination;
        let destination = (af_to::read_as(family, destination), port);
        let source = (address, self.ends.source.1);
        let &Descriptor { rdomain, protocol, direction, .. } = question.packet;
        let key = Key::new(rdomain, family, protocol, direction, source, destination);
        let (interface, legacy) = (&question.packet.interface, of.rule.legacy.is_some());
        let Context { states, endpoints, counters, .. } = context;
        let mapped = of.pool.endpoint_independent && protocol == protocol::UDP;
        let endpoints = mapped.then_some(&**endpoints);
        let flow = Flow { key, direction, interface, legacy, endpoints };
        port::search(search, &flow, ports, states, question.world, counters)
    }

    fn new_destination(
        &self,
        of: RulePool,
        question: &Question,
        context: &mut Context,
    ) -> Result<(IpAddr, u16), Exhausted> {
        let Ends { source, destination } = self.ends;
        let (family, inputs) = (question.packet.family, question.pool_inputs());
        // `binat` keeps the host bits of the replaced address, also in a network of an interface
        let binat = of.rule.legacy == Some(LegacyKind::Binat);
        let bits_of = if binat { destination.0 } else { source.0 };
        let chosen = context.choose(of, inputs, family, bits_of, None).ok_or(Exhausted)?;
        let mut address = chosen.address;
        if of.pool.kind == PoolKind::Bitmask {
            // the pool used the host bits of the source, but needs the destination's
            address = pool::with_host_bits(&of.pool.address, address, destination.0);
        }
        let port = match question.packet.keeps_ports() {
            true => destination.1,
            false => redirected(destination.1, of.pool.ports, of.rule.destination.ports),
        };
        Ok((address, port))
    }

    /// Releases the address that an earlier rule chose. PF only remembers the last rule that
    /// translated, so only that rule's address is released.
    fn forget(
        &self,
        (purpose, address): (Purpose, IpAddr),
        question: &Question,
        pools: &mut Pools,
    ) {
        let Some(of) = self.last.and_then(|last| pool_of(last, purpose)) else {
            return;
        };
        if of.pool.kind == PoolKind::LeastStates {
            pools.count(of, question.pool_inputs(), question.packet.family, address, -1);
        }
    }
}

/// Returns the pool of a rule for a purpose, `None` without one.
pub(crate) fn pool_of(rule: &Entry, purpose: Purpose) -> Option<RulePool<'_>> {
    let pool = match (&rule.af_to, purpose) {
        (Some(af_to), Purpose::Nat) => Some(&af_to.from),
        (Some(af_to), Purpose::Rdr) => af_to.to.as_ref(),
        (None, Purpose::Nat) => rule.nat.as_deref(),
        (None, Purpose::Rdr) => rule.rdr.as_deref(),
        (_, Purpose::Route) => rule.route.as_ref().map(|route| &route.pool),
    };
    Some(RulePool { pool: pool?, purpose, rule })
}

/// Returns true if the pool can choose another address when the ports of one are taken.
fn chooses_again(kind: &PoolKind) -> bool {
    matches!(kind, PoolKind::Random | PoolKind::RoundRobin | PoolKind::LeastStates)
}

/// Returns the port that `rdr-to` maps a packet's port to. The position in the rule's range is the
/// position in the new range.
fn redirected(port: u16, new: PoolPorts, sought: Option<Ports>) -> u16 {
    let PoolPorts::Range(low, high) = new else {
        return port;
    };
    let first = sought.map_or(0, |ports| ports.low);
    let span = i32::from(high.wrapping_sub(low).wrapping_add(1)).max(1);
    let place = (i32::from(port) - i32::from(first)) % span + i32::from(low);
    let wrapped = if place as u32 > 65535 { (place as u32 - 65535) as u16 } else { place as u16 };
    if wrapped == 0 { port } else { wrapped }
}

/// Writes addresses and ports to a packet, and `icmp_id` to an ICMP message that has an id.
pub(crate) fn rewrite(packet: &mut Descriptor, ends: &Ends, icmp_id: Option<u16>) {
    let sum = transport_checksum(packet);
    let at = packet.offset;
    match &packet.transport {
        Transport::Tcp(_) | Transport::Udp { .. } => {
            sum.replace(&mut packet.bytes, at, ends.source.1.to_be_bytes());
            sum.replace(&mut packet.bytes, at + 2, ends.destination.1.to_be_bytes());
        }
        Transport::Icmp(_) | Transport::Icmp6(_) => {
            if let Some(id) = icmp_id {
                sum.replace(&mut packet.bytes, at + 4, id.to_be_bytes());
            }
        }
        Transport::Sctp { .. } | Transport::Fragment | Transport::Other => {}
    }
    rewrite_address(packet, SOURCE, ends.source.0);
    rewrite_address(packet, DESTINATION, ends.destination.0);
}

/// Writes the addresses and ports before translation to the packet that an ICMP error quotes. The
/// addresses of the error itself change accordingly. Quoted checksums stay, except that of UDP,
/// which becomes 0.
pub(crate) fn rewrite_error(packet: &mut Descriptor, quoted: &Quoted, ends: &Ends) {
    let (source_port, destination_port) = match &quoted.transport {
        QuotedTransport::Tcp { source_port, destination_port, .. }
        | QuotedTransport::Udp { source_port, destination_port } => {
            let (at, ports) = (quoted.offset, (*source_port, *destination_port));
            (Some((at, ports.0, ends.source.1)), Some((at + 2, ports.1, ends.destination.1)))
        }
        QuotedTransport::Icmp(message) => {
            let mapping = icmp::mapping(packet.family, message);
            let id = if mapping.reply { ends.destination.1 } else { ends.source.1 };
            (mapping.is_echo(packet.family).then_some((quoted.offset + 4, message.id, id)), None)
        }
        QuotedTransport::Sctp { .. } | QuotedTransport::Other => (None, None),
    };
    rewrite_quoted(packet, quoted, SOURCE, ends.source.0, source_port);
    rewrite_quoted(packet, quoted, DESTINATION, ends.destination.0, destination_port);
    if matches!(quoted.transport, QuotedTransport::Udp { .. }) {
        let sum = transport_checksum(packet);
        sum.replace(&mut packet.bytes, quoted.offset + 6, [0, 0]);
    }
}

/// Writes one quoted address and its port (offset, old and new number), and the address to the
/// opposite field of the error.
fn rewrite_quoted(
    packet: &mut Descriptor,
    quoted: &Quoted,
    end: End,
    new: IpAddr,
    port: Option<(usize, u16, u16)>,
) {
    let old = if end == SOURCE { quoted.source } else { quoted.destination };
    if old == new && port.is_none_or(|(_, old, new)| old == new) {
        return;
    }
    let sum = transport_checksum(packet);
    if let Some((at, _, new)) = port {
        sum.replace(&mut packet.bytes, at, new.to_be_bytes());
    }
    let at = quoted.at + end.offset(packet.family);
    sum.replace_block(&mut packet.bytes, at, &octets(new));
    rewrite_address(packet, end.other(), new);
}

fn rewrite_address(packet: &mut Descriptor, end: End, new: IpAddr) {
    let (at, new) = (end.offset(packet.family), octets(new));
    if packet.bytes[at..at + new.len()] == new[..] {
        return;
    }
    if has_pseudo_header(packet) {
        let sum = transport_checksum(packet);
        sum.correct(&mut packet.bytes, at, &new);
    }
    match packet.family {
        Family::Inet => Checksum::IPV4_HEADER.replace_block(&mut packet.bytes, at, &new),
        Family::Inet6 => packet.bytes[at..at + new.len()].copy_from_slice(&new),
    }
}

/// One of the two addresses of an IP header.
#[derive(Clone, Copy, PartialEq, Eq)]
struct End(usize);

const SOURCE: End = End(0);
const DESTINATION: End = End(1);

impl End {
    fn other(self) -> Self {
        End(1 - self.0)
    }

    /// Returns the offset of the address in the header, in bytes.
    fn offset(self, family: Family) -> usize {
        match family {
            Family::Inet => 12 + self.0 * 4,
            Family::Inet6 => 8 + self.0 * 16,
        }
    }
}

pub(crate) fn octets(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(v4) => v4.octets().to_vec(),
        IpAddr::V6(v6) => v6.octets().to_vec(),
    }
}

pub(crate) fn transport_checksum(packet: &Descriptor) -> Checksum {
    match &packet.transport {
        Transport::Tcp(_) => Checksum::at(packet.offset + 16),
        Transport::Udp { .. } => Checksum::of_udp(packet.offset + 6),
        Transport::Icmp(_) | Transport::Icmp6(_) => Checksum::at(packet.offset + 2),
        // the checksum of SCTP covers neither addresses nor other fields that change
        Transport::Sctp { .. } | Transport::Fragment | Transport::Other => Checksum::NONE,
    }
}

/// Returns true if the checksum covers the addresses, too.
fn has_pseudo_header(packet: &Descriptor) -> bool {
    !matches!(packet.transport, Transport::Icmp(_))
}

#[cfg(test)]
mod tests {
    use super::*;
    use skipstep_ruleset::PortMatch;

    #[test]
    fn a_range_of_ports_keeps_the_order() {
        let sought = |low, high| Some(Ports { op: PortMatch::Range, low, high });
        let to = |low, high| PoolPorts::Range(low, high);
        for (port, new, sought, expected) in [
            (80, PoolPorts::Default, None, 80),
            (80, to(8080, 8080), None, 8080),
            (2005, to(4000, 4009), sought(2000, 2009), 4005),
            (2015, to(4000, 4009), sought(2000, 2019), 4005),
            (5, to(65530, 65535), sought(0, 10), 65535),
            (70, to(65535, 5), sought(60, 80), 3),
        ] {
            assert_eq!(redirected(port, new, sought), expected, "{port} {new:?}");
        }
    }
}
