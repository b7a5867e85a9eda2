//! The guard: a program on netfilter's hooks that drops IP packets which no tcx program has judged
//! (bpf/guard.h). The guard's links belong to the network namespace and are pinned in `guard/`, so
//! the guard outlives the process. A pinned link keeps the namespace alive, so the next skipstep
//! process releases the namespaces that have no other user.

use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use libbpf_rs::libbpf_sys::{
    self, BPF_NETFILTER, bpf_link_create_opts__bindgen_ty_1__bindgen_ty_5 as OfNetfilter,
};
use libbpf_rs::{NF_INET_POST_ROUTING, NF_INET_PRE_ROUTING, NFPROTO_IPV4, NFPROTO_IPV6};

use crate::error::{Context, Result};
use crate::netns;
use crate::object::Programs;
use crate::pins::{self, GUARD_LINKS};
use crate::program::pin;
use crate::record::Memory;

/// Priority of the guard, ahead of all others: the kernel reserves the least number.
const FIRST: i32 = i32::MIN + 1;

/// Links of the guard: name, family, hook.
// Differs from OpenBSD: linux.md, "The guard"
const LINKS: [(&str, i32, i32); 4] = [
    ("inet-in", NFPROTO_IPV4, NF_INET_PRE_ROUTING),
    ("inet-out", NFPROTO_IPV4, NF_INET_POST_ROUTING),
    ("inet6-in", NFPROTO_IPV6, NF_INET_PRE_ROUTING),
    ("inet6-out", NFPROTO_IPV6, NF_INET_POST_ROUTING),
];

/// Attaches the guard in the current network namespace, unless it is attached. Does nothing if the
/// kernel has no BPF programs for netfilter's hooks.
pub(crate) fn attach(programs: &Programs, directory: &Path) -> Result<()> {
    let Some(guard) = &programs.guard else { return Ok(()) };
    for (name, family, hook) in LINKS {
        let path = path(directory, name);
        if path.exists() {
            continue;
        }
        let mut options = libbpf_sys::bpf_link_create_opts::default();
        options.__bindgen_anon_1.netfilter =
            OfNetfilter { pf: family as u32, hooknum: hook as u32, priority: FIRST, flags: 0 };
        let link = guard.link(0, BPF_NETFILTER, options);
        let link = link.context(|| format!("guard {name}: attach"))?;
        pin(link.as_fd(), &path)?;
    }
    Ok(())
}

/// Detaches the guard.
pub(crate) fn detach(directory: &Path) -> Result<()> {
    for (name, ..) in LINKS {
        pins::unpin(&path(directory, name))?;
    }
    Ok(())
}

/// Detaches the guard if nothing else keeps the network namespace of its instance alive. Does
/// nothing for an instance of another PID namespace, whose processes /proc may hide.
pub(crate) fn release_namespace(directory: &Path, memory: &Memory) -> Result<()> {
    let is_near = memory.processes == netns::processes();
    if is_near && is_attached(directory) && !netns::is_used(memory.namespace.inode) {
        return detach(directory);
    }
    Ok(())
}

/// True if the guard is attached to all of its hooks.
pub(crate) fn is_attached(directory: &Path) -> bool {
    LINKS.iter().all(|(name, ..)| path(directory, name).exists())
}

fn path(directory: &Path, name: &str) -> PathBuf {
    directory.join(GUARD_LINKS).join(name)
}
