//! tcx links: both directions of every interface, pinned as `links/IFINDEX-in` and `-out`, so that
//! they outlive us and go when their interface goes.

use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use libbpf_rs::Link;
use libbpf_rs::libbpf_sys::{self, BPF_TCX_EGRESS, BPF_TCX_INGRESS};
use libbpf_rs::query::LinkTypeInfo;

use crate::error::{Context, Error, Result};
use crate::object::Programs;
use crate::pins::LINKS;
use crate::program::{Program, check, pin};

/// Attaches both directions of an interface, unless they already are. An interface that vanishes
/// meanwhile is no error.
pub(crate) fn attach(programs: &Programs, directory: &Path, index: u32) -> Result<()> {
    attach_one(&programs.ingress, BPF_TCX_INGRESS, &path(directory, index, "in"), index)?;
    attach_one(&programs.egress, BPF_TCX_EGRESS, &path(directory, index, "out"), index)
}

/// Whether both directions of an interface are attached.
pub(crate) fn is_attached(directory: &Path, index: u32) -> bool {
    ["in", "out"].iter().all(|side| leads_to(&path(directory, index, side)) == Some(index))
}

/// Detaches everything.
pub(crate) fn detach_all(directory: &Path) -> Result<()> {
    for path in links(directory)? {
        detach(&path)?;
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
        detach(path)?;
    }
    Ok(())
}

fn attach_one(program: &Program, side: u32, path: &Path, index: u32) -> Result<()> {
    if leads_to(path) == Some(index) {
        return Ok(());
    }
    detach(path)?;
    // SAFETY: the program is loaded; no options are given
    let fd = unsafe {
        libbpf_sys::bpf_link_create(
            program.as_fd().as_raw_fd(),
            index as i32,
            side,
            std::ptr::null(),
        )
    };
    match check(fd) {
        Err(error) if error.raw_os_error() == Some(nix::libc::ENODEV) => return Ok(()),
        Err(error) if error.raw_os_error() == Some(nix::libc::EINVAL) => {
            return Err(Error::Kernel { lacks: "tcx" });
        }
        other => other.context(|| format!("interface {index}: attach"))?,
    }
    // SAFETY: the kernel just gave us this descriptor and nobody else has it
    let link = unsafe { OwnedFd::from_raw_fd(fd) };
    pin(link.as_fd(), path)
}

fn detach(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other.context(|| format!("{}: detach", path.display())),
    }
}

/// Index of the interface that a pinned link is on; 0 if that is gone, `None` if there is no link.
fn leads_to(path: &Path) -> Option<u32> {
    if !path.exists() {
        return None;
    }
    match Link::open(path).ok()?.info().ok()?.info {
        LinkTypeInfo::Tcx(tcx) => Some(tcx.ifindex),
        _ => None,
    }
}

fn links(directory: &Path) -> Result<Vec<PathBuf>> {
    let links = directory.join(LINKS);
    let entries = fs::read_dir(&links).context(|| links.display().to_string())?;
    Ok(entries.flatten().map(|entry| entry.path()).collect())
}

fn path(directory: &Path, index: u32, side: &str) -> PathBuf {
    directory.join(LINKS).join(format!("{index}-{side}"))
}
