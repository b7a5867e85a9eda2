//! Links: to tcx, both directions of every interface, pinned as `links/IFINDEX-in` and `-out`, and
//! to XDP (`-xdp`) where it is wanted; and, apart, behind the one of ingress where an interface is
//! a port of a bridge. They outlive us and go when their interface goes.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use libbpf_rs::Link;
use libbpf_rs::libbpf_sys::{
    self, BPF_F_BEFORE, BPF_TCX_EGRESS, BPF_TCX_INGRESS, BPF_XDP, XDP_FLAGS_DRV_MODE,
};
use libbpf_rs::query::LinkTypeInfo;
use skipstep_ruleset::interface::Host;

use crate::error::{Context, Error, Result};
use crate::express::Express;
use crate::lab::offload;
use crate::object::Programs;
use crate::pins::{BRIDGE_LINKS, LINKS, unpin};
use crate::program::{Program, pin};

/// Why a driver is left alone that shows XDP frames without the tag that they came with.
const HIDES_TAGS: &str = "it takes VLAN tags off frames: run `ethtool -K INTERFACE rxvlan off`";

/// The time that another process has between attaching a program and pinning the link.
const PINNING: Duration = Duration::from_secs(1);

/// Pause between two looks for that link.
const GLANCE: Duration = Duration::from_millis(1);

/// Attaches both directions of an interface, unless they already are. An interface that vanishes
/// meanwhile is no error.
pub(crate) fn attach(programs: &Programs, directory: &Path, index: u32) -> Result<()> {
    attach_in(programs, directory, index)?;
    attach_out(programs, directory, index)
}

/// Attaches the program for inbound packets alone.
pub(crate) fn attach_in(programs: &Programs, directory: &Path, index: u32) -> Result<()> {
    // nothing is to cross a bridge unfiltered
    let place = if bridge_path(directory, index).exists() { BPF_F_BEFORE } else { 0 };
    attach_one(&programs.ingress, BPF_TCX_INGRESS, place, &path(directory, index, "in"), index)
}

/// Attaches the program for outbound packets alone.
pub(crate) fn attach_out(programs: &Programs, directory: &Path, index: u32) -> Result<()> {
    attach_one(&programs.egress, BPF_TCX_EGRESS, 0, &path(directory, index, "out"), index)
}

/// Has an interface be a port of a bridge: what the filter lets in by it goes on there, unless it
/// already does.
pub(crate) fn attach_bridge(programs: &Programs, directory: &Path, index: u32) -> Result<()> {
    attach_one(&programs.bridge, BPF_TCX_INGRESS, 0, &bridge_path(directory, index), index)
}

/// Has it be one no more.
pub(crate) fn detach_bridge(directory: &Path, index: u32) -> Result<()> {
    unpin(&bridge_path(directory, index))
}

/// Whether both directions of an interface are attached.
pub(crate) fn is_attached(directory: &Path, index: u32) -> bool {
    ["in", "out"].iter().all(|side| leads_to(&path(directory, index, side)) == Some(index))
}

/// Detaches both directions of an interface.
pub(crate) fn detach_interface(directory: &Path, index: u32) -> Result<()> {
    ["in", "out"].iter().try_for_each(|side| unpin(&path(directory, index, side)))
}

/// Detaches everything.
pub(crate) fn detach_all(directory: &Path) -> Result<()> {
    for path in links(directory)? {
        unpin(&path)?;
    }
    Ok(())
}

/// Whether everything that was attached is gone. Loopback lasts as long as its network namespace,
/// so that has happened to the namespace.
pub(crate) fn all_gone(directory: &Path) -> bool {
    let links = links(directory).unwrap_or_default();
    !links.is_empty() && links.iter().all(|path| leads_to(path) == Some(0))
}

/// Removes the links of interfaces that are gone.
pub(crate) fn forget_gone(directory: &Path) -> Result<()> {
    for path in links(directory)?.iter().filter(|path| matches!(leads_to(path), None | Some(0))) {
        unpin(path)?;
    }
    Ok(())
}

