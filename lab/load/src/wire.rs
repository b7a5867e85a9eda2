//! Two interfaces of this machine with an external system between them: the mode wire.

use std::collections::BTreeMap;

use anyhow::Context;
use fwlab_net::link::{Link, parse_address};
use fwlab_net::topology::End;

use crate::raw::flood::{Flood, Port};
use crate::raw::load::Load;

/// The advice if no frames come through between two interfaces.
pub const NO_WAY: &str = "--next-link must be the link address of the device that forwards \
     them, and this device needs a route to the server's network";

/// The interfaces of the mode wire, and the receiver's link address.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct Interfaces {
    /// Interface that sends frames in the mode wire
    #[arg(long, value_name = "NAME", requires = "server_if")]
    client_if: Option<String>,
    /// Interface that receives frames in the mode wire
    #[arg(long, value_name = "NAME", requires = "client_if")]
    server_if: Option<String>,
    /// Destination link address of frames in the mode wire; by default the receiving interface's
    #[arg(long, value_name = "ADDRESS", value_parser = link_address)]
    next_link: Option<[u8; 6]>,
}

fn link_address(text: &str) -> Result<[u8; 6], String> {
    parse_address(text)
        .ok_or_else(|| "must be a link address, such as 02:00:00:00:00:01".to_owned())
}

impl Interfaces {
    /// Returns the names of the client's and the server's interface, or None if none were given.
    pub fn names(&self) -> Option<[String; 2]> {
        self.client_if.clone().zip(self.server_if.clone()).map(<[String; 2]>::from)
    }

    /// Returns the link addresses of the sender and of the next hop for its frames.
    ///
    /// # Errors
    /// Fails if an interface has no link address.
    pub fn link_addresses(&self, [client, server]: [&Link; 2]) -> anyhow::Result<[[u8; 6]; 2]> {
        let own = |link: &Link| {
            let Link { name, address, .. } = link;
            address.with_context(|| format!("{name}: the interface has no link address"))
        };
        Ok([own(client)?, self.next_link.map_or_else(|| own(server), Ok)?])
    }
}

/// Two interfaces of this machine, with the link addresses of sender and next hop.
pub struct Wire {
    links: [Link; 2],
    addresses: [[u8; 6]; 2],
}

impl Wire {
    /// Reads the interfaces that the command line names.
    ///
    /// # Errors
    /// Fails if none are named, or if one does not exist or has no link address.
    pub fn from_interfaces(interfaces: &Interfaces) -> anyhow::Result<Wire> {
        let [client, server] =
            interfaces.names().context("--client-if and --server-if are missing")?;
        let links = [Link::named(&client)?, Link::named(&server)?];
        let addresses = interfaces.link_addresses([&links[0], &links[1]])?;
        Ok(Wire { links, addresses })
    }

    /// Makes a generator and a sink at these interfaces.
    ///
    /// # Errors
    /// Fails if the load cannot be made, or if the kernel refuses the programs.
    pub fn flood(&self, load: &Load, ends: [End; 2]) -> anyhow::Result<Flood<'static>> {
        let [client, server] = &self.links;
        let ports = [Port::here(&client.name)?, Port::here(&server.name)?];
        Flood::between(ports[0], ports[1], self.addresses, load, ends)
    }

    /// Returns the client's and the server's interface.
    pub fn links(&self) -> [&Link; 2] {
        [&self.links[0], &self.links[1]]
    }

    /// Returns the link address of the sending interface.
    pub fn sender(&self) -> [u8; 6] {
        self.addresses[0]
    }

    /// Describes the interfaces for results.
    pub fn described(&self) -> fwlab_results::Topology {
        described("two interfaces of one machine", self.links())
    }
}

/// Describes two interfaces, and an unknown system between them, for results.
pub fn described(ends: &str, links: [&Link; 2]) -> fwlab_results::Topology {
    let mut offloads = BTreeMap::new();
    for (end, link) in ["client", "server"].into_iter().zip(links) {
        for (offload, on) in &link.offloads {
            offloads.insert(format!("{end} {} {offload}", link.name), *on);
        }
    }
    fwlab_results::Topology {
        name: "wire".to_owned(),
        description: format!("{ends}, and the device between them"),
        mtu: links[0].mtu.min(links[1].mtu),
        families: vec!["inet".to_owned(), "inet6".to_owned()],
        offloads,
    }
}
