//! Sending so many a second from a thread, until others are through with their work.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// What falls due meanwhile is sent one right after the other.
const TICK: Duration = Duration::from_millis(1);

/// Sends one when it is due, so many a second, until the work is over; how many went. `send` is
/// told how many went before, and says whether it has sent one.
///
/// # Errors
/// One could not be sent.
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
