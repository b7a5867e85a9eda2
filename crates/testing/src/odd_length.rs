//! Packets of lengths that `BPF_PROG_TEST_RUN` refuses. A program of the tests gives an accepted
//! packet the wanted bytes, and continues with the program under test.

use std::os::fd::{AsFd, AsRawFd};

use libbpf_rs::{MapCore, MapFlags, MapHandle, Object, ObjectBuilder};
use skipstep_kernel::error::Context;
use skipstep_kernel::object::{Programs, find_map, find_program};
use skipstep_kernel::program::{Program, Run, SkBuff};
use skipstep_kernel::{Error, Result};
use skipstep_ruleset::Direction;

use crate::arrival;
use crate::hook::Hook;

/// The object of bpf/odd_length.bpf.c.
static OBJECT: &[u8] = include_bytes!(concat!(env!("OBJECTS"), "/odd_length.bpf.o"));

/// Longest packet that a program can make, in bytes.
pub(crate) const LONGEST: usize = 16_000;
/// Longest packet that the kernel accepts for a test run, in bytes: it must fit into a page beside
/// the kernel's own data.
const LONGEST_PLAIN: usize = 3600;
/// Return value of the programs if they did not reach the program under test.
const NOT_REACHED: u32 = 0xff;

/// The programs and the bytes they read.
pub(crate) struct OddLength {
    packet: MapHandle,
    ingress: Program,
    egress: Program,
    return_fragments: Program,
    // keeps the maps alive that only the programs use
    _object: Object,
}

impl OddLength {
    /// Loads the programs in front of `programs`.
    ///
    /// # Errors
    /// Fails if the kernel refuses a program, or if a map cannot be written.
    pub fn load(programs: &Programs) -> Result<Self> {
        let object = ObjectBuilder::default()
            .open_memory(OBJECT)
            .and_then(libbpf_rs::OpenObject::load)
            .context(|| "programs for packets of odd lengths: load".to_owned())?;
        for (map, program) in [
            ("under_test_in", &programs.ingress),
            ("under_test_out", &programs.egress),
            ("under_test_return", &programs.return_fragments),
        ] {
            let fd = program.as_fd().as_raw_fd().to_ne_bytes();
            let array = find_map(&object, map)?;
            array
                .update(&0u32.to_ne_bytes(), &fd, MapFlags::ANY)
                .context(|| format!("map {map}: write"))?;
        }
        Ok(OddLength {
            packet: find_map(&object, "test_packet")?,
            ingress: find_program(&object, "odd_ingress")?,
            egress: find_program(&object, "odd_egress")?,
            return_fragments: find_program(&object, "odd_return")?,
            _object: object,
        })
    }

    /// True if a packet is too short or too long for a test run.
    pub fn is_odd(packet: &[u8]) -> bool {
        !(header(packet)..=LONGEST_PLAIN).contains(&packet.len())
    }

    /// Runs the program of a hook on a packet of such a length.
    ///
    /// # Errors
    /// Fails if the kernel refuses the run, or if the packet could not be made.
    pub fn run(
        &self,
        hook: Hook,
        (link_header, packet): (&[u8], &[u8]),
        context: &SkBuff,
    ) -> Result<Run> {
        let mut value = vec![0; self.packet.value_size() as usize];
        let length = packet.len() as u32;
        value[..4].copy_from_slice(&length.to_ne_bytes());
        value[4..4 + packet.len()].copy_from_slice(packet);
        self.packet
            .update(&0u32.to_ne_bytes(), &value, MapFlags::ANY)
            .context(|| "map test_packet: write".to_owned())?;
        let program = match hook {
            Hook::Filter(Direction::In) => &self.ingress,
            Hook::Filter(Direction::Out) => &self.egress,
            Hook::Return => &self.return_fragments,
        };
        let mut stands_in = packet.to_vec();
        stands_in.resize(header(packet), 0);
        let frame = arrival::frame(link_header, &stands_in);
        let run = program.run_packet_with_room(&frame, context, LONGEST)?;
        match run.returned {
            NOT_REACHED => Err(Error::Bpf {
                operation: format!("packet of {length} bytes"),
                cause: "it could not be made".to_owned(),
            }),
            _ => Ok(run),
        }
    }
}

/// Returns the bytes of the IP header, which the kernel requires.
fn header(packet: &[u8]) -> usize {
    match packet.first().map(|byte| byte >> 4) {
        Some(6) => 40,
        _ => 20,
    }
}
