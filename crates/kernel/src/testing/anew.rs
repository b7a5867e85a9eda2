//! The programs of an instance on the same frame again and again, as fast as one CPU runs them:
//! bpf/lab/anew.bpf.c makes the frame's headers anew each time.

use std::os::fd::{AsFd, AsRawFd};

use libbpf_rs::{MapCore, MapFlags, Object, ObjectBuilder};

use super::Bench;
use crate::error::{Context, Result};
use crate::express::Express;
use crate::instance::Instance;
use crate::object::{find_map, find_program};
use crate::program::{Program, SkBuff};

static OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/lab/anew.bpf.o"));

/// Ethernet and IPv4 headers.
const HEADERS: usize = 34;
/// Where the copy of them stands: behind UDP's.
const COPY: usize = HEADERS + 8;

/// Bytes of a frame, which has no room for anything but headers and their copy.
pub const FRAME: usize = COPY + HEADERS;

/// Where a program stands in a packet's way, and what it returns of one that it has sent on past
/// the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// On tcx: `TC_ACT_REDIRECT`
    Tcx = 7,
    /// In XDP: `XDP_REDIRECT`. The program for drivers: the one for veth devices looks behind the
    /// frame for the skb that they make of one, and a test run has none there.
    Xdp = 4,
}

/// The programs of an instance, with one before each that makes its frame anew.
pub struct Anew {
    tcx: Program,
    xdp: Program,
    // an array lets its programs go with whoever opened it last
    _object: Object,
}

impl Anew {
    /// Those of this instance; without one nothing comes after the program that makes the frame.
    pub fn of(instance: Option<&Instance>) -> Result<Self> {
        let object = ObjectBuilder::default()
            .open_memory(OBJECT)
            .and_then(libbpf_rs::OpenObject::load)
            .context(|| "programs that make frames anew: load".to_owned())?;
        if let Some(instance) = instance {
            let programs = &instance.programs;
            let express = Express::of(&instance.directory)?;
            for (map, program) in [("anew_tcx", &programs.ingress), ("anew_xdp", &express.card)] {
                let fd = program.as_fd().as_raw_fd().to_ne_bytes();
                find_map(&object, map)?
                    .update(&0u32.to_ne_bytes(), &fd, MapFlags::ANY)
                    .context(|| format!("map {map}: write"))?;
            }
        }
        let (tcx, xdp) =
            (find_program(&object, "lab_anew_tcx")?, find_program(&object, "lab_anew_xdp")?);
        Ok(Anew { tcx, xdp, _object: object })
    }

    /// A frame of [`FRAME`] bytes with UDP over IPv4, as it comes to be made anew.
    pub fn prepare(frame: &mut [u8; FRAME]) {
        frame.copy_within(..HEADERS, COPY);
        // of what is behind there is no checksum
        frame[COPY - 2..COPY].fill(0);
    }

    /// Runs the program that stands there `repeat` times on a frame that comes by an interface of
    /// the calling thread's network namespace.
    pub fn run(&self, way: Way, frame: &[u8; FRAME], ifindex: u32, repeat: u32) -> Result<Bench> {
        match way {
            Way::Tcx => {
                let mut context = SkBuff::new();
                (context.ifindex, context.ingress_ifindex) = (ifindex, ifindex);
                let run = self.tcx.run_packet(frame, &context, repeat)?;
                Ok(Bench { returned: run.returned, duration: run.duration })
            }
            Way::Xdp => {
                let (returned, duration) = self.xdp.run_frame(frame, ifindex, repeat)?;
                Ok(Bench { returned, duration })
            }
        }
    }
}
