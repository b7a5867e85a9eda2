//! A router in XDP that does not filter: what one that does can be compared with.

use anyhow::Context;
use nix::net::if_::if_nameindex;
use skipstep_kernel::lab::route_in_drivers;

use super::{Rules, System};
use crate::host::Host;
use crate::topology::Topology;

/// The program of fwlab's own.
pub struct XdpRoute;

impl System for XdpRoute {
    fn name(&self) -> &'static str {
        "xdp-route"
    }

    fn label(&self) -> &'static str {
        "XDP that only routes"
    }

    fn programs(&self) -> Vec<String> {
        Vec::new()
    }

    fn configuration(&self, _: &Rules) -> String {
        "a program in the driver of each interface: the kernel's routes, one hop less, the next driver; no rules\n"
            .to_owned()
    }

    fn hooks(&self, _: Topology) -> Vec<String> {
        vec!["XDP of the interface it comes by".to_owned()]
    }

    fn install(&self, device: &Host, _: &Rules, _: &str) -> anyhow::Result<()> {
        device.inside(|| {
            let all = if_nameindex().context("interfaces")?;
            let others = all.iter().filter(|one| one.name().to_bytes() != b"lo");
            Ok(route_in_drivers(&others.map(|one| one.index()).collect::<Vec<_>>())?)
        })?
    }

    fn filters(&self) -> bool {
        false
    }

    fn stands_in(&self, topology: Topology) -> bool {
        matches!(topology, Topology::Router | Topology::ThreeLegged)
    }
}
