//! Systems for comparison: a cable, and hosts that forward without a filter.

use fwlab_results::Role;

use super::System;
use crate::host::Host;
use crate::rules::Rules;
use crate::topology::Topology;

/// A topology without a filter.
pub enum Plain {
    /// The null firewall: client and server are joined by a cable.
    Null,
    /// Linux as a router.
    Router,
    /// Linux as a bridge.
    Bridge,
}

impl System for Plain {
    fn name(&self) -> &'static str {
        match self {
            Plain::Null => "null",
            Plain::Router => "router",
            Plain::Bridge => "bridge",
        }
    }

    fn label(&self) -> &'static str {
        match self {
            Plain::Null => "nothing (one cable)",
            Plain::Router => "Linux router",
            Plain::Bridge => "Linux bridge",
        }
    }

    fn role(&self) -> Role {
        match self {
            Plain::Null => Role::Null,
            Plain::Router => Role::Router,
            Plain::Bridge => Role::Bridge,
        }
    }

    fn topology(&self, wanted: Topology) -> Topology {
        match self {
            Plain::Null => Topology::Direct,
            Plain::Router if wanted == Topology::ThreeLegged => wanted,
            Plain::Router => Topology::Router,
            Plain::Bridge => Topology::Bridge,
        }
    }

    fn supports(&self, _: Topology) -> bool {
        true
    }

    fn programs(&self) -> Vec<String> {
        Vec::new()
    }

    fn configuration(&self, _: &Rules) -> String {
        let text = match self {
            Plain::Null => "",
            Plain::Router => "net.ipv4.ip_forward = 1\nnet.ipv6.conf.all.forwarding = 1\n",
            Plain::Bridge => "ip link add br0 type bridge stp_state 0 mcast_snooping 0\n",
        };
        text.to_owned()
    }

    fn hooks(&self, _: Topology) -> Vec<String> {
        Vec::new()
    }

    fn install(&self, _: &Host, _: &Rules, _: &str) -> anyhow::Result<()> {
        Ok(())
    }
}
