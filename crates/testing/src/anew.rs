//! Timed runs of an instance's programs on one frame, as fast as one CPU can: bpf/lab/anew.bpf.c
//! restores the frame's headers before each run.

use std::os::fd::{AsFd, AsRawFd};

use libbpf_rs::{MapCore, MapFlags, Object, ObjectBuilder};
use skipstep_kernel::error::Context;
use skipstep_kernel::object::{find_map, find_program};
use skipstep_kernel::program::{Program, SkBuff};
use skipstep_kernel::{Instance, Result};

use crate::engine::TimedRun;

static OBJECT: &[u8] = include_bytes!(concat!(env!("OBJECTS"), "/lab/anew.bpf.o"));

/// Bytes of Ethernet and IPv4 headers.
const HEADERS: usize = 34;
/// Offset of the headers' copy: after the UDP header.
const COPY: usize = HEADERS + 8;

/// Bytes of a frame: headers and their copy, nothing else.
pub const FRAME: usize = COPY + HEADERS;

/// Hook of a program, and its return value for a packet that it has forwarded past the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimedHook {
    /// tcx ingress: `TC_ACT_REDIRECT`
    Tcx = 7,
    /// XDP: `XDP_REDIRECT`. Uses the program for cards, because the program for veth devices reads
    /// the skb after the frame, which a test run lacks.
    Xdp = 4,
}

/// The programs of an instance, each after a program that restores its frame.
pub struct FrameRestorer {
    tcx: Program,
    xdp: Program,
    // a program array releases its programs when its last opener closes it
    _object: Object,
}

impl FrameRestorer {
    /// Loads the programs that restore frames, and sets those of `instance` behind them. Without an
    /// instance only the restoring programs run.
    ///
    /// # Errors
    /// Fails if the kernel refuses a program, or if a map cannot be written.
    pub fn for_instance(instance: Option<&Instance>) -> Result<Self> {
        let object = ObjectBuilder::default()
            .open_memory(OBJECT)
            .and_then(libbpf_rs::OpenObject::load)
            .context(|| "programs that make frames anew: load".to_owned())?;
        if let Some(instance) = instance {
            let ingress = &instance.programs().ingress;
            let card = instance.xdp_fast_path()?.card;
            for (map, program) in [("anew_tcx", ingress), ("anew_xdp", &card)] {
                let fd = program.as_fd().as_raw_fd().to_ne_bytes();
                find_map(&object, map)?
                    .update(&0u32.to_ne_bytes(), &fd, MapFlags::ANY)
                    .context(|| format!("map {map}: write"))?;
            }
        }
        let (tcx, xdp) =
            (find_program(&object, "lab_anew_tcx")?, find_program(&object, "lab_anew_xdp")?);
        Ok(FrameRestorer { tcx, xdp, _object: object })
    }

    /// Prepares a frame of [`FRAME`] bytes with UDP over IPv4: copies its headers, and clears the
    /// UDP checksum.
    pub fn prepare(frame: &mut [u8; FRAME]) {
        frame.copy_within(..HEADERS, COPY);
        // without a checksum, the copy after the UDP header may have any value
        frame[COPY - 2..COPY].fill(0);
    }

    /// Runs the program at a hook `repeat` times on a frame that arrives on an interface of the
    /// calling thread's network namespace.
    ///
    /// # Errors
    /// Fails if the kernel refuses the run.
    pub fn run(
        &self,
        way: TimedHook,
        frame: &[u8; FRAME],
        ifindex: u32,
        repeat: u32,
    ) -> Result<TimedRun> {
        match way {
            TimedHook::Tcx => {
                let mut context = SkBuff::new();
                (context.ifindex, context.ingress_ifindex) = (ifindex, ifindex);
                let run = self.tcx.run_packet(frame, &context, repeat)?;
                Ok(TimedRun { returned: run.returned, duration: run.duration })
            }
            TimedHook::Xdp => {
                let (returned, duration) = self.xdp.run_frame(frame, ifindex, repeat)?;
                Ok(TimedRun { returned, duration })
            }
        }
    }
}
