//! What pfctl does on the host in the middle.

use std::path::PathBuf;
use std::process::Command;

use anyhow::bail;

use crate::host::Host;
use crate::program::beside;
use crate::topology::End;

/// What a reset is.
pub(super) const RESET: &str = "pfctl --remove, then pfctl -f and pfctl -e: its programs leave the interfaces, states \
                                are forgotten, and everything is loaded anew; meanwhile all packets pass";

/// The pfctl that belongs to this program, or whatever the path has.
pub fn pfctl() -> PathBuf {
    beside("pfctl")
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

/// Loads a rule set and has it filter.
pub fn load(device: &Host, rules: &str) -> anyhow::Result<()> {
    device.run(Command::new(pfctl()).args(["-q", "-f", "-"]), rules)?;
    device.run(Command::new(pfctl()).args(["-q", "-e"]), "").map(drop)
}

/// Takes it away from the host.
pub(super) fn remove(device: &Host) -> anyhow::Result<()> {
    device.run(Command::new(pfctl()).args(["-q", "--remove"]), "").map(drop)
}

/// Whether XDP is where it was asked for: else packets would go by tcx, and be measured as if they
/// had not.
pub(super) fn ensure_xdp(device: &Host) -> anyhow::Result<()> {
    let text = device.run(Command::new(pfctl()).args(["-s", "Interfaces", "-vv"]), "")?;
    let hooks = text.lines().filter_map(|line| line.trim().strip_prefix("Hook:"));
    match hooks.filter_map(|hook| hook.split_once("no XDP: ")).next() {
        Some((_, why)) => bail!("no XDP: {why}"),
        None => Ok(()),
    }
}

/// Takes the place of the kernel's bridge.
pub(super) fn replace_bridge(device: &Host) -> anyhow::Result<()> {
    device.ip("link delete br0\n")?;
    join(device)
}

/// Joins the two sides.
pub(super) fn join(device: &Host) -> anyhow::Result<()> {
    let legs = [End::Client, End::Server].map(End::leg);
    let mut join = Command::new(pfctl());
    device.run(join.args(["bridge", "add"]).args(legs), "").map(drop)
}
