//! Resolves host specifications to addresses, in the order in which the system lists them
//! (pf-features section 4).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;
use skipstep_ruleset::Family;
use skipstep_ruleset::address::DynamicAddress;
use skipstep_ruleset::interface::{Interface, InterfaceAddress};

use crate::ast::{Address, Host};
use crate::context::Context;

/// The modifiers behind an interface name.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Modifiers {
    /// `:network`
    pub network: bool,
    /// `:broadcast`
    pub broadcast: bool,
    /// `:peer`
    pub peer: bool,
    /// `:0`
    pub no_alias: bool,
}

impl Modifiers {
    /// Splits the modifiers from an interface name.
    ///
    /// # Errors
    /// Fails with the remaining name if a word behind a colon is no modifier.
    pub fn split(mut name: &str) -> Result<(&str, Modifiers), &str> {
        let mut modifiers = Modifiers::default();
        while let Some((rest, modifier)) = name.rsplit_once(':') {
            match modifier {
                "network" => modifiers.network = true,
                "broadcast" => modifiers.broadcast = true,
                "peer" => modifiers.peer = true,
                "0" => modifiers.no_alias = true,
                _ => return Err(name),
            }
            name = rest;
        }
        Ok((name, modifiers))
    }

    /// True if more than one of network, broadcast and peer is given.
    pub fn contradict(self) -> bool {
        u8::from(self.network) + u8::from(self.broadcast) + u8::from(self.peer) > 1
    }
}

/// Returns an interface address in parentheses. The parser has checked the modifiers.
pub fn dynamic(interface: &str, modifiers: Modifiers, prefix: u8) -> Address {
    Address::Dynamic {
        interface: DynamicAddress {
            interface: interface.to_string(),
            network: modifiers.network,
            broadcast: modifiers.broadcast,
            peer: modifiers.peer,
            no_alias: modifiers.no_alias,
            prefix: None,
        },
        prefix,
    }
}

/// Returns the addresses of a host specification: an interface or group with modifiers, an address
/// or network, or a host name.
///
/// # Errors
/// Fails with OpenBSD's message if the prefix length or the modifiers are wrong, or if there is no
/// address.
pub fn host(text: &str, context: &Context) -> Result<Vec<Host>, String> {
    let (name, prefix) = match text.split_once('/') {
        None => (text, None),
        Some((name, length)) => (name, Some(prefix_length(length)?)),
    };
    // most names in large files are addresses, which need no lookup among the interfaces
    let is_address = name.parse::<IpAddr>().is_ok();
    let hosts = match if is_address { Vec::new() } else { interface(name, prefix, context)? } {
        hosts if !hosts.is_empty() => hosts,
        _ => match literal(name, prefix, context) {
            Some(host) => vec![host],
            None => by_name(name, prefix, context),
        },
    };
    if hosts.is_empty() { Err(format!("no IP address found for {text}")) } else { Ok(hosts) }
}

fn prefix_length(text: &str) -> Result<u8, String> {
    let wrong = |how| Err(format!("netmask is {how}: /{text}"));
    match text.parse::<i128>() {
        Ok(length) if length < 0 => wrong("too small"),
        Ok(length) if length > 128 => wrong("too large"),
        Ok(length) => Ok(length as u8),
        Err(_) => wrong("invalid"),
    }
}

fn interface(text: &str, prefix: Option<u8>, context: &Context) -> Result<Vec<Host>, String> {
    let Ok((name, modifiers)) = Modifiers::split(text) else {
        return Ok(Vec::new());
    };
    if modifiers.contradict() {
        return Err("illegal combination of interface modifiers".to_string());
    }
    if (modifiers.network || modifiers.broadcast) && prefix.is_some() {
        return Err("network or broadcast lookup, but extra netmask given".to_string());
    }
    let name = context.host.interface_name(name);
    let mut hosts = interface_addresses(name, modifiers, context);
    if let Some(prefix) = prefix {
        for host in &mut hosts {
            if let Address::Net(address, length) = &mut host.address {
                (*address, *length) = (masked(*address, prefix), prefix);
            }
        }
    }
    Ok(hosts)
}

