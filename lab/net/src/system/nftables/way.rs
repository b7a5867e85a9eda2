//! The interface of the ways to write rules for nftables, and their common rules.

use std::process::Command;

use anyhow::Context;

use crate::family::Family;
use crate::host::Host;
use crate::rules::Rules;
use crate::topology::Topology;

/// One way to write the rules.
pub(super) trait RuleStyle: Sync {
    /// The name for `--systems`, and the label in tables.
    const NAMES: [&'static str; 2];

    /// True if this way keeps states.
    const KEEPS_STATES: bool = false;

    /// Returns a kernel feature and its option if this way needs one that some kernels lack.
    fn needs(_: Topology) -> Option<&'static str> {
        None
    }

    /// Kernel settings with their values. Settings that the kernel lacks are skipped.
    const SETTINGS: &'static [(&'static str, &'static str)] = &[];

    /// Returns the objects of the table besides its chain.
    fn objects(_: &Rules) -> String {
        String::new()
    }

    /// Returns the rules of the chain.
    fn chain(rules: &Rules) -> String;

    /// Returns the hooks that a packet crosses, in the family `ip` or `bridge`.
    fn hooks(family: &str) -> Vec<String> {
        vec![format!("{family} forward")]
    }

    /// Returns true if this way supports a topology.
    fn supports(topology: Topology) -> bool {
        topology != Topology::Proxy
    }
}

/// Loads a table by nft. `needs` is a kernel feature that an error mentions.
pub(super) fn load(device: &Host, table: &str, needs: Option<&str>) -> anyhow::Result<()> {
    let loaded = device.run(Command::new("nft").args(["-f", "-"]), table).map(drop);
    match needs {
        Some(needs) => loaded.with_context(|| format!("needs {needs}, which this kernel may lack")),
        None => loaded,
    }
}

/// Returns a rule for each port, one after the other.
pub(super) fn list(rules: &Rules) -> String {
    let (ip, server, protocol) = (ip(rules), rules.server(), rules.transport);
    rules.lines(|port| format!("\t\t{ip} daddr {server} {protocol} dport {port} drop"))
}

/// Returns the word for the address family in rules.
pub(super) fn ip(rules: &Rules) -> &'static str {
    if rules.family == Family::V4 { "ip" } else { "ip6" }
}
