//! Who makes frames: the program in the kernel, or this one.

use anyhow::Context;
use skipstep_kernel::lab::{Generator, Order, Progress, Template};

use super::frame::{CHECKSUM_BYTES, Flow};
use super::load::{Engine, Prepared};
use super::packet::Packets;

/// What to do if the kernel cannot.
const IN_KERNEL: &str = "frames made in the kernel need Linux 5.18 (--engine packet does without)";

/// A generator of either kind.
pub(super) enum Source {
    Kernel(Generator),
    Packet(Packets),
}

impl Source {
    /// A generator of a load's frames.
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

    /// Other frames, of another flow.
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

    /// Gives an order.
    pub fn begin(&self, order: &Order, seed: u64) -> anyhow::Result<()> {
        match self {
            Source::Kernel(generator) => Ok(generator.begin(order, seed)?),
            Source::Packet(packets) => {
                packets.begin(order, seed);
                Ok(())
            }
        }
    }

    /// How far it is.
    pub fn progress(&self) -> anyhow::Result<Progress> {
        match self {
            Source::Kernel(generator) => Ok(generator.progress()?),
            Source::Packet(packets) => Ok(packets.progress()),
        }
    }

    /// Does what was ordered, in the network namespace of the calling thread. The program in the
    /// kernel runs `repeat` times on pages for `length` bytes, `batch` of them at once.
    pub fn run(&self, length: usize, repeat: u32, batch: u32) -> anyhow::Result<()> {
        match self {
            Source::Kernel(generator) => {
                generator.run(length, repeat, batch).map(drop).context(IN_KERNEL)
            }
            Source::Packet(packets) => packets.run(),
        }
    }

    /// Ends [`Source::run`] in another thread; the program in the kernel needs a signal besides.
    pub fn stop(&self) {
        if let Source::Packet(packets) = self {
            packets.stop();
        }
    }
}
