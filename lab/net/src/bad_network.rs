//! Impairment: a pair of TAP devices between which frames are lost, duplicated, reordered and
//! truncated.
//!
//! A seed determines the fate of each frame, separately for each direction. A reordered frame waits
//! until other frames have overtaken it, or until a deadline.

use std::collections::VecDeque;
use std::fmt;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, poll};
use signal_hook::consts::{SIGINT, SIGTERM};
use skipstep_kernel::Tap;

/// Number of frames that overtake a reordered frame before it is delivered.
const OVERTAKEN_BY: u64 = 5;

/// Longest time that a reordered frame waits if no other frames come.
const HELD_AT_MOST: Duration = Duration::from_millis(20);

/// Interval at which the network checks deadlines and its own end, in milliseconds.
const TICK_MILLISECONDS: u8 = 5;

/// Bytes of an Ethernet header. A truncated frame keeps at least its header.
const SHORTEST: usize = 14;

/// Bytes of the longest frame that a device delivers.
const LONGEST: usize = 65_535 + SHORTEST;

/// Largest number of frames taken from one device before the other device is served.
const TURN: usize = 64;

/// Impairment rates in percent of the frames. A frame suffers at most one impairment.
#[derive(Clone, Copy, clap::Args)]
pub struct Impairment {
    /// Frames that are lost, in percent, 0 to 25
    #[arg(long, value_name = "PERCENT", default_value_t = 1.0, value_parser = percent)]
    loss: f64,
    /// Frames that arrive twice, in percent, 0 to 25
    #[arg(long, value_name = "PERCENT", default_value_t = 1.0, value_parser = percent)]
    duplicate: f64,
    /// Frames that five later frames overtake, in percent, 0 to 25
    #[arg(long, value_name = "PERCENT", default_value_t = 1.0, value_parser = percent)]
    reorder: f64,
    /// Frames that arrive truncated, in percent, 0 to 25
    #[arg(long, value_name = "PERCENT", default_value_t = 0.5, value_parser = percent)]
    truncate: f64,
}

fn percent(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(percent) if (0.0..=25.0).contains(&percent) => Ok(percent),
        _ => Err("must be 0 to 25 percent".to_string()),
    }
}

/// Makes two TAP devices with these names and joins them.
///
/// Returns after `duration`, or on SIGTERM or SIGINT. Prints `ready` once the devices exist, and
/// counters of each direction at the end.
///
/// # Errors
/// Fails if a signal handler cannot be installed, a device cannot be made, or reading or polling a
/// device fails.
pub fn join(
    names: [&str; 2],
    impairment: Impairment,
    seed: u64,
    duration: Duration,
) -> anyhow::Result<()> {
    let end = Arc::new(AtomicBool::new(false));
    for signal in [SIGTERM, SIGINT] {
        signal_hook::flag::register(signal, Arc::clone(&end))?;
    }
    let mut devices = [Tap::new(names[0])?, Tap::new(names[1])?];
    let mut lines = [Line::new(impairment, seed), Line::new(impairment, !seed)];
    println!("ready");
    let start = Instant::now();
    let mut buffer = vec![0; LONGEST];
    while start.elapsed() < duration && !end.load(Ordering::Relaxed) {
        wait(&devices)?;
        for (from, to) in [(0, 1), (1, 0)] {
            for _ in 0..TURN {
                let taken = devices[from].take(&mut buffer);
                let Some(frame) = taken.with_context(|| names[from].to_owned())? else {
                    break;
                };
                lines[from].carry(frame, Instant::now());
                lines[from].deliver(&mut devices[to]);
            }
            lines[from].hurry(Instant::now());
            lines[from].deliver(&mut devices[to]);
        }
    }
    for (from, to) in [(0, 1), (1, 0)] {
        println!("{} to {}: {}", names[from], names[to], lines[from].done);
    }
    Ok(())
}

