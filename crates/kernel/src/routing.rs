//! What rules that route need of the host. The kernel tells programs the way to an address only in
//! the name of an interface that forwards. On a host that does not, loopback is let forward: no
//! packet for others comes in by it, so nothing is forwarded, and the data plane asks in its name.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use skipstep_ruleset::Ruleset;

use crate::error::{Context, Result};

/// Whether rules have `route-to` or its like, or `rtable`.
pub(crate) fn is_used(ruleset: &Ruleset) -> bool {
    ruleset.every_rule().any(|(_, rule)| rule.route.is_some() || rule.rtable.is_some())
}

/// The families in which loopback was let forward, with what all interfaces were told then.
pub(crate) type Lent = BTreeMap<String, String>;

/// Lets loopback forward, in the families that the host has.
pub(crate) fn set_up(lent: &mut Lent) -> Result<()> {
    for family in ["ipv4", "ipv6"] {
        // a kernel without IPv6 has no such files for it
        let (Some(own), Some(all)) = (forwarding(family, "lo"), forwarding(family, "all")) else {
            continue;
        };
        if own == "0" {
            let file = setting(family, "lo");
            fs::write(&file, "1").context(|| file.display().to_string())?;
            lent.insert(family.to_owned(), all);
        }
    }
    Ok(())
}

/// Has loopback do again as it did, unless all interfaces were told something else meanwhile, it
/// among them.
pub(crate) fn tear_down(lent: &Lent) {
    for (family, all) in lent {
        if forwarding(family, "all").as_ref() == Some(all) {
            // nothing is forwarded by it either way
            let _ = fs::write(setting(family, "lo"), "0");
        }
    }
}

fn forwarding(family: &str, interface: &str) -> Option<String> {
    let value = fs::read_to_string(setting(family, interface)).ok()?;
    Some(value.trim().to_owned())
}

fn setting(family: &str, interface: &str) -> PathBuf {
    PathBuf::from(format!("/proc/sys/net/{family}/conf/{interface}/forwarding"))
}