/// Has the drivers of the interfaces that `wanted` names, by their own names or by those of groups,
/// run the program of XDP, and no others; those that do not, with the reason. They do without it.
pub(crate) fn follow_xdp(
    directory: &Path,
    wanted: &[String],
    host: &Host,
) -> Result<BTreeMap<String, String>> {
    let mut refusals = BTreeMap::new();
    let mut express = None;
    for interface in host.interfaces.iter().filter(|interface| !interface.loopback) {
        let path = path(directory, interface.index, "xdp");
        if !wanted.iter().any(|name| name == "any" || interface.is(name)) {
            unpin(&path)?;
            continue;
        }
        if !interface.veth && offload::takes_tags_off(&interface.name) {
            unpin(&path)?;
            refusals.insert(interface.name.clone(), HIDES_TAGS.to_owned());
        } else if leads_to(&path) != Some(interface.index) {
            unpin(&path)?;
            let Express { card, veth } = match &express {
                Some(express) => express,
                None => express.insert(Express::of(directory)?),
            };
            let program = if interface.veth { veth } else { card };
            match link(program, BPF_XDP, XDP_FLAGS_DRV_MODE, interface.index) {
                Ok(link) => pin(link.as_fd(), &path)?,
                Err(error) => {
                    refusals.insert(interface.name.clone(), why_no_xdp(&error));
                }
            }
        }
    }
    Ok(refusals)
}

/// Whether an interface's driver runs the program of XDP.
pub(crate) fn has_xdp(directory: &Path, index: u32) -> bool {
    leads_to(&path(directory, index, "xdp")) == Some(index)
}

fn why_no_xdp(error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(nix::libc::EOPNOTSUPP) => "its driver has no native XDP".to_owned(),
        Some(nix::libc::EBUSY | nix::libc::EEXIST) => {
            "another XDP program is attached to it: `ip link show` names it".to_owned()
        }
        Some(nix::libc::EINVAL | nix::libc::ERANGE) => {
            "its driver refuses XDP as the interface is: look at its MTU and `ethtool -k` (lro)"
                .to_owned()
        }
        _ => error.to_string(),
    }
}

/// Attaches a program, behind those that are there unless `place` says otherwise. Several processes
/// may do that at once for one interface, which is never without a program meanwhile: each has a
/// link of its own before it removes what is pinned in its place.
fn attach_one(program: &Program, side: u32, place: u32, path: &Path, index: u32) -> Result<()> {
    let end = Instant::now() + PINNING;
    let link = loop {
        if is_at(path, program, index) {
            return Ok(());
        }
        match link(program, side, place, index).map_err(|error| (error.raw_os_error(), error)) {
            Err((Some(nix::libc::ENODEV), _)) => return Ok(()),
            Err((Some(nix::libc::EINVAL), _)) => return Err(Error::Kernel { lacks: "tcx" }),
            // another process has attached the program and not pinned its link yet
            Err((Some(nix::libc::EEXIST), _)) if Instant::now() < end => thread::sleep(GLANCE),
            Err((_, error)) => return Err(error).context(|| format!("interface {index}: attach")),
            Ok(link) => break link,
        }
    };
    loop {
        match pin(link.as_fd(), path) {
            Err(error) if error.is_already_there() && is_at(path, program, index) => return Ok(()),
            Err(error) if error.is_already_there() => unpin(path)?,
            done => return done,
        }
    }
}

/// Links a program to an interface.
fn link(program: &Program, hook: u32, flags: u32, index: u32) -> io::Result<OwnedFd> {
    let options = libbpf_sys::bpf_link_create_opts { flags, ..Default::default() };
    program.link(index, hook, options)
}

/// True if this program is attached to this interface by the link that is pinned at `path`.
fn is_at(path: &Path, program: &Program, index: u32) -> bool {
    let link = path.exists().then(|| Link::open(path).ok()?.info().ok()).flatten();
    link.is_some_and(|link| match link.info {
        LinkTypeInfo::Tcx(tcx) => tcx.ifindex == index && program.id().ok() == Some(link.prog_id),
        _ => false,
    })
}

/// Index of the interface that a pinned link is on; 0 if that is gone, `None` if there is no link.
fn leads_to(path: &Path) -> Option<u32> {
    if !path.exists() {
        return None;
    }
    match Link::open(path).ok()?.info().ok()?.info {
        LinkTypeInfo::Tcx(tcx) => Some(tcx.ifindex),
        LinkTypeInfo::Xdp(xdp) => Some(xdp.ifindex),
        _ => None,
    }
}

fn links(directory: &Path) -> Result<Vec<PathBuf>> {
    let links = directory.join(LINKS);
    let entries = fs::read_dir(&links).context(|| links.display().to_string())?;
    Ok(entries.flatten().map(|entry| entry.path()).collect())
}

fn bridge_path(directory: &Path, index: u32) -> PathBuf {
    directory.join(BRIDGE_LINKS).join(index.to_string())
}

fn path(directory: &Path, index: u32, side: &str) -> PathBuf {
    directory.join(LINKS).join(format!("{index}-{side}"))
}
