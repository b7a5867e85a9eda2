//! The criteria of a rule, and their form in pf.conf.

use super::address::Hosts;
use super::connection::Connection;
use super::hook::Hook;
use crate::ranges::{PORT, Ranges};
use crate::words::{self, TCP, UDP};

/// Protocol number of ICMP.
const ICMP: u32 = 1;
const SYN: u8 = 0x02;
const ACK: u8 = 0x10;

/// A group of ICMP types.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum IcmpTypes {
    /// Queries, which begin a connection: echo, timestamp, information, mask.
    Questions,
    /// Answers to queries, and errors.
    Answers,
}

impl IcmpTypes {
    fn numbers(self) -> &'static [u8] {
        match self {
            IcmpTypes::Questions => &[8, 13, 15, 17],
            IcmpTypes::Answers => &[0, 3, 4, 5, 11, 12, 14, 16, 18],
        }
    }
}

/// The criteria of a rule. `None` matches every packet.
#[derive(Debug, Clone, Default)]
pub struct Criteria {
    /// `-p`
    pub protocol: Option<u32>,
    /// `-s`, `--src-range`, `--src-type`
    pub source: Hosts,
    /// `-d`, `--dst-range`, `--dst-type`
    pub destination: Hosts,
    /// `-i`
    pub in_interface: Option<Interface>,
    /// `-o`
    pub out_interface: Option<Interface>,
    source_ports: Option<Ranges>,
    destination_ports: Option<Ranges>,
    /// `--ports`: ports of which the source or the destination has one
    pub either_ports: Option<Ranges>,
    /// `--tcp-flags`
    pub flags: Option<TcpFlags>,
    /// `--icmp-type`: type and code
    pub icmp: Option<(u8, Option<u8>)>,
    icmp_types: Option<IcmpTypes>,
    /// `--ctstate`
    pub connection: Option<Connection>,
    /// `--dscp`, as the whole TOS byte
    pub tos: Option<u8>,
    /// `--limit`: packets and seconds
    pub rate: Option<(u32, u32)>,
    /// `--probability`, in percent
    pub probability: Option<String>,
    /// `--uid-owner`, in the notation of pf's `user`
    pub user: Option<String>,
    /// `--gid-owner`, in the notation of pf's `group`
    pub group: Option<String>,
}

/// An interface criterion: `-i NAME`, `! -i NAME`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interface {
    /// Name of the interface.
    pub name: String,
    /// True if every other interface matches.
    pub negated: bool,
}

/// A criterion on TCP flags: `--tcp-flags MASK VALUE`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TcpFlags {
    /// Flags that are compared.
    pub mask: u8,
    /// Flags of the mask that must be set.
    pub value: u8,
    /// True if every other combination matches.
    pub negated: bool,
}

/// The criteria of a pf.conf rule, in two parts between which other words may be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Condition {
    /// ` on IF`
    pub on: String,
    /// ` inet proto …` and everything behind
    pub rest: String,
}

impl Criteria {
    /// Restricts source ports to `set`.
    pub fn narrow_source_ports(&mut self, set: Ranges) {
        narrow(&mut self.source_ports, set);
    }

    /// Restricts destination ports to `set`.
    pub fn narrow_destination_ports(&mut self, set: Ranges) {
        narrow(&mut self.destination_ports, set);
    }

    /// True if every packet matches.
    pub fn is_empty(&self) -> bool {
        let Criteria { source, destination, .. } = self;
        source.is_any()
            && destination.is_any()
            && self.conditions_besides_addresses() == 0
            && self.connection.is_none()
    }

    /// True if every packet of these connections matches.
    pub fn is_only_about_connections(&self) -> bool {
        Criteria { connection: None, ..self.clone() }.is_empty()
    }

    fn conditions_besides_addresses(&self) -> usize {
        [
            self.protocol.is_some(),
            self.in_interface.is_some(),
            self.out_interface.is_some(),
            self.source_ports.is_some(),
            self.destination_ports.is_some(),
            self.either_ports.is_some(),
            self.flags.is_some(),
            self.icmp.is_some(),
            self.icmp_types.is_some(),
            self.tos.is_some(),
            self.rate.is_some(),
            self.probability.is_some(),
            self.user.is_some(),
            self.group.is_some(),
        ]
        .into_iter()
        .filter(|&there| there)
        .count()
    }

    /// True if two identical packets may be treated differently.
    pub fn is_of_chance(&self) -> bool {
        self.rate.is_some() || self.probability.is_some()
    }

