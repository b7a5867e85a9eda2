//! skipstep, by the pfctl beside this program or in the path.

mod control;
mod daemon;
mod rules;
mod ways;

use self::rules::States;
use super::System;
use crate::host::Host;
use crate::rules::Rules;
use crate::topology::Topology;
use crate::traffic::TrafficKind;
use crate::transport::Transport;

pub use self::control::{hooks, load, pfctl, programs};
pub(super) use self::ways::all;

/// A configuration of skipstep.
struct Skipstep {
    name: &'static str,
    label: &'static str,
    evaluator: &'static str,
    states: States,
    /// True if XDP is enabled on all interfaces.
    xdp: bool,
    /// True for a bridge of skipstep's own, false for a router or the kernel's bridge.
    bridges: bool,
}

impl System for Skipstep {
    fn name(&self) -> &'static str {
        self.name
    }

    fn label(&self) -> &'static str {
        self.label
    }

    fn topology(&self, wanted: Topology) -> Topology {
        if self.bridges { Topology::Bridge } else { wanted }
    }

    fn supports(&self, topology: Topology) -> bool {
        if self.bridges { topology == Topology::Bridge } else { topology != Topology::Proxy }
    }

    fn programs(&self) -> Vec<String> {
        [programs(), vec![daemon::skipstepd().display().to_string()]].concat()
    }

    fn configuration(&self, rules: &Rules) -> String {
        rules::written(self, rules)
    }

    fn translation(&self, rules: &Rules) -> Option<String> {
        (self.keeps_states() && !self.bridges).then(|| rules::translation(rules))
    }

    fn hooks(&self, _: Topology) -> Vec<String> {
        let mut hooks = hooks();
        if self.xdp {
            hooks.insert(0, "XDP of the input interface".to_owned());
        }
        if self.bridges {
            let last = hooks.len() - 1;
            hooks.insert(last, "the bridge's program, behind XDP".to_owned());
        }
        hooks
    }

    fn install(&self, device: &Host, _: &Rules, configuration: &str) -> anyhow::Result<()> {
        load(device, configuration)?;
        daemon::start(device)?;
        if self.bridges {
            control::replace_bridge(device)?;
        }
        if self.xdp { control::ensure_xdp(device) } else { Ok(()) }
    }

    fn reset(&self) -> Option<&'static str> {
        Some(control::RESET)
    }

    fn restart(&self, device: &Host, _: &Rules, configuration: &str) -> anyhow::Result<()> {
        control::remove(device)?;
        load(device, configuration)?;
        if self.bridges { control::join(device) } else { Ok(()) }
    }

    fn keeps_states(&self) -> bool {
        self.states != States::None
    }

    fn takes(&self, traffic: Option<TrafficKind>, transport: Transport) -> bool {
        // the generator makes no handshakes, which syncookies need
        self.states != States::Syncookies || traffic.is_some() || transport == Transport::Udp
    }
}
