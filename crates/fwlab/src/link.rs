//! Interfaces that are there already, as results describe them.

use std::net::{IpAddr, UdpSocket};
use std::process::Command;

use anyhow::Context;
use nix::ifaddrs::getifaddrs;
use serde::{Deserialize, Serialize};
use skipstep_kernel::lab::offload::{self, Offload};

use crate::host;

/// An interface of this host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Link {
    /// Its name.
    pub name: String,
    /// Its address on the link, where it has one of Ethernet.
    pub address: Option<[u8; 6]>,
    /// Its longest packet.
    pub mtu: u32,
    /// Its offloads by name, and whether they are on.
    pub offloads: Vec<(String, bool)>,
}

impl Link {
    /// The interface of a name.
    ///
    /// # Errors
    /// There is none.
    pub fn named(name: &str) -> anyhow::Result<Link> {
        let said = host::run(Command::new("ip").args(["-o", "link", "show", "dev", name]), "")?;
        let state =
            |&one: &Offload| Some((Offload::name(one).to_owned(), offload::get(name, one).ok()?));
        Ok(Link {
            name: name.to_owned(),
            address: word_after(&said, "link/ether").and_then(parse_address),
            mtu: word_after(&said, "mtu")
                .and_then(|mtu| mtu.parse().ok())
                .with_context(|| format!("{name}: ip does not tell its mtu"))?,
            offloads: Offload::ALL.iter().filter_map(state).collect(),
        })
    }

    /// The interface by which packets go to an address.
    ///
    /// # Errors
    /// None does.
    pub fn towards(address: IpAddr) -> anyhow::Result<Link> {
        let any: IpAddr = match address {
            IpAddr::V4(_) => std::net::Ipv4Addr::UNSPECIFIED.into(),
            IpAddr::V6(_) => std::net::Ipv6Addr::UNSPECIFIED.into(),
        };
        // nothing is sent by that
        let local = || {
            let socket = UdpSocket::bind((any, 0))?;
            socket.connect((address, 9))?;
            std::io::Result::Ok(socket.local_addr()?.ip())
        };
        let local = local().with_context(|| format!("no way to {address}"))?;
        let has_it = |one: &nix::ifaddrs::InterfaceAddress| {
            let own = one.address.as_ref().and_then(|address| {
                let v4 = address.as_sockaddr_in().map(|own| IpAddr::from(own.ip()));
                v4.or_else(|| address.as_sockaddr_in6().map(|own| IpAddr::from(own.ip())))
            });
            own == Some(local)
        };
        let found = getifaddrs().context("interfaces")?.find(has_it);
        Link::named(&found.with_context(|| format!("no interface has {local}"))?.interface_name)
    }
}

/// A link address as it is written.
pub fn parse_address(text: &str) -> Option<[u8; 6]> {
    let bytes: Option<Vec<u8>> =
        text.split(':').map(|byte| u8::from_str_radix(byte, 16).ok()).collect();
    bytes?.try_into().ok()
}

/// What stands behind a word in a line of ip(8).
fn word_after<'s>(said: &'s str, word: &str) -> Option<&'s str> {
    let mut words = said.split_whitespace();
    words.find(|&one| one == word)?;
    words.next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interface_of_an_address_is_found() {
        let link = Link::towards([127, 0, 0, 1].into()).unwrap();
        assert_eq!(link, Link::named("lo").unwrap());
        assert!(link.mtu >= 1280);
        assert!(Link::named("no-such-if").is_err());
    }

    #[test]
    fn a_line_of_ip_is_read() {
        let said =
            "2: eth0@if7: <BROADCAST,UP> mtu 9000 qdisc noqueue state UP\\    link/ether 02:..";
        assert_eq!(word_after(said, "mtu"), Some("9000"));
        assert_eq!(word_after(said, "link/ether"), Some("02:.."));
        assert_eq!(word_after("2: mtu", "mtu"), None);
    }

    #[test]
    fn link_addresses_are_read() {
        assert_eq!(parse_address("02:66:77:00:01:ff"), Some([2, 0x66, 0x77, 0, 1, 0xff]));
        assert_eq!(parse_address("02:66:77:00:01"), None);
        assert_eq!(parse_address("02:66:77:00:01:gg"), None);
    }
}
