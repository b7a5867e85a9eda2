//! Lets the data plane ask for routes. Answers of the filter, `route-to` and its like, and `rtable`
//! go by routes, which the kernel tells programs only in the name of an interface that forwards. On
//! a host that does not forward, loopback is let forward and asked in its place: no packet for
//! others comes in by loopback, so nothing is forwarded.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use crate::error::{Context, Result};

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
