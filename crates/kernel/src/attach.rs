//! Links of the programs to interfaces. An interface has a tcx link for each direction, pinned as
//! `links/IFINDEX-in` and `-out`, and an XDP link (`-xdp`) if the rules ask for XDP. The port of a
//! bridge has one more tcx link, pinned apart, behind the link of ingress. Pinned links outlive the
//! process; a link goes with its interface.

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
use crate::object::Programs;
use crate::offload;
use crate::pins::{BRIDGE_LINKS, LINKS, unpin};
use crate::program::{Program, pin};
use crate::xdp_fast_path::XdpFastPath;

/// The reason why a card gets no XDP program: its driver removes VLAN tags before XDP sees the
/// frame.
const HIDES_TAGS: &str = "it takes VLAN tags off frames: run `ethtool -K INTERFACE rxvlan off`";

/// The reason why an interface gets no XDP program: its driver has native XDP, but not with this
/// MTU or these offloads.
pub const REFUSES_SETTINGS: &str =
    "its driver refuses XDP with these settings: check its MTU and `ethtool -k` (lro)";

/// Longest time that another process may take between attaching a program and pinning its link.
const PINNING: Duration = Duration::from_secs(1);

/// Pause between two checks for the pinned link of another process.
const GLANCE: Duration = Duration::from_millis(1);

/// Attaches both directions of an interface, unless they are attached. Succeeds if the interface
/// vanishes meanwhile.
pub(crate) fn attach(programs: &Programs, directory: &Path, index: u32) -> Result<()> {
    attach_in(programs, directory, index)?;
    attach_out(programs, directory, index)
}

/// Attaches the program for inbound packets alone.
pub(crate) fn attach_in(programs: &Programs, directory: &Path, index: u32) -> Result<()> {
    // the filter stands in front of the bridge's program, so no frame crosses the bridge unfiltered
    let place = if bridge_path(directory, index).exists() { BPF_F_BEFORE } else { 0 };
    attach_one(&programs.ingress, BPF_TCX_INGRESS, place, &path(directory, index, "in"), index)
}

/// Attaches the program for outbound packets alone.
pub(crate) fn attach_out(programs: &Programs, directory: &Path, index: u32) -> Result<()> {
    attach_one(&programs.egress, BPF_TCX_EGRESS, 0, &path(directory, index, "out"), index)
}

/// Makes an interface the port of a bridge: the bridge's program forwards the packets that the
/// filter passes inbound. Does nothing if the interface is a port already.
pub(crate) fn attach_bridge(programs: &Programs, directory: &Path, index: u32) -> Result<()> {
    attach_one(&programs.bridge, BPF_TCX_INGRESS, 0, &bridge_path(directory, index), index)
}

/// Detaches the bridge's program from an interface.
pub(crate) fn detach_bridge(directory: &Path, index: u32) -> Result<()> {
    unpin(&bridge_path(directory, index))
}

/// True if both directions of an interface are attached.
pub(crate) fn is_attached(directory: &Path, index: u32) -> bool {
    ["in", "out"].iter().all(|side| leads_to(&path(directory, index, side)) == Some(index))
}

/// Detaches both directions of an interface.
pub(crate) fn detach_interface(directory: &Path, index: u32) -> Result<()> {
    ["in", "out"].iter().try_for_each(|side| unpin(&path(directory, index, side)))
}

/// Detaches all interfaces.
pub(crate) fn detach_all(directory: &Path) -> Result<()> {
    for path in links(directory)? {
        unpin(&path)?;
    }
    Ok(())
}

/// True if there are links and all their interfaces are gone. Loopback lives as long as its network
/// namespace, so the namespace is gone, too.
pub(crate) fn all_gone(directory: &Path) -> bool {
    let links = links(directory).unwrap_or_default();
    !links.is_empty() && links.iter().all(|path| leads_to(path) == Some(0))
}

/// Removes the pins of links whose interfaces are gone.
pub(crate) fn forget_gone(directory: &Path) -> Result<()> {
    for path in links(directory)?.iter().filter(|path| matches!(leads_to(path), None | Some(0))) {
        unpin(path)?;
    }
    Ok(())
}

/// Attaches the XDP program to the interfaces that `wanted` names (interfaces, groups or `any`),
/// and detaches the XDP program from all others. Returns the names of the interfaces that refuse,
/// with the reason; packets there take tcx alone.
pub(crate) fn follow_xdp(
    directory: &Path,
    wanted: &[String],
    host: &Host,
) -> Result<BTreeMap<String, String>> {
    let mut refusals = BTreeMap::new();
    let mut xdp_fast_path = None;
    for interface in host.interfaces.iter().filter(|interface| !interface.loopback) {
        let path = path(directory, interface.index, "xdp");
        if !wanted.iter().any(|name| name == "any" || interface.has_name_or_group(name)) {
            unpin(&path)?;
            continue;
        }
        if !interface.veth && offload::strips_vlan_tags(&interface.name) {
            unpin(&path)?;
            refusals.insert(interface.name.clone(), HIDES_TAGS.to_owned());
        } else if leads_to(&path) != Some(interface.index) {
            unpin(&path)?;
            let XdpFastPath { card, veth } = match &xdp_fast_path {
                Some(xdp_fast_path) => xdp_fast_path,
                None => xdp_fast_path.insert(XdpFastPath::open_or_load(directory)?),
            };
            let program = if interface.veth { veth } else { card };
            match link(program, BPF_XDP, XDP_FLAGS_DRV_MODE, interface.index) {
                Ok(link) => pin(link.as_fd(), &path)?,
                Err(error) => {
                    refusals.insert(interface.name.clone(), xdp_refusal(&error));
                }
            }
        }
    }
    Ok(refusals)
}

/// True if the XDP program is attached to an interface.
pub(crate) fn has_xdp(directory: &Path, index: u32) -> bool {
    leads_to(&path(directory, index, "xdp")) == Some(index)
}

fn xdp_refusal(error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(nix::libc::EOPNOTSUPP) => "its driver has no native XDP".to_owned(),
        Some(nix::libc::EBUSY | nix::libc::EEXIST) => {
            "another XDP program is attached to it: `ip link show` names it".to_owned()
        }
        Some(nix::libc::EINVAL | nix::libc::ERANGE) => REFUSES_SETTINGS.to_owned(),
        _ => error.to_string(),
    }
}

/// Attaches a program: behind the programs that are attached, or at the position of the flags
/// `place`. Several processes may attach the same interface at once. Each process has its own link
/// before it removes the pinned link, so the interface always has a program.
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

/// True if the link that is pinned at `path` attaches this program to this interface.
fn is_at(path: &Path, program: &Program, index: u32) -> bool {
    let link = path.exists().then(|| Link::open(path).ok()?.info().ok()).flatten();
    link.is_some_and(|link| match link.info {
        LinkTypeInfo::Tcx(tcx) => tcx.ifindex == index && program.id().ok() == Some(link.prog_id),
        _ => false,
    })
}

/// Returns the index of the interface of a pinned link: 0 if the interface is gone, `None` if no
/// link is pinned.
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
