//! skipstep, by way of its command pfctl: the one that is beside this program, or in the path.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::bail;

use super::{Rules, System, beside};
use crate::host::{self, Host};
use crate::topology::{End, Family, Topology};

/// One way to use it.
struct Skipstep {
    name: &'static str,
    label: &'static str,
    evaluator: &'static str,
    keeps_states: bool,
    /// On all interfaces, besides tcx.
    xdp: bool,
    /// As a bridge of its own instead of a router, or on the ports of the kernel's bridge.
    bridges: bool,
}

/// All ways.
pub(super) fn all() -> Vec<Box<dyn System>> {
    let way = |name, label, evaluator, keeps_states, xdp| -> Box<dyn System> {
        Box::new(Skipstep { name, label, evaluator, keeps_states, xdp, bridges: false })
    };
    let bridge = |name, label, xdp| -> Box<dyn System> {
        let evaluator = "skip-steps";
        Box::new(Skipstep { name, label, evaluator, keeps_states: true, xdp, bridges: true })
    };
    vec![
        way("skipstep-linear", "skipstep, linear", "linear", false, false),
        way("skipstep-skip-steps", "skipstep, skip steps", "skip-steps", false, false),
        way("skipstep-compiled", "skipstep, compiled", "compiled", false, false),
        way("skipstep-compiled-xdp", "skipstep, compiled and XDP", "compiled", false, true),
        way("skipstep-states", "skipstep, skip steps and states", "skip-steps", true, false),
        way("skipstep-states-xdp", "skipstep, states and XDP", "skip-steps", true, true),
        bridge("skipstep-bridge", "skipstep, a bridge with states", false),
        bridge("skipstep-bridge-xdp", "skipstep, a bridge with states and XDP", true),
    ]
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

    fn stands_in(&self, topology: Topology) -> bool {
        if self.bridges { topology == Topology::Bridge } else { topology != Topology::Proxy }
    }

    fn programs(&self) -> Vec<String> {
        programs()
    }

    fn configuration(&self, rules: &Rules) -> String {
        let (server, protocol) = (rules.server(), rules.protocol());
        let inet = if rules.family == Family::V4 { "inet" } else { "inet6" };
        // a load of TCP begins in the middle of connections; other filters let IP options pass
        let state = if self.keeps_states { "flags any keep state (sloppy)" } else { "no state" };
        let xdp = if self.xdp { "set xdp on any\n" } else { "" };
        let head = format!("set evaluator {}\n{xdp}pass {state} allow-opts\n", self.evaluator);
        head + &rules.lines(|port| {
            format!("block drop {inet} proto {protocol} from any to {server} port {port}")
        })
    }

    fn hooks(&self, _: Topology) -> Vec<String> {
        let mut hooks = hooks();
        if self.xdp {
            hooks.insert(0, "XDP of the interface it comes by".to_owned());
        }
        if self.bridges {
            let last = hooks.len() - 1;
            hooks.insert(last, "the bridge's program, behind that".to_owned());
        }
        hooks
    }

    fn install(&self, device: &Host, _: &Rules, configuration: &str) -> anyhow::Result<()> {
        load(device, configuration)?;
        if self.bridges {
            bridge(device)?;
        }
        if self.xdp { ensure_xdp(device) } else { Ok(()) }
    }

    fn reset(&self) -> Option<&'static str> {
        Some(
            "pfctl --remove, then pfctl -f and pfctl -e: its programs leave the interfaces, states are forgotten,              and everything is loaded anew; meanwhile all packets pass",
        )
    }

    fn restart(&self, device: &Host, _: &Rules, configuration: &str) -> anyhow::Result<()> {
        device.run(Command::new(pfctl()).args(["-q", "--remove"]), "")?;
        load(device, configuration)?;
        if self.bridges { join(device) } else { Ok(()) }
    }

    fn keeps_states(&self) -> bool {
        self.keeps_states
    }
}

/// What has to be installed to use it.
pub fn programs() -> Vec<String> {
    vec![pfctl().display().to_string(), "nsenter".to_owned()]
}

/// Where it stands in a packet's way.
pub fn hooks() -> Vec<String> {
    let sides = ["ingress of the interface it comes by", "egress of the one it leaves by"];
    sides.map(|side| format!("tcx {side}")).to_vec()
}

/// Whether XDP is where it was asked for: else packets would go by tcx, and be measured as if they had not.
fn ensure_xdp(device: &Host) -> anyhow::Result<()> {
    let text = device.run(Command::new(pfctl()).args(["-s", "Interfaces", "-vv"]), "")?;
    let hooks = text.lines().filter_map(|line| line.trim().strip_prefix("Hook:"));
    match hooks.filter_map(|hook| hook.split_once("no XDP: ")).next() {
        Some((_, why)) => bail!("no XDP: {why}"),
        None => Ok(()),
    }
}

/// Loads a rule set and has it filter.
pub fn load(device: &Host, rules: &str) -> anyhow::Result<()> {
    device.run(Command::new(pfctl()).args(["-q", "-f", "-"]), rules)?;
    device.run(Command::new(pfctl()).args(["-q", "-e"]), "").map(drop)
}

/// Takes the place of the kernel's bridge.
fn bridge(device: &Host) -> anyhow::Result<()> {
    device.ip("link delete br0\n")?;
    join(device)
}

/// Joins the two sides.
fn join(device: &Host) -> anyhow::Result<()> {
    let legs = [End::Client, End::Server].map(End::leg);
    let mut join = Command::new(pfctl());
    device.run(join.args(["bridge", "add"]).args(legs), "").map(drop)
}

/// Removes the instance of a host that is about to go: its programs and tables are pinned in the file
/// system, and would stay.
pub fn forget(namespace: &str) {
    use std::os::unix::fs::MetadataExt;

    let path = PathBuf::from("/run/netns").join(namespace);
    let Ok(inode) = std::fs::metadata(&path).map(|metadata| metadata.ino()) else { return };
    if Path::new(&format!("/sys/fs/bpf/skipstep/netns-{inode}")).exists() {
        let mut remove = Command::new("nsenter");
        remove.arg(format!("--net={}", path.display())).arg(pfctl()).args(["-q", "--remove"]);
        if let Err(error) = host::run(&mut remove, "") {
            eprintln!("fwlab: {namespace}: {error:#}");
        }
    }
}

/// The pfctl that belongs to this program, or whatever the path has.
pub fn pfctl() -> PathBuf {
    beside("pfctl")
}
