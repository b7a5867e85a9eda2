//! A description of the measuring machine and of the programs that may take part, for results.

use fwlab_results::Environment;

use crate::{cycles, placement};

/// Describes this machine.
pub fn here() -> Environment {
    let mut environment = Environment::capture(&[
        &["iptables-legacy", "--version"],
        &["iptables-nft", "--version"],
        &["nft", "--version"],
        &["ip", "-V"],
        &["haproxy", "-v"],
        &["iperf3", "--version"],
        &["netperf", "-V"],
    ]);
    let last = placement::cpus().ok().and_then(|cpus| cpus.last().copied());
    environment.no_cycles = last.and_then(cycles::no_cycles_reason);
    environment
}
