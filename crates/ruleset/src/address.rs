//! Address and port criteria of rules (pf-features section 4).

use std::net::IpAddr;

use ipnet::IpNet;
use serde::{Deserialize, Serialize};

/// Address family of a rule or packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Family {
    /// IPv4.
    Inet,
    /// IPv6.
    Inet6,
}

impl Family {
    /// Returns the family of an address.
    pub fn from_address(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(_) => Family::Inet,
            IpAddr::V6(_) => Family::Inet6,
        }
    }

    /// Returns IPv6 for IPv4, and IPv4 for IPv6.
    pub fn other(self) -> Self {
        match self {
            Family::Inet => Family::Inet6,
            Family::Inet6 => Family::Inet,
        }
    }
}

/// The operand of `from` or `to`: an address criterion and a port criterion.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Endpoint {
    /// Address criterion, possibly negated.
    pub host: Host,
    /// Port criterion. `None` matches all ports, and packets without ports.
    pub ports: Option<Ports>,
}

/// An address criterion, possibly negated.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Host {
    /// True if `!` precedes the address.
    pub negated: bool,
    /// The address criterion without its negation.
    pub address: Address,
}

/// An address criterion without its negation.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Address {
    /// `any`: all addresses.
    #[default]
    Any,
    /// A prefix with its host bits cleared. The prefix of a single host has full length.
    Net(IpNet),
    /// Address and mask, where the mask is no prefix, such as `10.0.0.0 & 255.0.255.0`.
    Masked(IpAddr, IpAddr),
    /// `low - high`, inclusive.
    Range(IpAddr, IpAddr),
    /// `<name>`: the addresses in a table.
    Table(String),
    /// `(em0)`, `(em0:network)`, `(self)/24`: the current addresses of an interface.
    Dynamic(DynamicAddress),
    /// `no-route`: addresses without a route.
    NoRoute,
    /// `urpf-failed`: sources whose route leads over another interface.
    UrpfFailed,
    /// `route "label"`: addresses whose route has the label.
    RouteLabel(String),
}

/// The current addresses of an interface, written in parentheses in pf.conf.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct DynamicAddress {
    /// Name of an interface or interface group, or `self`.
    pub interface: String,
    /// `:network`: the networks of the addresses.
    pub network: bool,
    /// `:broadcast`: the broadcast addresses.
    pub broadcast: bool,
    /// `:peer`: the other ends of point-to-point links.
    pub peer: bool,
    /// `:0`: no alias addresses.
    pub no_alias: bool,
    /// Prefix length from `/n` behind the parentheses, applied to each address.
    pub prefix: Option<u8>,
}

/// A port criterion. Numbers are in host byte order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Ports {
    /// Operator that compares a packet's port with the operands.
    pub op: PortMatch,
    /// First operand of the operator.
    pub low: u16,
    /// Second operand, equal to `low` for operators with one operand.
    pub high: u16,
}

/// Operators of port criteria (pf-features section 4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum PortMatch {
    /// `=`: equal to `low`.
    Equal,
    /// `!=`: not equal to `low`.
    NotEqual,
    /// `<`: less than `low`.
    Less,
    /// `<=`: less than or equal to `low`.
    LessEqual,
    /// `>`: greater than `low`.
    Greater,
    /// `>=`: greater than or equal to `low`.
    GreaterEqual,
    /// `a:b`: from `low` to `high`, inclusive.
    Range,
    /// `a >< b`: between `low` and `high`, exclusive.
    Inside,
    /// `a <> b`: less than `low` or greater than `high`.
    Outside,
}

impl Ports {
    /// True if `port` (in host byte order) matches the criterion.
    pub fn contains(&self, port: u16) -> bool {
        match self.op {
            PortMatch::Equal => port == self.low,
            PortMatch::NotEqual => port != self.low,
            PortMatch::Less => port < self.low,
            PortMatch::LessEqual => port <= self.low,
            PortMatch::Greater => port > self.low,
            PortMatch::GreaterEqual => port >= self.low,
            PortMatch::Range => port >= self.low && port <= self.high,
            PortMatch::Inside => port > self.low && port < self.high,
            PortMatch::Outside => port < self.low || port > self.high,
        }
    }
}
