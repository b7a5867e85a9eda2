//! Parses `from` and `to`: hosts and ports (pf-features section 4).

use std::net::IpAddr;

use skipstep_ruleset::{PortMatch, Ports};

use super::options::OPTIONS;
use super::rule::did_you_mean;
use super::{LONGEST_INTERFACE, Parse, Parser};
use crate::ast::{Address, Host, Peer};
use crate::diagnostics::Severity;
use crate::resolve::{self, Modifiers};
use crate::table::LONGEST_NAME;
use crate::token::{Place, TokenKind};

/// Reserved words that may follow a host, in addition to the first words of options.
#[rustfmt::skip]
const AFTER_HOST: [&str; 15] = [
    "any", "bitmask", "least-states", "no-route", "os", "port", "random", "round-robin", "route",
    "source-hash", "static-port", "sticky-address", "to", "urpf-failed", "weight",
];

/// Words that may follow a host in a legacy `scrub` rule, in addition to [`AFTER_HOST`].
const AFTER_HOST_OF_SCRUB: [&str; 5] = ["max-mss", "min-ttl", "no-df", "random-id", "reassemble"];

/// Most bytes of a route label.
const LONGEST_ROUTE_LABEL: usize = 31;

/// Hosts of a specification; `None` for `any`.
type Hosts = Option<Vec<Host>>;

/// A port, or two ports with a colon between them.
#[derive(Clone, Copy)]
enum PortRange {
    One(u16),
    Two(u16, u16),
}

