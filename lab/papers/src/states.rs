//! Room and lifetimes for many states. skipstep gets both from its rules. The kernel gets room from
//! its limit of connections, and nft-conntrack sets its own timeouts. A measurement takes longer
//! than the default lifetime of a state with one packet, and would otherwise measure the creation
//! of states.

use std::fs;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use fwlab_net::host::Host;
use fwlab_net::rules::Rules;
use fwlab_net::system::System;
use fwlab_net::topology::Topology;

use super::study::Study;

/// skipstep's states of a forwarded connection: one on the inbound and one on the outbound
/// interface.
pub(crate) const STATES_EACH: u32 = 2;

/// States reserved for the checks of the rules.
const OTHERS: u32 = 50_000;

/// Lifetime of a state in seconds.
const LIFE: u32 = 3600;

/// Number of random frames sent for each state to create the states, and the fraction of the states
/// that these frames create.
pub(crate) const DRAWN: u32 = 7;
pub(crate) const MADE: f64 = 0.999;

/// A system with room for `connections` connections.
pub(crate) struct Room {
    pub inner: Box<dyn System>,
    pub connections: u32,
}

impl System for Room {
    fn name(&self) -> &'static str {
        self.inner.name()
    }

    fn label(&self) -> &'static str {
        self.inner.label()
    }

    fn programs(&self) -> Vec<String> {
        self.inner.programs()
    }

    fn configuration(&self, rules: &Rules) -> String {
        let text = self.inner.configuration(rules);
        if !self.name().starts_with("skipstep") {
            return text;
        }
        let states = self.connections * STATES_EACH + OTHERS;
        format!(
            "set limit states {states}\n\
             set timeout {{ udp.first {LIFE}, udp.single {LIFE}, udp.multiple {LIFE} }}\n\
             set timeout {{ adaptive.start 0, adaptive.end 0 }}\n{text}"
        )
    }

    fn hooks(&self, topology: Topology) -> Vec<String> {
        self.inner.hooks(topology)
    }

    fn install(&self, device: &Host, rules: &Rules, configuration: &str) -> anyhow::Result<()> {
        self.inner.install(device, rules, configuration)
    }

    fn keeps_states(&self) -> bool {
        self.inner.keeps_states()
    }
}

/// Raises the kernel's limit of connections, which all network namespaces share. Dropping this
/// value restores the limit. A shell does so when its standard input ends, because this program may
/// be killed before.
pub(crate) struct Limit(Option<Child>);

/// The file of the limit.
const LIMIT: &str = "/proc/sys/net/netfilter/nf_conntrack_max";

impl Limit {
    /// Raises the limit if it is too low for `states` connections.
    pub(crate) fn raise(study: &mut Study, states: u32) -> Limit {
        let wanted = states + 100_000;
        let Ok(text) = fs::read_to_string(LIMIT) else { return Limit(None) };
        let limit = text.trim();
        if limit.parse::<u32>().is_ok_and(|limit| limit >= wanted) {
            return Limit(None);
        }
        let raised = keep(limit).and_then(|keeper| {
            let limit = Limit(Some(keeper));
            fs::write(LIMIT, wanted.to_string()).map(|()| limit)
        });
        raised.unwrap_or_else(|error| {
            study.leave_out(&format!("more connections than {limit}: {error}"));
            Limit(None)
        })
    }
}

/// Starts a shell that restores the limit when its standard input ends. The shell has its own
/// process group, so Ctrl-C does not reach it.
fn keep(limit: &str) -> std::io::Result<Child> {
    let script = r#"read -r nothing; echo "$1" >"$2""#;
    let mut shell = Command::new("sh");
    shell.args(["-c", script, "sh", limit, LIMIT]).process_group(0).stdin(Stdio::piped()).spawn()
}

impl Drop for Limit {
    fn drop(&mut self) {
        let Some(mut keeper) = self.0.take() else { return };
        drop(keeper.stdin.take());
        match keeper.wait() {
            Ok(status) if status.success() => {}
            Ok(status) => eprintln!("fwlab: {LIMIT} was not restored: {status}"),
            Err(error) => eprintln!("fwlab: {LIMIT} was perhaps not restored: {error}"),
        }
    }
}
