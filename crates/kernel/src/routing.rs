//! Lets the data plane ask for routes. Answers of the filter, `route-to` and its like, and `rtable`
//! go by routes, which the kernel tells programs only in the name of an interface that forwards. On
//! a host that does not forward, loopback is let forward and asked in its place: no packet for
//! others comes in by loopback, so nothing is forwarded. The data plane asks it for no packet that
//! the host would only forward (`FORWARDS` in bpf/table.h).
//!
//! Loopback also takes packets with a source of this host's that carry no route yet: those that
//! `af-to` makes of packets of the other family, for a socket of this host. All others on loopback
//! are the host's own anyway.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use skipstep_ruleset::{Family, Ruleset};

use crate::error::{Context, Result};

/// Lets loopback take IPv4 packets with a source of this host's.
const ACCEPT_OWN: &str = "/proc/sys/net/ipv4/conf/lo/accept_local";

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

/// Lets loopback take packets with a source of this host's, if rules translate between families.
/// Notes in `accepts` that it did not before.
pub(crate) fn accept_own(ruleset: &Ruleset, accepts: &mut bool) -> Result<()> {
    let is_used = ruleset.all_rules().any(|(_, rule)| rule.af_to.is_some());
    if is_used && fs::read_to_string(ACCEPT_OWN).is_ok_and(|value| value.trim() == "0") {
        fs::write(ACCEPT_OWN, "1").context(|| ACCEPT_OWN.to_owned())?;
        *accepts = true;
    }
    Ok(())
}

/// Returns the settings that keep packets from the other family, if rules take some across and this
/// host does not forward there. It drops them, as OpenBSD does (`PF_AFRT` in pf.c's `pf_test`).
pub fn closed_across(ruleset: &Ruleset) -> Vec<&'static str> {
    let crosses = |family| {
        let mut rules = ruleset.all_rules().filter_map(|(_, rule)| rule.af_to.as_ref());
        rules.any(|af_to| af_to.family == family)
    };
    let mut settings = vec![];
    if crosses(Family::Inet) && forwarding("ipv4", "all").as_deref() == Some("0") {
        settings.push("net.ipv4.ip_forward");
    }
    if crosses(Family::Inet6) && forwarding("ipv6", "all").as_deref() == Some("0") {
        settings.push("net.ipv6.conf.all.forwarding");
    }
    settings
}

/// Takes back what `accept_own` did.
pub(crate) fn refuse_own(accepts: bool) {
    if accepts {
        // without it, no packet comes from there
        let _ = fs::write(ACCEPT_OWN, "0");
    }
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