impl Parser<'_> {
    /// Parses `all`, or `from ... os ... to ...`, all parts of which are optional.
    pub(super) fn ends(&mut self) -> Parse<(Peer, Vec<String>, Peer)> {
        if self.accept("all") {
            return Ok((Peer::default(), Vec::new(), Peer::default()));
        }
        let source = if self.accept("from") { self.peer()? } else { Peer::default() };
        let systems = if self.accept("os") { self.list(Self::string)? } else { Vec::new() };
        if !self.accept("to") {
            return Ok((source, systems, Peer::default()));
        }
        let place = self.place();
        let destination = self.peer()?;
        if destination.hosts.iter().any(|host| host.address == Address::UrpfFailed) {
            return self
                .error_at("\"urpf-failed\" is not permitted in a destination address", place);
        }
        Ok((source, systems, destination))
    }

    fn peer(&mut self) -> Parse<Peer> {
        let mut peer = Peer::default();
        if !self.at_keyword("port") {
            peer.hosts = self.hosts()?.unwrap_or_default();
        }
        if self.accept("port") {
            peer.ports = self.list(Self::port)?;
        }
        Ok(peer)
    }

    /// Parses `any`, a host, or a list that may contain lists. `any` in a list makes the whole list
    /// `any`.
    fn hosts(&mut self) -> Parse<Hosts> {
        if self.accept("any") {
            return Ok(None);
        }
        if self.accept_sign('!') {
            return self.negated().map(Some);
        }
        if !self.at_sign('{') {
            return self.host().map(Some);
        }
        let parts =
            self.list(|parser| if parser.at_sign('{') { parser.nested() } else { parser.hosts() })?;
        Ok(parts.into_iter().collect::<Option<Vec<_>>>().map(|parts| parts.concat()))
    }

    /// Parses a list in a list. The depth is limited so that no text can exhaust the stack.
    fn nested(&mut self) -> Parse<Hosts> {
        if self.depth == 64 {
            return self.syntax_error();
        }
        self.depth += 1;
        let hosts = self.hosts();
        self.depth -= 1;
        hosts
    }

    /// Parses a host other than `any`. Tables contain such hosts, too.
    pub(super) fn maybe_negated_host(&mut self) -> Parse<Vec<Host>> {
        if self.accept_sign('!') { self.negated_host() } else { self.host() }
    }

    /// Parses a host behind `!`. pfctl prints `! 0.0.0.0/0`, which matches nothing, as `! any`.
    /// OpenBSD's pfctl does not read that form.
    fn negated(&mut self) -> Parse<Vec<Host>> {
        if !self.at_keyword("any") {
            return self.negated_host();
        }
        let place = self.place();
        self.note_foreign_form(place)?;
        self.skip();
        Ok(vec![Host { negated: true, ..Host::new(Address::Any) }])
    }

    fn negated_host(&mut self) -> Parse<Vec<Host>> {
        let mut hosts = self.host()?;
        for host in &mut hosts {
            host.negated = true;
        }
        Ok(hosts)
    }

    pub(super) fn host(&mut self) -> Parse<Vec<Host>> {
        let place = self.place();
        let single = |address| Ok(vec![Host::new(address)]);
        match self.peek().kind {
            TokenKind::Keyword("no-route") => {
                self.skip();
                single(Address::NoRoute)
            }
            TokenKind::Keyword("urpf-failed") => {
                self.skip();
                single(Address::UrpfFailed)
            }
            TokenKind::Keyword("route") => {
                self.skip();
                let label = self.string()?;
                if label.len() > LONGEST_ROUTE_LABEL {
                    let text = format!("route label too long, max {LONGEST_ROUTE_LABEL} chars");
                    return self.error_at(text, place);
                }
                single(Address::RouteLabel(label))
            }
            TokenKind::Sign('<') => single(Address::Table(self.table_name()?)),
            TokenKind::Sign('(') => single(self.dynamic()?),
            TokenKind::Number(number) => {
                self.skip();
                self.expect_sign('/')?;
                let prefix = self.number()?;
                self.resolve(&format!("{number}/{prefix}"), place)
            }
            _ => {
                let text = self.string()?;
                self.named_host(&text, place)
            }
        }
    }

    /// Parses a host whose first word has been read.
    pub(super) fn named_host(&mut self, text: &str, place: Place) -> Parse<Vec<Host>> {
        if !self.may_follow_host() {
            return self.syntax_error();
        }
        if self.accept_sign('/') {
            let prefix = self.number()?;
            self.resolve(&format!("{text}/{prefix}"), place)
        } else if self.accept_sign('-') {
            let end_place = self.place();
            let end = self.string()?;
            let range = self.range((text, place), (&end, end_place))?;
            Ok(vec![Host::new(range)])
        } else {
            self.resolve(text, place)
        }
    }

    /// True if the next token may follow a host. Otherwise that token is the error to report, not
    /// the host name in front of it.
    fn may_follow_host(&mut self) -> bool {
        match self.peek().kind {
            TokenKind::Keyword(word) => {
                OPTIONS.contains(&word)
                    || AFTER_HOST.contains(&word)
                    || self.legacy && AFTER_HOST_OF_SCRUB.contains(&word)
            }
            TokenKind::Sign(sign) => "-/,}{!<()".contains(sign),
            TokenKind::String(_) | TokenKind::Number(_) | TokenKind::NewLine => true,
            TokenKind::Arrow => self.legacy,
            _ => false,
        }
    }

    pub(super) fn resolve(&mut self, text: &str, place: Place) -> Parse<Vec<Host>> {
        match resolve::host(text, self.context) {
            Ok(hosts) => Ok(hosts),
            Err(message) => {
                self.report_bare(Severity::Error, &message, place);
                self.error_at("could not parse host specification", place)
            }
        }
    }

    fn range(&mut self, low: (&str, Place), high: (&str, Place)) -> Parse<Address> {
        let low_hosts = self.resolve(low.0, low.1)?;
        let high_hosts = self.resolve(high.0, high.1)?;
        match (single_address(&low_hosts), single_address(&high_hosts)) {
            (Some(low), Some(high)) if low.is_ipv4() == high.is_ipv4() => {
                Ok(Address::Range(low, high))
            }
            _ => self.error_at("invalid address range", low.1),
        }
    }

    /// Parses `<name>`.
    pub(super) fn table_name(&mut self) -> Parse<String> {
        self.expect_sign('<')?;
        let place = self.place();
        let name = self.name()?;
        self.expect_sign('>')?;
        if name.len() > LONGEST_NAME {
            let help = Some(format!("at most {LONGEST_NAME} characters"));
            return self.error_with_help(format!("table name '{name}' too long"), place, help);
        }
        Ok(name)
    }

    /// Parses `(em0:network)/24`.
    fn dynamic(&mut self) -> Parse<Address> {
        self.expect_sign('(')?;
        let place = self.place();
        let text = self.string()?;
        self.dynamic_address(&text, place)
    }

    /// Parses the remaining tokens of `(em0:network)/24` after the name.
    pub(super) fn dynamic_address(&mut self, text: &str, place: Place) -> Parse<Address> {
        if !self.accept_sign(')') {
            let place = self.place();
            let help = "parentheses enclose an interface; write a next hop alone, behind the \
                        hosts: `route-to 10.0.0.1`";
            return self.syntax_error_at(place, |_| Some(help.to_string()));
        }
        if !text.starts_with(|c: char| c.is_ascii_alphabetic()) {
            return self.error_at(format!("invalid interface name '{text}'"), place);
        }
        let (name, modifiers) = match Modifiers::split(text) {
            Ok(split) => split,
            Err(rest) => {
                let text = format!("interface {rest} has bad modifier");
                let help = Some("modifiers are :network, :broadcast, :peer and :0".to_string());
                return self.error_with_help(text, place, help);
            }
        };
        if modifiers.contradict() {
            return self.error_at("illegal combination of interface modifiers", place);
        }
        if name.len() > LONGEST_INTERFACE {
            return self.error_at("interface name too long", place);
        }
        let mut prefix = 128;
        if self.accept_sign('/') {
            let place = self.place();
            let number = self.number()?;
            match u8::try_from(number) {
                Ok(number) if number <= 128 => prefix = number,
                _ => return self.error_at("bit number too big", place),
            }
        }
        Ok(resolve::dynamic(self.context.host.interface_name(name), modifiers, prefix))
    }

    fn port(&mut self) -> Parse<Ports> {
        let place = self.place();
        if let Some(op) = self.unary_operator() {
            return match self.port_range()? {
                PortRange::One(port) => Ok(Ports { op, low: port, high: port }),
                PortRange::Two(..) => {
                    self.error_at("':' cannot be used with an other port operator", place)
                }
            };
        }
        let first = self.port_range()?;
        let op = match self.peek().kind {
            TokenKind::Inside => PortMatch::Inside,
            TokenKind::Outside => PortMatch::Outside,
            _ => {
                return match first {
                    PortRange::One(port) => {
                        Ok(Ports { op: PortMatch::Equal, low: port, high: port })
                    }
                    PortRange::Two(low, high) => {
                        self.checked(Ports { op: PortMatch::Range, low, high }, place)
                    }
                };
            }
        };
        self.skip();
        match (first, self.port_range()?) {
            (PortRange::One(low), PortRange::One(high)) => {
                self.checked(Ports { op, low, high }, place)
            }
            _ => self.error_at("':' cannot be used with an other port operator", place),
        }
    }

    fn checked(&mut self, ports: Ports, place: Place) -> Parse<Ports> {
        let empty = match ports.op {
            PortMatch::Inside => ports.low >= ports.high,
            _ => ports.low > ports.high,
        };
        if empty {
            let help = Some("the lower port comes first".to_string());
            return self.error_with_help("invalid port range", place, help);
        }
        Ok(ports)
    }

    pub(super) fn unary_operator(&mut self) -> Option<PortMatch> {
        let op = match self.peek().kind {
            TokenKind::Sign('=') => PortMatch::Equal,
            TokenKind::NotEqual => PortMatch::NotEqual,
            TokenKind::Sign('<') => PortMatch::Less,
            TokenKind::LessEqual => PortMatch::LessEqual,
            TokenKind::Sign('>') => PortMatch::Greater,
            TokenKind::GreaterEqual => PortMatch::GreaterEqual,
            _ => return None,
        };
        self.skip();
        Some(op)
    }

    fn port_range(&mut self) -> Parse<PortRange> {
        let place = self.place();
        let text = self.word_or_number()?;
        let Some((low, high)) = text.split_once(':') else {
            return Ok(PortRange::One(self.port_number(&text, place)?));
        };
        let (low, high) = (self.port_number(low, place)?, self.port_number(high, place)?);
        Ok(if low == high { PortRange::One(low) } else { PortRange::Two(low, high) })
    }

    pub(super) fn port_number(&mut self, text: &str, place: Place) -> Parse<u16> {
        if let Some(number) = unsigned_number(text) {
            return u16::try_from(number)
                .or_else(|_| self.error_at(format!("illegal port value {number}"), place));
        }
        match self.context.names.service(text) {
            Some(port) => Ok(port),
            None => {
                let help = did_you_mean(text, self.context.names.service_names());
                self.error_with_help(format!("unknown port {text}"), place, help)
            }
        }
    }
}

fn single_address(hosts: &[Host]) -> Option<IpAddr> {
    match hosts {
        [Host { address: Address::Net(address, length), .. }]
            if *length == resolve::full_length(*address) =>
        {
            Some(*address)
        }
        _ => None,
    }
}

/// Parses a number as C's `strtoul` does: decimal, hexadecimal after `0x`, octal after `0`.
pub(super) fn unsigned_number(text: &str) -> Option<u64> {
    let (digits, radix) = match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(digits) => (digits, 16),
        None if text.len() > 1 && text.starts_with('0') => (&text[1..], 8),
        None => (text, 10),
    };
    if digits.starts_with('+') {
        return None;
    }
    u64::from_str_radix(digits, radix).ok()
}