/// Waits for a frame, at most until the next tick.
fn wait(devices: &[Tap; 2]) -> anyhow::Result<()> {
    let mut ready =
        [0, 1].map(|number: usize| PollFd::new(devices[number].as_fd(), PollFlags::POLLIN));
    match poll(&mut ready, TICK_MILLISECONDS) {
        Ok(_) | Err(Errno::EINTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// One direction of the joined pair.
struct Line {
    impairment: Impairment,
    random: fastrand::Rng,
    /// Reordered frames that wait to be overtaken, the oldest first.
    held: VecDeque<Held>,
    /// Frames that are ready to be written to the receiving device.
    arriving: Vec<Vec<u8>>,
    done: Done,
}

/// A reordered frame that waits.
struct Held {
    frame: Vec<u8>,
    /// The value of `Done::taken` at which the frame is delivered.
    until: u64,
    /// The time at which the frame is delivered at the latest.
    deadline: Instant,
}

/// Counters of frames by their fate. `refused` counts frames that the receiving device did not
/// take.
#[derive(Default, PartialEq, Debug)]
struct Done {
    taken: u64,
    lost: u64,
    repeated: u64,
    overtaken: u64,
    cut: u64,
    refused: u64,
}

impl Line {
    fn new(impairment: Impairment, seed: u64) -> Line {
        let random = fastrand::Rng::with_seed(seed);
        Line {
            impairment,
            random,
            held: VecDeque::new(),
            arriving: Vec::new(),
            done: Done::default(),
        }
    }

    /// Takes a frame from a device and decides its fate.
    fn carry(&mut self, frame: &[u8], now: Instant) {
        let Impairment { loss, duplicate, reorder, truncate } = self.impairment;
        let drawn = self.random.f64() * 100.0;
        let place = self.random.usize(..);
        self.done.taken += 1;
        if drawn < loss {
            self.done.lost += 1;
        } else if drawn < loss + duplicate {
            self.done.repeated += 1;
            self.arriving.extend([frame.to_vec(), frame.to_vec()]);
        } else if drawn < loss + duplicate + reorder {
            self.done.overtaken += 1;
            let (until, deadline) = (self.done.taken + OVERTAKEN_BY, now + HELD_AT_MOST);
            self.held.push_back(Held { frame: frame.to_vec(), until, deadline });
        } else if drawn < loss + duplicate + reorder + truncate && frame.len() > SHORTEST {
            self.done.cut += 1;
            let length = SHORTEST + place % (frame.len() - SHORTEST);
            self.arriving.push(frame[..length].to_vec());
        } else {
            self.arriving.push(frame.to_vec());
        }
        self.hurry(now);
    }

    /// Moves the reordered frames that are due to `arriving`.
    fn hurry(&mut self, now: Instant) {
        let taken = self.done.taken;
        let due = |held: &mut Held| held.until <= taken || held.deadline <= now;
        while let Some(held) = self.held.pop_front_if(due) {
            self.arriving.push(held.frame);
        }
    }

    /// Writes the arriving frames to the receiving device, which refuses them while it is down.
    fn deliver(&mut self, device: &mut Tap) {
        for frame in self.arriving.drain(..) {
            if device.give(&frame).is_err() {
                self.done.refused += 1;
            }
        }
    }
}

impl fmt::Display for Done {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Done { taken, lost, repeated, overtaken, cut, refused } = self;
        write!(
            f,
            "frames={taken} lost={lost} repeated={repeated} overtaken={overtaken} cut={cut} \
             refused={refused}"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: Impairment = Impairment { loss: 0.0, duplicate: 0.0, reorder: 0.0, truncate: 0.0 };

    /// Returns the frames that arrive if `frames` frames of 100 bytes, each filled with its number,
    /// are sent.
    fn arrivals(impairment: Impairment, seed: u64, frames: u8) -> (Vec<Vec<u8>>, Done) {
        let now = Instant::now();
        let mut line = Line::new(impairment, seed);
        for number in 0..frames {
            line.carry(&[number; 100], now);
        }
        line.hurry(now + HELD_AT_MOST);
        (line.arriving, line.done)
    }

    #[test]
    fn a_good_network_changes_nothing() {
        let (arrived, done) = arrivals(GOOD, 1, 200);
        assert_eq!(arrived, (0..200).map(|number| vec![number; 100]).collect::<Vec<_>>());
        assert_eq!(done, Done { taken: 200, ..Done::default() });
    }

    #[test]
    fn counters_match_the_frames() {
        let all = Impairment { loss: 10.0, duplicate: 10.0, reorder: 10.0, truncate: 10.0 };
        let (arrived, done) = arrivals(all, 7, 250);
        assert!(done.lost > 0 && done.repeated > 0 && done.overtaken > 0 && done.cut > 0);
        assert_eq!(arrived.len() as u64, 250 - done.lost + done.repeated);
        let cut = arrived.iter().filter(|frame| frame.len() < 100);
        assert_eq!(cut.count() as u64, done.cut);
        assert!(arrived.iter().all(|frame| frame.len() >= SHORTEST));
        let late = arrived.windows(2).filter(|pair| pair[0][0] > pair[1][0]);
        assert!(late.count() > 0);
    }

    #[test]
    fn the_seed_decides() {
        let bad = Impairment { loss: 20.0, ..GOOD };
        assert_eq!(arrivals(bad, 3, 250), arrivals(bad, 3, 250));
        assert_ne!(arrivals(bad, 3, 250), arrivals(bad, 4, 250));
    }

    #[test]
    fn a_reordered_frame_is_overtaken_by_five_or_delivered_in_time() {
        let now = Instant::now();
        let mut line = Line::new(Impairment { reorder: 25.0, ..GOOD }, 1);
        let mut number = 0;
        while line.held.is_empty() {
            line.carry(&[number; 20], now);
            number += 1;
        }
        line.arriving.clear();
        line.impairment = GOOD;
        for after in number..number + 5 {
            line.carry(&[after; 20], now);
        }
        let order = line.arriving.iter().map(|frame| frame[0]).collect::<Vec<_>>();
        let expected = (number..number + 5).chain([number - 1]).collect::<Vec<_>>();
        assert_eq!(order, expected);

        line.impairment = Impairment { reorder: 25.0, ..GOOD };
        while line.held.is_empty() {
            line.carry(&[0; 20], now);
        }
        line.hurry(now);
        assert_eq!(line.held.len(), 1);
        line.hurry(now + HELD_AT_MOST);
        assert!(line.held.is_empty());
    }
}
