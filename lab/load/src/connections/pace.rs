//! Sending at a constant rate from one thread, until other threads have finished their work.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Sleep between checks. Packets that fall due during a sleep are sent one right after the other.
const TICK: Duration = Duration::from_millis(1);

/// Calls `send` at `rate` per second until `over` is set, and returns the number of packets sent.
/// `send` takes the number of packets sent before, and returns true if it sent one.
///
/// # Errors
/// Fails if `send` fails.
pub(super) fn paced(
    rate: f64,
    over: &AtomicBool,
    mut send: impl FnMut(u64) -> anyhow::Result<bool>,
) -> anyhow::Result<u64> {
    let start = Instant::now();
    let mut sent = 0;
    while !over.load(Ordering::Relaxed) {
        if start.elapsed().as_secs_f64() * rate <= sent as f64 {
            thread::sleep(TICK);
        } else {
            sent += u64::from(send(sent)?);
        }
    }
    Ok(sent)
}
