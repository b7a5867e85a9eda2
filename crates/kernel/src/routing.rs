//! What rules that route need of the host. The kernel tells programs the way to an address only in the
//! name of an interface that forwards. On a host that does not, loopback is let forward: no packet for
//! others comes in by it, so nothing is forwarded, and the data plane asks in its name.

use std::fs;
use std::path::PathBuf;

use skipstep_ruleset::Ruleset;

use crate::error::{Context, Result};

/// Whether rules have `route-to` or its like, or `rtable`.
pub(crate) fn is_used(ruleset: &Ruleset) -> bool {
    ruleset.every_rule().any(|(_, rule)| rule.route.is_some() || rule.rtable.is_some())
}

/// Lets loopback forward, in the families that the host has.
pub(crate) fn set_up() -> Result<()> {
    for family in ["ipv4", "ipv6"] {
        let file = setting(family, "lo");
        let forwards = fs::read_to_string(&file).map(|value| value.trim() == "1");
        // a kernel without IPv6 has no such file for it
        if matches!(forwards, Ok(false)) {
            fs::write(&file, "1").context(|| file.display().to_string())?;
        }
    }
    Ok(())
}

/// Has loopback do again as other interfaces do.
pub(crate) fn tear_down() {
    for family in ["ipv4", "ipv6"] {
        if let Ok(usual) = fs::read(setting(family, "all")) {
            // nothing is forwarded by it either way
            let _ = fs::write(setting(family, "lo"), usual);
        }
    }
}

fn setting(family: &str, interface: &str) -> PathBuf {
    PathBuf::from(format!("/proc/sys/net/{family}/conf/{interface}/forwarding"))
}
