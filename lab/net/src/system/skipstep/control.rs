//! pfctl commands on the host in the middle.

use std::path::PathBuf;
use std::process::Command;

use anyhow::bail;

use crate::host::Host;
use crate::program::beside;
use crate::topology::End;

/// The description of a reset.
pub(super) const RESET: &str = "pfctl --remove, then pfctl -f and pfctl -e: the programs are \
                                detached, the states are removed, and everything is loaded again; \
                                in between all packets pass";

/// Returns the pfctl beside this program, or the name that is looked up in the path.
pub fn pfctl() -> PathBuf {
    beside("pfctl")
}

/// Returns the programs that skipstep needs.
pub fn programs() -> Vec<String> {
    vec![pfctl().display().to_string(), "nsenter".to_owned()]
}

/// Returns the hooks of skipstep on tcx.
pub fn hooks() -> Vec<String> {
    let sides = ["ingress of the input interface", "egress of the output interface"];
    sides.map(|side| format!("tcx {side}")).to_vec()
}

/// Loads a rule set and enables the filter.
///
/// # Errors
/// Fails if pfctl refuses the rule set, or cannot enable the filter.
pub fn load(device: &Host, rules: &str) -> anyhow::Result<()> {
    device.run(Command::new(pfctl()).args(["-q", "-f", "-"]), rules)?;
    device.run(Command::new(pfctl()).args(["-q", "-e"]), "").map(drop)
}

/// Removes skipstep from the host.
pub(super) fn remove(device: &Host) -> anyhow::Result<()> {
    device.run(Command::new(pfctl()).args(["-q", "--remove"]), "").map(drop)
}

/// Checks that XDP is attached where it was requested. Otherwise packets would take tcx, and the
/// result would count as that of XDP.
pub(super) fn ensure_xdp(device: &Host) -> anyhow::Result<()> {
    let text = device.run(Command::new(pfctl()).args(["-s", "Interfaces", "-vv"]), "")?;
    let hooks = text.lines().filter_map(|line| line.trim().strip_prefix("Hook:"));
    match hooks.filter_map(|hook| hook.split_once("no XDP: ")).next() {
        Some((_, why)) => bail!("no XDP: {why}"),
        None => Ok(()),
    }
}

/// Replaces the kernel's bridge by skipstep's.
pub(super) fn replace_bridge(device: &Host) -> anyhow::Result<()> {
    device.ip("link delete br0\n")?;
    join(device)
}

/// Joins the two interfaces with a bridge of skipstep.
pub(super) fn join(device: &Host) -> anyhow::Result<()> {
    let legs = [End::Client, End::Server].map(End::leg);
    let mut join = Command::new(pfctl());
    device.run(join.args(["bridge", "add"]).args(legs), "").map(drop)
}
