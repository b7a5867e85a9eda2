//! Addresses and ports as rules compare them (pf-features section 4).

use std::net::IpAddr;

use ipnet::IpNet;
use serde::{Deserialize, Serialize};

/// Address family.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Family {
    /// IPv4
    Inet,
    /// IPv6
    Inet6,
}

impl Family {
    /// The family of an address.
    pub fn of(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(_) => Family::Inet,
            IpAddr::V6(_) => Family::Inet6,
        }
    }

    /// The other family.
    pub fn other(self) -> Self {
        match self {
            Family::Inet => Family::Inet6,
            Family::Inet6 => Family::Inet,
        }
    }
}

/// `from`/`to`: who a packet comes from or goes to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Endpoint {
    /// Address criterion with its negation.
    pub host: Host,
    /// Port criterion; `None` does not look at ports.
    pub ports: Option<Ports>,
}

/// An address criterion, perhaps negated.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Host {
    /// `!` in front.
    pub negated: bool,
    /// What is compared.
    pub address: Address,
}

/// One address criterion.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Address {
    /// `any`
    #[default]
    Any,
    /// A prefix, host bits cleared. A single host has the full length.
    Net(IpNet),
    /// A network given with a mask that is no prefix, as `10.0.0.0 & 255.0.255.0`; address, mask.
    Masked(IpAddr, IpAddr),
    /// `low - high`, inclusive
    Range(IpAddr, IpAddr),
    /// `<name>`
    Table(String),
    /// `(em0)`, `(em0:network)`, `(self)/24`: follows the interface's addresses.
    Dynamic(DynamicAddress),
    /// `no-route`
    NoRoute,
    /// `urpf-failed`
    UrpfFailed,
    /// `route "label"`
    RouteLabel(String),
}

/// An address that follows an interface, in parentheses in pf.conf.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct DynamicAddress {
    /// Interface or group name, or `self`.
    pub interface: String,
    /// `:network`
    pub network: bool,
    /// `:broadcast`
    pub broadcast: bool,
    /// `:peer`
    pub peer: bool,
    /// `:0`, without aliases
    pub no_alias: bool,
    /// `/n` behind the parentheses: prefix length cut out of each address.
    pub prefix: Option<u8>,
}

/// A port criterion; numbers in host order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Ports {
    /// How to compare.
    pub op: PortMatch,
    /// First operand.
    pub low: u16,
    /// Second operand; equal to `low` for the unary operators.
    pub high: u16,
}

/// Port operators (pf-features section 4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum PortMatch {
    /// `=`
    Equal,
    /// `!=`
    NotEqual,
    /// `<`
    Less,
    /// `<=`
    LessEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterEqual,
    /// `a:b`, inclusive
    Range,
    /// `a >< b`, exclusive
    Inside,
    /// `a <> b`
    Outside,
}

impl Ports {
    /// Whether `port` meets the criterion.
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