/// Returns the addresses of an interface, of all interfaces of a group, or of all interfaces
/// (`self`).
pub fn interface_addresses(name: &str, modifiers: Modifiers, context: &Context) -> Vec<Host> {
    let group = context.host.interfaces.iter().any(|i| i.name != name && i.has_name_or_group(name));
    let members =
        context.host.interfaces.iter().filter(|i| name == "self" || i.has_name_or_group(name));
    if group {
        // each member separately, so that `:0` takes the first address of each
        return members.flat_map(|member| addresses(std::iter::once(member), modifiers)).collect();
    }
    addresses(members, modifiers)
}

fn addresses<'a>(
    interfaces: impl Iterator<Item = &'a Interface>,
    modifiers: Modifiers,
) -> Vec<Host> {
    let mut hosts: Vec<Host> = Vec::new();
    for interface in interfaces {
        for address in &interface.addresses {
            let Some(mut host) = address_with(address, modifiers) else {
                continue;
            };
            if modifiers.no_alias && hosts.iter().any(|known| known.family() == host.family()) {
                continue;
            }
            host.scope = if is_link_local(address.net.addr()) { interface.index } else { 0 };
            hosts.push(host);
        }
    }
    hosts
}

fn address_with(address: &InterfaceAddress, modifiers: Modifiers) -> Option<Host> {
    let own = address.net.addr();
    let address = if modifiers.broadcast {
        host_address(address.broadcast.filter(IpAddr::is_ipv4)?)
    } else if modifiers.peer {
        host_address(address.peer?)
    } else if modifiers.network {
        if is_link_local(own) {
            return None;
        }
        Address::Net(address.net.network(), address.net.prefix_len())
    } else {
        host_address(own)
    };
    Some(Host::new(address))
}

fn host_address(address: IpAddr) -> Address {
    Address::Net(address, full_length(address))
}

fn is_link_local(address: IpAddr) -> bool {
    matches!(address, IpAddr::V6(address) if address.is_unicast_link_local())
}

/// Parses an address, a network, or an IPv4 network without its last bytes (`10/8`).
fn literal(text: &str, prefix: Option<u8>, context: &Context) -> Option<Host> {
    let (text, scope) = match text.split_once('%') {
        None => (text, 0),
        Some((address, zone)) => {
            let zone = context.host.interface_name(zone);
            let by_name = context.host.interface(zone).map(|interface| interface.index);
            (address, by_name.or_else(|| zone.parse().ok())?)
        }
    };
    let address = match text.parse::<IpAddr>() {
        Ok(address) => address,
        Err(_) => IpAddr::V4(short_network(text, prefix?)?),
    };
    if scope != 0 && address.is_ipv4() {
        return None;
    }
    let length = prefix.unwrap_or(full_length(address));
    Some(Host { scope, ..Host::new(Address::Net(masked(address, length), length)) })
}

fn short_network(text: &str, prefix: u8) -> Option<Ipv4Addr> {
    let mut bytes = [0; 4];
    for (index, part) in text.split('.').enumerate() {
        *bytes.get_mut(index)? = part.parse().ok()?;
    }
    (prefix <= 32).then(|| Ipv4Addr::from(bytes))
}

fn by_name(text: &str, prefix: Option<u8>, context: &Context) -> Vec<Host> {
    let (name, first_only) = match text.strip_suffix(":0") {
        Some(name) => (name, true),
        None => (text, false),
    };
    let mut hosts: Vec<Host> = Vec::new();
    for address in (context.resolve)(name) {
        if first_only
            && hosts.iter().any(|known| known.family() == Some(Family::from_address(address)))
        {
            continue;
        }
        let length = prefix.unwrap_or(full_length(address));
        hosts.push(Host::new(Address::Net(masked(address, length), length)));
    }
    hosts
}

/// Returns the prefix length of a single address.
pub fn full_length(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

/// Returns `address` with all bits behind the first `length` bits cleared.
fn masked(address: IpAddr, length: u8) -> IpAddr {
    match address {
        IpAddr::V4(v4) => {
            let mask = u32::MAX.checked_shl(32 - u32::from(length.min(32))).unwrap_or(0);
            Ipv4Addr::from(u32::from(v4) & mask).into()
        }
        IpAddr::V6(v6) => {
            let mask = u128::MAX.checked_shl(128 - u32::from(length.min(128))).unwrap_or(0);
            Ipv6Addr::from(u128::from(v6) & mask).into()
        }
    }
}

/// Returns the prefix as the rule set stores it; `None` if an IPv4 address has more than 32 bits.
pub fn net(address: IpAddr, length: u8) -> Option<IpNet> {
    IpNet::new(address, length).ok().map(|net| net.trunc())
}
