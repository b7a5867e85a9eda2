//! Compilation of criteria for addresses, ports and owners.

use std::net::IpAddr;

use ipnet::IpNet;
use skipstep_abi as abi;
use skipstep_abi::address_bytes;
use skipstep_abi::rule::{address_kind as kind, port_op as op};
use skipstep_ruleset::{Address, Family, Host, Owner, PortMatch, Ports, TableName};

use crate::slots::Slots;
use crate::{Error, dynamic, route_label};

/// Compiles an address criterion of a rule in `anchor`.
///
/// # Errors
/// Fails if a table or dynamic address has no slot.
pub fn address(host: &Host, anchor: &str, slots: &Slots) -> Result<abi::Address, Error> {
    let mut compiled = match &host.address {
        Address::Any => of_kind(kind::ANY),
        Address::Net(net) => pair(kind::MASK, net.network(), netmask(net)),
        Address::Masked(address, mask) => masked(*address, *mask),
        Address::Range(low, high) => pair(kind::RANGE, *low, *high),
        Address::Table(name) => table(TableName::new(anchor, name), slots)?,
        Address::Dynamic(dynamic) => table(dynamic::name(dynamic), slots)?,
        Address::NoRoute => of_kind(kind::NO_ROUTE),
        Address::UrpfFailed => of_kind(kind::URPF_FAILED),
        Address::RouteLabel(label) => table(route_label::name(label), slots)?,
    };
    compiled.negated = u8::from(host.negated);
    Ok(compiled)
}

/// Returns the family that an address criterion implies, or `None` if it fits both.
pub fn family(host: &Host) -> Option<Family> {
    match &host.address {
        Address::Net(net) => Some(Family::from_address(net.addr())),
        Address::Masked(address, _) | Address::Range(address, _) => {
            Some(Family::from_address(*address))
        }
        _ => None,
    }
}

/// Compiles a port criterion. Ports are in host byte order.
pub fn port(ports: Option<Ports>) -> abi::Port {
    let Some(ports) = ports else {
        return abi::Port::default();
    };
    abi::Port { low: ports.low, high: ports.high, op: operator(ports.op), pad: [0; 3] }
}

/// Compiles a criterion for the owner of a socket.
pub fn owner(owner: Option<Owner>) -> abi::Owner {
    owner.map_or_else(abi::Owner::default, |owner| abi::Owner {
        low: owner.low.unwrap_or(Owner::UNKNOWN),
        high: owner.high.unwrap_or(Owner::UNKNOWN),
        op: operator(owner.op),
        pad: [0; 3],
    })
}

fn operator(op: PortMatch) -> u8 {
    match op {
        PortMatch::Equal => op::EQ,
        PortMatch::NotEqual => op::NE,
        PortMatch::Less => op::LT,
        PortMatch::LessEqual => op::LE,
        PortMatch::Greater => op::GT,
        PortMatch::GreaterEqual => op::GE,
        PortMatch::Range => op::RANGE,
        PortMatch::Inside => op::INSIDE,
        PortMatch::Outside => op::OUTSIDE,
    }
}

fn of_kind(kind: u8) -> abi::Address {
    abi::Address { kind, ..abi::Address::default() }
}

fn pair(kind: u8, low: IpAddr, high: IpAddr) -> abi::Address {
    abi::Address { low: address_bytes(low), high: address_bytes(high), ..of_kind(kind) }
}

fn masked(address: IpAddr, mask: IpAddr) -> abi::Address {
    let mut compiled = pair(kind::MASK, address, mask);
    for (byte, mask) in compiled.low.iter_mut().zip(compiled.high) {
        *byte &= mask;
    }
    compiled
}

fn netmask(net: &IpNet) -> IpAddr {
    net.netmask()
}

fn table(name: TableName, slots: &Slots) -> Result<abi::Address, Error> {
    let slot = slots.tables.get(&name).copied();
    let slot = slot.ok_or(Error::UnknownTable { line: 0, name })?;
    Ok(abi::Address { table: slot, ..of_kind(kind::TABLE) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compile(address_: Address) -> abi::Address {
        let host = Host { negated: false, address: address_ };
        address(&host, "", &Slots::default()).unwrap()
    }

    #[test]
    fn networks_are_value_and_mask() {
        let net = compile(Address::Net("10.1.0.0/16".parse().unwrap()));
        assert_eq!(net.kind, kind::MASK);
        assert_eq!(net.low[..5], [10, 1, 0, 0, 0]);
        assert_eq!(net.high[..5], [255, 255, 0, 0, 0]);
    }

    #[test]
    fn a_mask_with_holes_clears_the_address_under_them() {
        let address = "10.7.3.9".parse().unwrap();
        let masked = compile(Address::Masked(address, "255.0.255.0".parse().unwrap()));
        assert_eq!(masked.low[..4], [10, 0, 3, 0]);
        assert_eq!(masked.high[..4], [255, 0, 255, 0]);
    }

    #[test]
    fn a_table_without_a_slot_is_an_error() {
        let host = Host { negated: false, address: Address::Table("bad".into()) };
        let error = address(&host, "", &Slots::default()).unwrap_err().on_line(3);
        assert_eq!(error.to_string(), "line 3: table bad is not part of the rule set");
    }

    #[test]
    fn ports_keep_openbsds_numbers() {
        let compiled = port(Some(Ports { op: PortMatch::Inside, low: 10, high: 20 }));
        assert_eq!((compiled.op, compiled.low, compiled.high), (1, 10, 20));
        assert_eq!(port(None).op, op::ANY);
    }
}
