//! A router in XDP or on tcx and nothing else, bpf/lab/route.bpf.c.

use std::os::fd::{AsFd, AsRawFd};

use libbpf_rs::libbpf_sys::{self, BPF_TCX_INGRESS};

use super::load;
use crate::error::{Context, Result};
use crate::object::find_program;
use crate::program::check;

static OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/lab/route.bpf.o"));

/// Has what comes by these interfaces of the calling thread's network namespace routed in their drivers, as long as they
/// are there.
///
/// # Errors
/// Not root; a driver has no XDP; another program is there already.
pub fn route_in_drivers(interfaces: &[u32]) -> Result<()> {
    let object = load(OBJECT, "router in XDP")?;
    let program = find_program(&object, "lab_route")?;
    let flags = libbpf_sys::XDP_FLAGS_DRV_MODE | libbpf_sys::XDP_FLAGS_UPDATE_IF_NOEXIST;
    for &ifindex in interfaces {
        let fd = program.as_fd().as_raw_fd();
        // SAFETY: the program is loaded, and no options are given
        let result =
            unsafe { libbpf_sys::bpf_xdp_attach(ifindex as i32, fd, flags, std::ptr::null()) };
        check(result).context(|| format!("router in XDP: interface {ifindex}: attach"))?;
    }
    Ok(())
}

/// The same where skipstep stands without XDP, on tcx.
///
/// # Errors
/// Not root; the kernel has no tcx.
pub fn route_on_tcx(interfaces: &[u32]) -> Result<()> {
    let object = load(OBJECT, "router on tcx")?;
    let program = find_program(&object, "lab_route_tcx")?;
    for &ifindex in interfaces {
        let fd = program.as_fd().as_raw_fd();
        // SAFETY: the program is loaded, and no options are given
        let result = unsafe {
            libbpf_sys::bpf_prog_attach_opts(fd, ifindex as i32, BPF_TCX_INGRESS, std::ptr::null())
        };
        check(result).context(|| format!("router on tcx: interface {ifindex}: attach"))?;
    }
    Ok(())
}