    /// Returns a message about criteria that pf.conf cannot express, or `None`.
    pub fn inexpressible(&self) -> Option<&'static str> {
        let ports = [&self.source_ports, &self.destination_ports, &self.either_ports];
        if ports.iter().any(|ports| ports.is_some()) && !matches!(self.protocol, Some(TCP | UDP)) {
            return Some("ports of other protocols than tcp and udp have no equivalent");
        }
        if self.flags.is_some() && self.protocol != Some(TCP) {
            return Some("flags need -p tcp");
        }
        if self.icmp.is_some() && self.protocol != Some(ICMP) {
            return Some("types of ICMP need -p icmp");
        }
        if (self.user.is_some() || self.group.is_some())
            && !matches!(self.protocol, Some(TCP | UDP))
        {
            return Some("pf matches owners of tcp and udp only: add -p");
        }
        if self.source.is_mixed() || self.destination.is_mixed() {
            return Some(
                "--src-type or --dst-type LOCAL together with addresses has no equivalent",
            );
        }
        None
    }

    /// Returns rules that pf.conf can express and that together match the same packets. No packet
    /// matches two of them.
    pub fn variants(&self) -> Vec<Criteria> {
        let mut variants = vec![self.clone()];
        if let Some(ports) = &self.either_ports {
            let mut source = Criteria { either_ports: None, ..self.clone() };
            let mut destination = source.clone();
            source.narrow_source_ports(ports.clone());
            destination.narrow_source_ports(ports.complement(PORT));
            destination.narrow_destination_ports(ports.clone());
            variants = vec![source, destination];
        }
        if let Some(flags) = self.flags.filter(|flags| flags.negated) {
            variants = product(&variants, &other_flags(flags), |criteria, flags| {
                criteria.flags = Some(*flags);
            });
        }
        variants
    }

    /// Restricts the criteria to packets that begin a connection. Returns `None` if none does.
    pub fn beginning(&self) -> Option<Criteria> {
        match self.protocol {
            Some(TCP) => {
                let TcpFlags { mask, value, .. } = self.flags.unwrap_or_default();
                let cannot = (value ^ SYN) & mask & (SYN | ACK) != 0;
                (!cannot).then(|| self.with_flags(value | SYN, mask | SYN | ACK))
            }
            Some(ICMP) => match self.icmp {
                None => Some(self.with_icmp(IcmpTypes::Questions)),
                Some((kind, _)) if IcmpTypes::Questions.numbers().contains(&kind) => {
                    Some(self.clone())
                }
                Some(_) => None,
            },
            _ => Some(self.clone()),
        }
    }

    /// True if some matching packets may neither begin a connection nor belong to one.
    pub fn may_be_invalid(&self) -> bool {
        match (self.protocol, self.icmp) {
            (None | Some(TCP), _) | (Some(ICMP), None) => true,
            (Some(ICMP), Some((kind, _))) => !IcmpTypes::Questions.numbers().contains(&kind),
            _ => false,
        }
    }

    /// Restricts the criteria to packets that neither begin a connection nor belong to one.
    pub fn invalid(&self) -> Vec<Criteria> {
        let mut variants = Vec::new();
        if self.protocol.is_none_or(|protocol| protocol == TCP) {
            match self.flags {
                Some(_) => variants.push(self.clone()),
                None => {
                    variants.push(self.with_flags(0, SYN));
                    variants.push(self.with_flags(SYN | ACK, SYN | ACK));
                }
            }
        }
        if self.protocol.is_none_or(|protocol| protocol == ICMP) {
            match self.icmp {
                Some(_) => variants.push(self.clone()),
                None => variants.push(self.with_icmp(IcmpTypes::Answers)),
            }
        }
        variants
    }

    /// Returns the criteria with this criterion on connections.
    pub fn with_connection(&self, connection: Connection) -> Criteria {
        Criteria { connection: Some(connection), ..self.clone() }
    }

    fn with_flags(&self, value: u8, mask: u8) -> Criteria {
        let flags = Some(TcpFlags { mask, value, negated: false });
        Criteria { protocol: Some(TCP), flags, ..self.clone() }
    }

    fn with_icmp(&self, types: IcmpTypes) -> Criteria {
        Criteria { protocol: Some(ICMP), icmp_types: Some(types), ..self.clone() }
    }

    /// Returns the criteria in pf.conf at `hook`, or `None` if no packet there can match.
    pub fn condition(&self, hook: Hook) -> Option<Condition> {
        let received = |interface: &Option<Interface>| match interface {
            Some(Interface { name, negated }) => {
                let not = if *negated { "! " } else { "" };
                format!("{not}received-on {}", words::interface(name))
            }
            None => String::new(),
        };
        let on = |interface: &Option<Interface>| match interface {
            Some(Interface { name, negated }) => {
                format!(" on {}{}", if *negated { "! " } else { "" }, words::interface(name))
            }
            None => String::new(),
        };
        let impossible = |interface: &Option<Interface>| {
            interface.as_ref().is_some_and(|interface| !interface.negated)
        };
        let (on, received) = match hook {
            Hook::Input | Hook::Prerouting if impossible(&self.out_interface) => return None,
            Hook::Input | Hook::Prerouting => (on(&self.in_interface), String::new()),
            Hook::Forward => (on(&self.out_interface), received(&self.in_interface)),
            _ if impossible(&self.in_interface) => return None,
            _ => (on(&self.out_interface), String::new()),
        };
        let received = if received.is_empty() { received } else { format!(" {received}") };
        let empty = |set: &Option<Ranges>| set.as_ref().is_some_and(Ranges::is_empty);
        if self.source.set.is_empty()
            || self.destination.set.is_empty()
            || empty(&self.source_ports)
            || empty(&self.destination_ports)
            || self.flags.is_some_and(|flags| flags.value & !flags.mask != 0)
        {
            return None;
        }
        let protocol =
            self.protocol.map_or(String::new(), |number| words::protocols(&Ranges::one(number)));
        let options = self.options();
        let rest = format!(" inet{protocol}{}{options}{received}{}", self.ends(), hook.origin());
        Some(Condition { on, rest })
    }

    fn ends(&self) -> String {
        let ports = |set: &Option<Ranges>| set.as_ref().map_or(String::new(), words::ports);
        let from = self.source.text() + &ports(&self.source_ports);
        let to = self.destination.text() + &ports(&self.destination_ports);
        match (from.as_str(), to.as_str()) {
            ("any", "any") => " all".to_string(),
            _ => format!(" from {from} to {to}"),
        }
    }

    fn options(&self) -> String {
        let mut text = String::new();
        if let Some(flags) = self.flags.filter(|flags| flags.mask != 0) {
            text += &words::flags(flags.value, flags.mask);
        }
        if let Some((kind, code)) = self.icmp {
            text += &format!(" icmp-type {kind}");
            text += &code.map_or(String::new(), |code| format!(" code {code}"));
        }
        if let Some(types) = self.icmp_types {
            let numbers: Vec<String> = types.numbers().iter().map(u8::to_string).collect();
            text += &format!(" icmp-type {{ {} }}", numbers.join(", "));
        }
        let named = [
            ("user", self.user.clone()),
            ("group", self.group.clone()),
            ("tos", self.tos.map(|tos| format!("0x{tos:02x}"))),
            ("max-pkt-rate", self.rate.map(|(count, seconds)| format!("{count}/{seconds}"))),
            ("probability", self.probability.as_ref().map(|percent| format!("{percent}%"))),
        ];
        for (name, value) in named {
            text += &value.map_or(String::new(), |value| format!(" {name} {value}"));
        }
        text
    }

    /// Returns the number of rules that pf expands the lists to.
    pub fn rules(&self) -> usize {
        use crate::ranges::ADDRESS;
        let ports = |set: &Option<Ranges>| {
            set.as_ref().map_or(1, |set| words::rules_for(set, PORT)) as usize
        };
        let hosts = |hosts: &Hosts| words::rules_for(&hosts.set, ADDRESS) as usize;
        [
            ports(&self.source_ports),
            ports(&self.destination_ports),
            hosts(&self.source),
            hosts(&self.destination),
            self.icmp_types.map_or(1, |types| types.numbers().len()),
        ]
        .into_iter()
        .fold(1, usize::saturating_mul)
    }
}

