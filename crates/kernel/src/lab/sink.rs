//! The sink of frames, bpf/lab/sink.bpf.c.

use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};

use libbpf_rs::libbpf_sys;
use nix::libc;
use zerocopy::FromZeros;

use super::layout::Counts;
use super::load;
use super::window::Window;
use crate::error::{Context, Result};
use crate::map::{Map, PerCpuMap};
use crate::object::{find_map, find_program};
use crate::program::{Program, check};

static OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/lab/sink.bpf.o"));

/// A sink. Detaches from its interface when it is dropped.
pub struct Sink {
    counts: PerCpuMap<u32, Counts>,
    window: Map<u32, Window>,
    program: Program,
    link: Option<OwnedFd>,
}

/// The XDP mode of the sink.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum XdpMode {
    /// In the driver, before the kernel allocates a packet.
    Native,
    /// In the network stack, for drivers without XDP.
    Generic,
}

impl Sink {
    /// Loads a sink and attaches it to no interface.
    ///
    /// # Errors
    /// Fails if the process is not root, or if the kernel refuses the object.
    pub fn new() -> Result<Self> {
        let object = load(OBJECT, "sink")?;
        Ok(Sink {
            counts: PerCpuMap::new(find_map(&object, "lab_counts")?, "lab_counts")?,
            window: Map::new(find_map(&object, "lab_window")?, "lab_window")?,
            program: find_program(&object, "lab_sink")?,
            link: None,
        })
    }

    /// Attaches the sink to an interface of the calling thread's network namespace. The sink
    /// consumes the frames of the trial.
    ///
    /// # Errors
    /// Fails if there is no such interface, or if another XDP program is attached to it.
    pub fn attach(&mut self, ifindex: u32) -> Result<XdpMode> {
        let attempt = |flags| {
            let options = libbpf_sys::bpf_link_create_opts {
                sz: size_of::<libbpf_sys::bpf_link_create_opts>() as _,
                flags,
                ..Default::default()
            };
            // SAFETY: the program is loaded, and the options live until the call returns
            let fd = unsafe {
                libbpf_sys::bpf_link_create(
                    self.program.as_fd().as_raw_fd(),
                    ifindex as i32,
                    libbpf_sys::BPF_XDP,
                    &raw const options,
                )
            };
            check(fd).map(|()| fd)
        };
        let (fd, hook) = match attempt(libbpf_sys::XDP_FLAGS_DRV_MODE) {
            Ok(fd) => (fd, XdpMode::Native),
            // a driver without XDP, or without XDP for packets this long
            Err(error)
                if matches!(
                    error.raw_os_error(),
                    Some(libc::EOPNOTSUPP | libc::ERANGE | libc::EINVAL)
                ) =>
            {
                let fd = attempt(libbpf_sys::XDP_FLAGS_SKB_MODE);
                (fd.context(|| format!("sink: interface {ifindex}: attach"))?, XdpMode::Generic)
            }
            Err(error) => {
                return Err(error).context(|| format!("sink: interface {ifindex}: attach"));
            }
        };
        // SAFETY: the kernel has just returned this descriptor, and nothing else owns it
        self.link = Some(unsafe { OwnedFd::from_raw_fd(fd) });
        Ok(hook)
    }

    /// Resets the counters and begins to count frames of `trial`.
    ///
    /// # Errors
    /// Fails if a map cannot be written.
    pub fn begin(&self, trial: u32) -> Result<()> {
        // close the window first, so that no frame of the previous trial counts for the new one
        let window = |trial| Window { trial, ..Window::EMPTY };
        self.window.set(&0, &window(u32::MAX))?;
        self.counts.set(&0, &Counts::new_zeroed())?;
        self.window.set(&0, &window(trial & 0xffff))
    }

    /// Returns the window of recent serial numbers.
    ///
    /// # Errors
    /// Fails if the map cannot be read.
    pub fn window(&self) -> Result<Window> {
        self.window.at(0)
    }

    /// Returns the counters so far, summed over all CPUs.
    ///
    /// # Errors
    /// Fails if the map cannot be read.
    pub fn counts(&self) -> Result<Counts> {
        let mut sum = Counts::new_zeroed();
        for counts in self.counts.get(&0)? {
            sum.add(&counts);
        }
        Ok(sum)
    }
}
