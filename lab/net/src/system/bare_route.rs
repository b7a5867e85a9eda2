//! Routers in XDP and on tcx that do not filter, for comparison with those that do.

use anyhow::Context;
use nix::net::if_::if_nameindex;
use skipstep_kernel::lab::{RoutesIn, route};

use super::System;
use crate::host::Host;
use crate::rules::Rules;
use crate::topology::Topology;

/// A router that is a BPF program of fwlab.
pub struct BareRoute(pub RoutesIn);

impl BareRoute {
    /// Returns the word for the hook of this router.
    fn word(&self, xdp: &'static str, tcx: &'static str) -> &'static str {
        match self.0 {
            RoutesIn::Xdp => xdp,
            RoutesIn::Tcx => tcx,
        }
    }
}

impl System for BareRoute {
    fn name(&self) -> &'static str {
        self.word("xdp-route", "tc-route")
    }

    fn label(&self) -> &'static str {
        self.word("XDP that only routes", "tcx that only routes")
    }

    fn programs(&self) -> Vec<String> {
        Vec::new()
    }

    fn configuration(&self, _: &Rules) -> String {
        let place = self.word("in the driver", "on tcx");
        format!(
            "a program {place} of each interface: it looks up the kernel's route, decrements the \
             TTL and redirects; no rules\n"
        )
    }

    fn hooks(&self, _: Topology) -> Vec<String> {
        vec![format!("{} of the input interface", self.word("XDP", "tcx"))]
    }

    fn install(&self, device: &Host, _: &Rules, _: &str) -> anyhow::Result<()> {
        device.inside(|| {
            let all = if_nameindex().context("interfaces")?;
            let others = all.iter().filter(|one| one.name().to_bytes() != b"lo");
            Ok(route(&others.map(|one| one.index()).collect::<Vec<_>>(), self.0)?)
        })?
    }

    fn filters(&self) -> bool {
        false
    }

    fn supports(&self, topology: Topology) -> bool {
        matches!(topology, Topology::Router | Topology::ThreeLegged)
    }
}
