//! What tells apart the ways to write rules for nftables, and what several of them say alike.

use std::process::Command;

use anyhow::Context;

use crate::family::Family;
use crate::host::Host;
use crate::rules::Rules;
use crate::topology::Topology;

/// One way to write the rules.
pub(super) trait Way: Sync {
    /// What `--systems` calls it, and what tables do.
    const NAMES: [&'static str; 2];

    /// Whether it keeps states.
    const KEEPS_STATES: bool = false;

    /// What not every kernel has of what it takes there, by its name and the option that brings it.
    fn needs(_: Topology) -> Option<&'static str> {
        None
    }

    /// Settings of the kernel that it wants, each with a value: those that the kernel has not are
    /// left.
    const SETTINGS: &'static [(&'static str, &'static str)] = &[];

    /// What the table has besides its chain.
    fn objects(_: &Rules) -> String {
        String::new()
    }

    /// The rules of the chain.
    fn chain(rules: &Rules) -> String;

    /// Hooks that a packet crosses, of the family `ip` or `bridge`.
    fn hooks(family: &str) -> Vec<String> {
        vec![format!("{family} forward")]
    }

    /// Whether it can stand in a topology.
    fn stands_in(topology: Topology) -> bool {
        topology != Topology::Proxy
    }
}

/// Has nft load a table, which `needs` something that not every kernel has.
pub(super) fn load(device: &Host, table: &str, needs: Option<&str>) -> anyhow::Result<()> {
    let loaded = device.run(Command::new("nft").args(["-f", "-"]), table).map(drop);
    match needs {
        Some(needs) => loaded.with_context(|| format!("it takes {needs}, which a kernel may lack")),
        None => loaded,
    }
}

/// A rule for each port, one after the other.
pub(super) fn list(rules: &Rules) -> String {
    let (ip, server, protocol) = (ip(rules), rules.server(), rules.transport);
    rules.lines(|port| format!("\t\t{ip} daddr {server} {protocol} dport {port} drop"))
}

/// What rules call the family of an address.
pub(super) fn ip(rules: &Rules) -> &'static str {
    if rules.family == Family::V4 { "ip" } else { "ip6" }
}
