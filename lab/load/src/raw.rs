//! `fwlab raw`: sends frames with serial number and time through a network, and prints how many
//! came and how late.

pub mod extension;
pub mod flood;
pub mod frame;
pub mod load;
pub mod missing;
mod packet;
pub mod sender;
mod source;

use std::time::Duration;

use anyhow::ensure;
use fwlab_net::host;
use fwlab_net::interrupt::Interrupt;
use fwlab_net::placement::Placement;
use fwlab_net::topology::{End, Lab, Offloads, Shape, Topology};
use skipstep_kernel::lab::XdpMode;

use crate::seconds;
use flood::{Flood, Pace, Trial, measuring_cpu};
use load::Load;
use missing::Gap;

/// The flags of `fwlab raw`.
#[derive(Debug, Clone, clap::Args)]
pub struct Arguments {
    /// System between client and server
    #[arg(long, value_enum, default_value = "direct")]
    topology: Topology,
    /// End that sends the frames
    #[arg(long, value_enum, default_value = "client")]
    from: End,
    /// End that receives the frames
    #[arg(long, value_enum, default_value = "server")]
    to: End,
    #[command(flatten)]
    load: Load,
    /// Frames per second; full speed by default
    #[arg(long)]
    rate: Option<f64>,
    /// Duration in seconds, 0.01 to 3600
    #[arg(long, default_value_t = 1.0, value_parser = seconds)]
    seconds: f64,
    /// MTU of the cables in bytes, 1280 to 9000
    #[arg(long, value_name = "BYTES", default_value_t = 1500, value_parser = clap::value_parser!(u32).range(1280..=9000))]
    mtu: u32,
}

/// Number of frames of the calibration.
const CALIBRATION: u64 = 1 << 16;

/// Makes the network, sends the frames, and prints the result.
///
/// # Errors
/// Fails if the flags contradict each other, if the network or the frames cannot be made, or if a
/// signal came.
pub fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let Arguments { topology, from, to, load, rate, .. } = arguments;
    ensure!(from != to, "--from and --to must be different ends");
    let third = [from, to].contains(&&End::Dmz);
    ensure!(
        !third || *topology == Topology::ThreeLegged,
        "only the topology three-legged has a dmz: add --topology three-legged"
    );
    ensure!(*topology != Topology::Proxy, "--topology proxy: a proxy forwards no frames");
    if let Some(rate) = rate {
        ensure!((1.0..=1e9).contains(rate), "--rate must be 1 to 1000000000 frames a second");
    }
    let interrupt = Interrupt::watch()?;
    host::sweep()?;
    let lab = Lab::new("raw", Shape { topology: *topology, mtu: arguments.mtu, napi: true })?;
    for Offloads { interface, states } in lab.offloads()? {
        let on: Vec<_> = states.into_iter().filter(|&(_, on)| on).map(|(name, _)| name).collect();
        let on = if on.is_empty() { "none".to_owned() } else { on.join(", ") };
        println!("{interface}: offloads {on}");
    }
    let at = Placement { cpu: measuring_cpu()?, priority: 1 };
    let mut flood = Flood::new(&lab, load, *from, *to)?;
    if flood.hook() == XdpMode::Generic {
        println!(
            "the driver does not support XDP, so the sink uses generic XDP: a frame costs more"
        );
    }
    let pace = match rate {
        Some(rate) => Pace::steady(*rate, Duration::from_secs_f64(arguments.seconds)),
        None => {
            let calibration = flood.trial(&Pace::fast(CALIBRATION), at, &interrupt)?;
            Pace::fast(((calibration.rate() * arguments.seconds) as u64).clamp(1, i32::MAX as u64))
        }
    };
    let trial = flood.trial(&pace, at, &interrupt)?;
    print(&trial, &pace);
    Ok(())
}

fn print(trial: &Trial, pace: &Pace) {
    let Trial { progress, counts, missing, disturbance } = trial;
    let share = |part: u64, of: u64| 100.0 * part as f64 / of.max(1) as f64;
    println!(
        "sent       {:>12} frames in {:.3} s, {:.0} a second",
        progress.sent,
        trial.seconds(),
        trial.rate()
    );
    if pace.rate.is_some() {
        println!(
            "in time    {:>12} ({:.3} %), late {}, the worst by {:.1} us, not sent {}",
            progress.sent - progress.late,
            share(progress.sent - progress.late, pace.frames),
            progress.late,
            progress.worst as f64 / 1e3,
            progress.skipped
        );
    }
    println!(
        "received   {:>12}, lost {} ({:.4} %), twice {}, overtaken {}, of other trials {}",
        trial.received(),
        trial.lost(),
        share(trial.lost(), progress.sent),
        counts.duplicates,
        counts.reordered,
        counts.strays
    );
    if let Some(last) = missing.last {
        println!("last loss  {:>12.6} s after the first frame", last.as_secs_f64());
    }
    if let Some(Gap { frames, time, ended }) = missing.gap {
        let seconds = time.as_secs_f64();
        let end = if ended { "" } else { ", and none came after them" };
        println!("gap        {frames:>12} frames missing in a row at most, {seconds:.6} s{end}");
    }
    let latency = trial.latency();
    let at = |quantile: f64| latency.quantile(quantile).unwrap_or_default() as f64 / 1e3;
    println!(
        "latency    {:>12.1} us half of them, {:.1} of 90 %, {:.1} of 99 %, {:.1} of 99.9 %, {:.1} at most",
        at(0.5),
        at(0.9),
        at(0.99),
        at(0.999),
        counts.longest as f64 / 1e3
    );
    println!(
        "CPU        {:>12.1} ns a frame{}",
        disturbance.own.as_nanos() as f64 / progress.sent.max(1) as f64,
        trial.disturbed().map(|why| format!("; disturbed: {why}")).unwrap_or_default()
    );
    if progress.failed > 0 {
        println!("failed     {:>12} frames that could not be made", progress.failed);
    }
}
