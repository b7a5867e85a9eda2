//! The rights of the process. pftop needs root to open the filter, and afterwards hardly any right
//! of root.

use anyhow::{Context, Result};
use nix::sys::prctl::set_no_new_privs;
use rustix::thread::{CapabilitySet, CapabilitySets, capabilities, set_capabilities};

/// Gives all capabilities up but the one for BPF: it opens the maps of a filter that is made while
/// pftop runs, runs the program that kills a state, and makes the ring of dropped packets.
///
/// # Errors
/// Fails if the kernel refuses.
pub fn drop_most() -> Result<()> {
    set_no_new_privs().context("privileges")?;
    // in a container, root may lack it from the beginning
    let kept = capabilities(None).context("capabilities")?.permitted & CapabilitySet::BPF;
    let sets =
        CapabilitySets { effective: kept, permitted: kept, inheritable: CapabilitySet::empty() };
    set_capabilities(None, sets).context("capabilities")
}
