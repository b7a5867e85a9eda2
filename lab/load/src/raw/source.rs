//! The two generators: a program in the kernel, or this program.

use anyhow::Context;
use skipstep_kernel::lab::{Generator, Order, Progress, Template};

use super::frame::{CHECKSUM_BYTES, Flow};
use super::load::{Engine, Prepared};
use super::packet::Packets;

/// The advice if the kernel's generator is not available.
const IN_KERNEL: &str = "frames made in the kernel need Linux 5.18 (--engine packet does without)";

/// A generator of either kind.
pub(super) enum Source {
    Kernel(Generator),
    Packet(Packets),
}

impl Source {
    /// Makes a generator of a load's frames.
    ///
    /// # Errors
    /// Fails if the kernel refuses the program or its maps.
    pub fn new(engine: Engine, flow: &Flow, prepared: &Prepared) -> anyhow::Result<Source> {
        Ok(match engine {
            Engine::Xdp => {
                let generator = Generator::new().context(IN_KERNEL)?;
                generator.set_templates(&prepared.templates)?;
                generator.set_values(&prepared.values)?;
                Source::Kernel(generator)
            }
            Engine::Packet => {
                Source::Packet(Packets::new(flow, &prepared.frames, prepared.values.clone()))
            }
        })
    }

    /// Replaces the frames by those of another flow.
    ///
    /// # Errors
    /// Fails if the flow has no such frames, or if the kernel's map cannot be written.
    pub fn set_frames(&mut self, flow: &Flow, frames: &[Vec<u8>]) -> anyhow::Result<()> {
        match self {
            Source::Kernel(generator) => {
                let template = |frame: &Vec<u8>| flow.template(frame.len() + CHECKSUM_BYTES);
                let templates: anyhow::Result<Vec<Template>> =
                    frames.iter().map(template).collect();
                Ok(generator.set_templates(&templates?)?)
            }
            Source::Packet(packets) => {
                packets.set_frames(flow, frames);
                Ok(())
            }
        }
    }

    /// Prepares the generator for a trial.
    ///
    /// # Errors
    /// Fails if the kernel's maps cannot be written.
    pub fn begin(&self, order: &Order, seed: u64) -> anyhow::Result<()> {
        match self {
            Source::Kernel(generator) => Ok(generator.begin(order, seed)?),
            Source::Packet(packets) => {
                packets.begin(order, seed);
                Ok(())
            }
        }
    }

    /// Returns the progress of the current trial.
    ///
    /// # Errors
    /// Fails if the kernel's map cannot be read.
    pub fn progress(&self) -> anyhow::Result<Progress> {
        match self {
            Source::Kernel(generator) => Ok(generator.progress()?),
            Source::Packet(packets) => Ok(packets.progress()),
        }
    }

    /// Carries out the order in the network namespace of the calling thread. The program in the
    /// kernel runs `repeat` times on pages for `length` bytes, in batches of `batch`.
    ///
    /// # Errors
    /// Fails if the kernel refuses to run the program, or if the packet socket fails.
    pub fn run(&self, length: usize, repeat: u32, batch: u32) -> anyhow::Result<()> {
        match self {
            Source::Kernel(generator) => {
                generator.run(length, repeat, batch).map(drop).context(IN_KERNEL)
            }
            Source::Packet(packets) => packets.run(),
        }
    }

    /// Ends [`Source::run`] in another thread. The program in the kernel needs a signal too.
    pub fn stop(&self) {
        if let Source::Packet(packets) = self {
            packets.stop();
        }
    }
}
