//! What is sent and received beside connections, as long as they go on.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::host::Host;
use crate::placement::Placement;

/// What falls due meanwhile is sent one right after the other.
const TICK: Duration = Duration::from_millis(1);

/// Sends one when it is due, so many a second, until the work is over; how many went. `send` is told how many went before, and
/// says whether it has sent one.
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

/// Has one thread send from the client's host until the work is over, and one receive until all has been sent; what came
/// of the work, and how much each of them says it was. `send` is told when the work is over, `receive` when all has been sent.
///
/// # Errors
/// One of the three fails.
pub(super) fn beside<T>(
    client: &Host,
    at: Placement,
    send: impl FnOnce(&AtomicBool) -> anyhow::Result<u64> + Send,
    receive: impl FnOnce(&AtomicBool) -> anyhow::Result<u64> + Send,
    work: impl FnOnce() -> anyhow::Result<T>,
) -> anyhow::Result<(T, u64, u64)> {
    let (sent_all, over) = (AtomicBool::new(false), AtomicBool::new(false));
    thread::scope(|scope| {
        let received = scope.spawn(|| receive(&sent_all));
        let sent = scope.spawn(|| {
            client.enter()?;
            at.take()?;
            send(&over)
        });
        let done = work();
        over.store(true, Ordering::Relaxed);
        let sent = sent.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        sent_all.store(true, Ordering::Relaxed);
        let received = received.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        Ok((done?, sent?, received?))
    })
}
