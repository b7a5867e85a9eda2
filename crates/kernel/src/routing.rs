//! Settings of loopback for route lookups. Answers of the filter, `route-to` and its like, and
//! `rtable` need routes, which the kernel returns to programs only for an interface that forwards.
//! On a host that does not forward, pfctl turns forwarding on for loopback, and the data plane
//! looks routes up for loopback. No packet for other hosts arrives on loopback, so nothing is
//! forwarded. The data plane does not look up routes for packets that the host would only forward
//! (`FORWARDS` in bpf/table.h).
//!
//! Loopback also accepts packets that have a source address of this host and no route yet. `af-to`
//! makes such packets from packets of the other family, for a socket of this host. All other
//! packets on loopback are the host's own.

use std::collections::BTreeMap;
use std::fs;

use skipstep_ruleset::{Family, Ruleset};

use crate::error::{Context, Result};
use crate::sysctl;

/// Setting that lets loopback accept IPv4 packets with a source address of this host.
const ACCEPT_OWN: &str = "net/ipv4/conf/lo/accept_local";

/// The families for which loopback's forwarding was turned on, with the setting of all interfaces
/// at that time.
pub(crate) type Lent = BTreeMap<String, String>;

/// Turns forwarding on for loopback, in the families that the host has.
// Differs from OpenBSD: linux.md, "Forwarding of loopback"
pub(crate) fn set_up(lent: &mut Lent) -> Result<()> {
    for family in ["ipv4", "ipv6"] {
        // a kernel without IPv6 lacks its files
        let (Some(own), Some(all)) = (forwarding(family, "lo"), forwarding(family, "all")) else {
            continue;
        };
        if own == "0" {
            write(&setting(family, "lo"), "1")?;
            lent.insert(family.to_owned(), all);
        }
    }
    Ok(())
}

/// Lets loopback accept packets with a source address of this host, if rules translate between
/// families. Sets `accepts` if it did not accept them before.
// Differs from OpenBSD: linux.md, "Addresses of the host"
pub(crate) fn accept_own(ruleset: &Ruleset, accepts: &mut bool) -> Result<()> {
    let is_used = ruleset.all_rules().any(|(_, rule)| rule.af_to.is_some());
    if is_used && sysctl::read(ACCEPT_OWN).as_deref() == Some("0") {
        write(ACCEPT_OWN, "1")?;
        *accepts = true;
    }
    Ok(())
}

/// Returns the names of the settings that keep packets out of a family to which rules translate:
/// the host does not forward there, so it drops them, as OpenBSD does (`PF_AFRT` in `pf_test` of
/// pf.c).
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

/// Reverts [`accept_own`].
pub(crate) fn refuse_own(accepts: bool) {
    if accepts {
        // an error is harmless: only the host's own packets arrive on loopback
        let _ = write(ACCEPT_OWN, "0");
    }
}

/// Restores loopback's forwarding, unless the setting of all interfaces, which includes loopback,
/// has changed meanwhile.
pub(crate) fn tear_down(lent: &Lent) {
    for (family, all) in lent {
        if forwarding(family, "all").as_ref() == Some(all) {
            // an error is harmless: loopback forwards nothing in any case
            let _ = write(&setting(family, "lo"), "0");
        }
    }
}

/// Returns the setting of forwarding of a family (`ipv4`, `ipv6`) on an interface, or on `all`.
fn forwarding(family: &str, interface: &str) -> Option<String> {
    sysctl::read(&setting(family, interface))
}

fn setting(family: &str, interface: &str) -> String {
    format!("net/{family}/conf/{interface}/forwarding")
}

fn write(setting: &str, value: &str) -> Result<()> {
    let file = sysctl::file(setting);
    fs::write(&file, value).context(|| file.display().to_string())
}
