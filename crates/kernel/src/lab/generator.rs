//! The generator of frames, bpf/lab/generator.bpf.c.

use std::os::fd::{AsFd, AsRawFd};

use libbpf_rs::libbpf_sys;
use nix::libc;

use super::layout::{Order, Progress, Template};
use super::load;
use crate::error::{Context, Result};
use crate::map::Map;
use crate::object::{find_map, find_program};
use crate::program::{Program, check};

static OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/lab/generator.bpf.o"));

/// Longest frame that fits into a page beside the kernel's own data, in bytes.
pub const LARGEST_FRAME: usize = 3_280;

/// A generator: maps and program, loaded for this process.
pub struct Generator {
    order: Map<u32, Order>,
    progress: Map<u32, Progress>,
    templates: Map<u32, Template>,
    values: Map<u32, u32>,
    program: Program,
}

/// The reason why a run of the generator ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// The program ran as often as it was told.
    Done,
    /// A signal interrupted the run.
    Signal,
}

impl Generator {
    /// Loads the generator.
    ///
    /// # Errors
    /// Fails if the process is not root, or if the kernel refuses the object.
    pub fn new() -> Result<Self> {
        let object = load(OBJECT, "generator")?;
        Ok(Generator {
            order: Map::new(find_map(&object, "lab_order")?, "lab_order")?,
            progress: Map::new(find_map(&object, "lab_progress")?, "lab_progress")?,
            templates: Map::new(find_map(&object, "lab_templates")?, "lab_templates")?,
            values: Map::new(find_map(&object, "lab_values")?, "lab_values")?,
            program: find_program(&object, "lab_generate")?,
        })
    }

    /// Sets the templates of frames. The pattern of an order names a template by its index.
    ///
    /// # Errors
    /// Fails if there are more than [`TEMPLATES`](super::TEMPLATES), or if the map cannot be
    /// written.
    pub fn set_templates(&self, templates: &[Template]) -> Result<()> {
        let keys: Vec<u32> = (0..templates.len() as u32).collect();
        self.templates.set_many(&keys, templates)
    }

    /// Sets the values of all lists, one list after the other.
    ///
    /// # Errors
    /// Fails if there are more than [`VALUES`](super::VALUES), or if the map cannot be written.
    pub fn set_values(&self, values: &[u32]) -> Result<()> {
        let keys: Vec<u32> = (0..values.len() as u32).collect();
        self.values.set_many(&keys, values)
    }

    /// Gives the generator an order. The same seed makes the same frames; 0 counts as 1.
    ///
    /// # Errors
    /// Fails if a map cannot be written.
    pub fn begin(&self, order: &Order, seed: u64) -> Result<()> {
        self.progress.set(&0, &Progress { random: seed.max(1), ..Progress::default() })?;
        self.order.set(&0, order)
    }

    /// Returns the progress of the order.
    ///
    /// # Errors
    /// Fails if the map cannot be read.
    pub fn progress(&self) -> Result<Progress> {
        self.progress.at(0)
    }

    /// Runs the program `repeat` times on pages for frames of `length` bytes. The kernel hands
    /// redirected frames over after every `batch` runs. Sends in the network namespace of the
    /// calling thread.
    ///
    /// # Errors
    /// Fails if the kernel refuses the run. A signal is not an error.
    pub fn run(&self, length: usize, repeat: u32, batch: u32) -> Result<Ended> {
        let page = vec![0u8; length];
        let options = libbpf_sys::bpf_test_run_opts {
            sz: size_of::<libbpf_sys::bpf_test_run_opts>() as _,
            data_in: page.as_ptr().cast(),
            data_size_in: page.len() as u32,
            repeat: repeat.min(i32::MAX as u32) as i32,
            flags: libbpf_sys::BPF_F_TEST_XDP_LIVE_FRAMES,
            batch_size: batch,
            ..Default::default()
        };
        let mut options = options;
        // SAFETY: the page lives until the call returns and has the size given
        let result = unsafe {
            libbpf_sys::bpf_prog_test_run_opts(self.program.as_fd().as_raw_fd(), &raw mut options)
        };
        match check(result) {
            Err(error) if error.raw_os_error() == Some(libc::EINTR) => Ok(Ended::Signal),
            other => other.map(|()| Ended::Done).context(|| "generator: run".to_owned()),
        }
    }
}
