//! A router on tcx that does not filter: no program there that forwards costs less.

use anyhow::Context;
use nix::net::if_::if_nameindex;
use skipstep_kernel::lab::route_on_tcx;

use super::{Rules, System};
use crate::host::Host;
use crate::topology::Topology;

/// The program of fwlab's own.
pub struct TcRoute;

impl System for TcRoute {
    fn name(&self) -> &'static str {
        "tc-route"
    }

    fn label(&self) -> &'static str {
        "tcx that only routes"
    }

    fn programs(&self) -> Vec<String> {
        Vec::new()
    }

    fn configuration(&self, _: &Rules) -> String {
        "a program on tcx of each interface: the kernel's routes, one hop less, the next interface; no rules\n"
            .to_owned()
    }

    fn hooks(&self, _: Topology) -> Vec<String> {
        vec!["tcx of the interface it comes by".to_owned()]
    }

    fn install(&self, device: &Host, _: &Rules, _: &str) -> anyhow::Result<()> {
        device.inside(|| {
            let all = if_nameindex().context("interfaces")?;
            let others = all.iter().filter(|one| one.name().to_bytes() != b"lo");
            Ok(route_on_tcx(&others.map(|one| one.index()).collect::<Vec<_>>())?)
        })?
    }

    fn filters(&self) -> bool {
        false
    }

    fn stands_in(&self, topology: Topology) -> bool {
        matches!(topology, Topology::Router | Topology::ThreeLegged)
    }
}