fn narrow(ports: &mut Option<Ranges>, set: Ranges) {
    let set = match ports.take() {
        Some(before) => before.intersection(&set),
        None => set,
    };
    *ports = Some(set);
}

/// Returns each of `variants` with each of the changes.
fn product<T>(variants: &[Criteria], ways: &[T], change: fn(&mut Criteria, &T)) -> Vec<Criteria> {
    let pairs = variants.iter().flat_map(|variant| ways.iter().map(move |way| (variant, way)));
    pairs
        .map(|(variant, way)| {
            let mut variant = variant.clone();
            change(&mut variant, way);
            variant
        })
        .collect()
}

/// Returns all combinations of flags but one, each once. The first differs in the first flag, the
/// second agrees there and differs in the second flag, and so on.
fn other_flags(flags: TcpFlags) -> Vec<TcpFlags> {
    if flags.value & !flags.mask != 0 {
        return vec![TcpFlags { mask: 0, value: 0, negated: false }];
    }
    let mut alike = 0;
    let mut others = Vec::new();
    for bit in (0..8).map(|n| 1u8 << n).filter(|bit| flags.mask & bit != 0) {
        let mask = alike | bit;
        others.push(TcpFlags {
            mask,
            value: (flags.value & alike) | (!flags.value & bit),
            negated: false,
        });
        alike = mask;
    }
    others
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_flags_are_all_others_and_each_once() {
        for mask in 0..64u8 {
            for value in (0..64).filter(|value| value & !mask == 0) {
                let others = other_flags(TcpFlags { mask, value, negated: true });
                for packet in 0..64 {
                    let matching = others.iter().filter(|f| packet & f.mask == f.value).count();
                    assert_eq!(matching, usize::from(packet & mask != value), "{mask:x} {value:x}");
                }
            }
        }
    }
}
