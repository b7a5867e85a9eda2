//! A plain router in XDP or on tcx, bpf/lab/route.bpf.c.

use std::os::fd::{AsFd, AsRawFd};
use std::ptr;

use libbpf_rs::libbpf_sys::{self, BPF_TCX_INGRESS};

use super::load;
use crate::error::{Context, Result};
use crate::object::find_program;
use crate::program::check;

static OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/lab/route.bpf.o"));

/// The hook of the router.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RoutesIn {
    /// XDP in the drivers.
    Xdp,
    /// tcx ingress, the hook of skipstep without XDP.
    Tcx,
}

/// Routes the packets that these interfaces of the calling thread's network namespace receive, as
/// long as the interfaces exist.
///
/// # Errors
/// Fails if the process is not root, or if a driver lacks XDP or the kernel lacks tcx. Fails also
/// if a driver has another XDP program.
pub fn route(interfaces: &[u32], stands: RoutesIn) -> Result<()> {
    let object = load(OBJECT, "router")?;
    let program = find_program(
        &object,
        match stands {
            RoutesIn::Xdp => "lab_route",
            RoutesIn::Tcx => "lab_route_tcx",
        },
    )?;
    let fd = program.as_fd().as_raw_fd();
    let flags = libbpf_sys::XDP_FLAGS_DRV_MODE | libbpf_sys::XDP_FLAGS_UPDATE_IF_NOEXIST;
    for &interface in interfaces {
        let ifindex = interface as i32;
        // SAFETY: the program is loaded, and no options are given
        let result = unsafe {
            match stands {
                RoutesIn::Xdp => libbpf_sys::bpf_xdp_attach(ifindex, fd, flags, ptr::null()),
                RoutesIn::Tcx => {
                    libbpf_sys::bpf_prog_attach_opts(fd, ifindex, BPF_TCX_INGRESS, ptr::null())
                }
            }
        };
        check(result).context(|| format!("router, {stands:?}: interface {interface}: attach"))?;
    }
    Ok(())
}
