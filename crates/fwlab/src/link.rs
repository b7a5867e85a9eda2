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
            mtu: mtu(&said).with_context(|| format!("{name}: ip does not tell its mtu"))?,
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

/// The mtu in a line of ip(8).
fn mtu(said: &str) -> Option<u32> {
    let mut words = said.split_whitespace();
    words.find(|&word| word == "mtu")?;
    words.next()?.parse().ok()
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
        let said = "2: eth0@if7: <BROADCAST,UP> mtu 9000 qdisc noqueue state UP\\    link/ether ..";
        assert_eq!(mtu(said), Some(9000));
        assert_eq!(mtu("2: mtu"), None);
    }
}
