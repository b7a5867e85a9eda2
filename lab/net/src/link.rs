//! Existing interfaces, as results describe them.

use std::net::{IpAddr, UdpSocket};
use std::process::Command;

use anyhow::Context;
use nix::ifaddrs::getifaddrs;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use skipstep_kernel::offload::{self, Offload};

use crate::program;

/// An interface of this host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Link {
    /// The interface's name.
    pub name: String,
    /// Its Ethernet address, or None if it is not an Ethernet interface.
    pub address: Option<[u8; 6]>,
    /// Its MTU in bytes.
    pub mtu: u32,
    /// Its offloads by name; true means on.
    pub offloads: Vec<(String, bool)>,
    /// Link speed in bits per second, or None if the driver does not report it.
    pub speed: Option<u64>,
    /// True if the interface exists in this machine's kernel only, like veth.
    pub is_virtual: bool,
}

impl Link {
    /// Describes the interface `name`.
    ///
    /// # Errors
    /// Fails if there is no such interface, or if the output of `ip` lacks its MTU.
    pub fn named(name: &str) -> anyhow::Result<Link> {
        let mut ip = Command::new("ip");
        let said = program::run(ip.args(["-j", "-d", "link", "show", "dev", name]), "")?;
        let said = serde_json::from_str::<Value>(&said).context("output of ip")?;
        let word = |at: &str| said.pointer(&format!("/0/{at}")).and_then(Value::as_str);
        let state =
            |&one: &Offload| Some((Offload::name(one).to_owned(), offload::get(name, one).ok()?));
        Ok(Link {
            name: name.to_owned(),
            address: word("address")
                .filter(|_| word("link_type") == Some("ether"))
                .and_then(parse_address),
            mtu: said
                .pointer("/0/mtu")
                .and_then(|mtu| u32::try_from(mtu.as_u64()?).ok())
                .with_context(|| format!("{name}: ip prints no MTU"))?,
            offloads: Offload::ALL.iter().filter_map(state).collect(),
            speed: offload::link_speed(name),
            // `ip` reports a kind only for devices that it can make, not for a driver's device
            is_virtual: word("link_type") != Some("ether") || word("linkinfo/info_kind").is_some(),
        })
    }

    /// Describes the interface to which the route to `address` leads.
    ///
    /// # Errors
    /// Fails if there is no route, or if no interface has the route's source address.
    pub fn towards(address: IpAddr) -> anyhow::Result<Link> {
        let any: IpAddr = match address {
            IpAddr::V4(_) => std::net::Ipv4Addr::UNSPECIFIED.into(),
            IpAddr::V6(_) => std::net::Ipv6Addr::UNSPECIFIED.into(),
        };
        // connecting a UDP socket sends no packet
        let local = || {
            let socket = UdpSocket::bind((any, 0))?;
            socket.connect((address, 9))?;
            std::io::Result::Ok(socket.local_addr()?.ip())
        };
        let local = local().with_context(|| format!("no route to {address}"))?;
        let has_it = |one: &nix::ifaddrs::InterfaceAddress| {
            let own = one.address.as_ref().and_then(|address| {
                let v4 = address.as_sockaddr_in().map(|own| IpAddr::from(own.ip()));
                v4.or_else(|| address.as_sockaddr_in6().map(|own| IpAddr::from(own.ip())))
            });
            own == Some(local)
        };
        let found = getifaddrs().context("interfaces")?.find(has_it);
        Link::named(
            &found.with_context(|| format!("no interface has the address {local}"))?.interface_name,
        )
    }
}

/// Parses a link address in its usual notation.
pub fn parse_address(text: &str) -> Option<[u8; 6]> {
    let bytes: Option<Vec<u8>> =
        text.split(':').map(|byte| u8::from_str_radix(byte, 16).ok()).collect();
    bytes?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interface_of_an_address_is_found() {
        let link = Link::towards([127, 0, 0, 1].into()).unwrap();
        assert_eq!(link, Link::named("lo").unwrap());
        assert!(link.mtu >= 1280);
        assert_eq!((link.address, link.speed, link.is_virtual), (None, None, true));
        assert!(Link::named("no-such-if").is_err());
    }

    #[test]
    fn link_addresses_are_read() {
        assert_eq!(parse_address("02:66:77:00:01:ff"), Some([2, 0x66, 0x77, 0, 1, 0xff]));
        assert_eq!(parse_address("02:66:77:00:01"), None);
        assert_eq!(parse_address("02:66:77:00:01:gg"), None);
    }
}
