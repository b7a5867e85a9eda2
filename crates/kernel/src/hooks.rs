//! The programs on the hooks of an interface, in the order in which they see packets.

use std::ffi::CStr;
use std::io;
use std::os::fd::AsFd;

use libbpf_rs::libbpf_sys::{self, BPF_TCX_EGRESS, BPF_TCX_INGRESS};

pub use crate::attach::REFUSES_SETTINGS;
use crate::error::{Context, Result};
use crate::instance::Instance;
use crate::program::{self, check};

/// Largest number of programs on a hook of tcx (`BPF_MPROG_MAX`).
const MOST: usize = 64;

/// A program on a hook of tcx.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookedProgram {
    /// Name of the program, cut to 15 bytes by the kernel.
    pub name: String,
    /// Number of the link that attaches the program; `None` if it is attached without a link.
    pub link: Option<u32>,
    /// True for a program of this filter.
    pub is_ours: bool,
}

impl Instance {
    /// Returns the programs on tcx ingress and egress of an interface.
    ///
    /// # Errors
    /// Fails if the process is not root, or if there is no such interface.
    pub fn hooked(&self, index: u32) -> Result<[Vec<HookedProgram>; 2]> {
        let programs = self.programs();
        let ours = [programs.ingress.id()?, programs.egress.id()?, programs.bridge.id()?];
        let read = |hook| -> Result<Vec<HookedProgram>> {
            let found = query(index, hook).context(|| format!("interface {index}: hooks"))?;
            let program = |(id, link): (u32, u32)| HookedProgram {
                name: name_of(id),
                link: (link != 0).then_some(link),
                is_ours: ours.contains(&id),
            };
            Ok(found.into_iter().map(program).collect())
        };
        Ok([read(BPF_TCX_INGRESS)?, read(BPF_TCX_EGRESS)?])
    }
}

/// Returns the programs on a hook in order, each with its link, or 0 without one.
fn query(index: u32, hook: libbpf_sys::bpf_attach_type) -> io::Result<Vec<(u32, u32)>> {
    let (mut programs, mut links) = ([0u32; MOST], [0u32; MOST]);
    let mut options = libbpf_sys::bpf_prog_query_opts {
        sz: size_of::<libbpf_sys::bpf_prog_query_opts>() as _,
        prog_ids: programs.as_mut_ptr(),
        link_ids: links.as_mut_ptr(),
        ..Default::default()
    };
    options.__bindgen_anon_1.count = MOST as u32;
    // SAFETY: both lists live until the call returns and have the length given
    let result = unsafe { libbpf_sys::bpf_prog_query_opts(index as i32, hook, &raw mut options) };
    check(result)?;
    // SAFETY: both members of the union are the same number
    let count = unsafe { options.__bindgen_anon_1.count } as usize;
    Ok(programs.into_iter().zip(links).take(count).collect())
}

/// Returns the name of a program, or its number if it is gone or has no name.
fn name_of(id: u32) -> String {
    let name = || {
        let info = program::info(program::by_id(id).ok()?.as_fd()).ok()?;
        let bytes = info.name.map(|byte| byte as u8);
        let name = CStr::from_bytes_until_nul(&bytes).ok()?.to_str().ok()?;
        (!name.is_empty()).then(|| name.to_owned())
    };
    name().unwrap_or_else(|| format!("program {id}"))
}

/// True if an XDP program is attached to an interface, the filter's or another one.
pub fn has_xdp_program(index: u32) -> bool {
    let mut id = 0;
    // SAFETY: the number lives until the call returns; no flags select the mode in use
    let result = unsafe { libbpf_sys::bpf_xdp_query_id(index as i32, 0, &raw mut id) };
    result == 0 && id != 0
}
