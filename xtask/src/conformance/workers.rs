//! Distribution of the lines of files among threads.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Time between two messages about progress.
const PAUSE: Duration = Duration::from_secs(30);

/// Processes every line in one of `jobs` threads, in any order. The results are in the order of
/// `lines`. Each thread calls `begin` with its number to create its tools, because an evaluator
/// cannot move to another thread. A message about progress is printed every 30 seconds.
///
/// # Errors
/// Fails if `begin` or `work` fails.
pub fn share_out<T, R: Send>(
    lines: &[String],
    jobs: usize,
    begin: impl Fn(usize) -> anyhow::Result<T> + Sync,
    work: impl Fn(&mut T, &str) -> anyhow::Result<R> + Sync,
) -> anyhow::Result<Vec<R>> {
    let next = AtomicUsize::new(0);
    let results: Mutex<Vec<Option<R>>> = Mutex::new(lines.iter().map(|_| None).collect());
    let told = Mutex::new(Instant::now());
    let worker = |job| -> anyhow::Result<()> {
        let mut tools = begin(job)?;
        loop {
            let place = next.fetch_add(1, Ordering::Relaxed);
            let Some(line) = lines.get(place) else {
                return Ok(());
            };
            let result = work(&mut tools, line)?;
            results.lock().expect("no thread panics with the lock")[place] = Some(result);
            let mut told = told.lock().expect("no thread panics with the lock");
            if told.elapsed() >= PAUSE {
                *told = Instant::now();
                println!("conformance: at vector {place} of {}", lines.len());
            }
        }
    };
    std::thread::scope(|scope| {
        let jobs = 0..jobs.clamp(1, lines.len().max(1));
        let worker = &worker;
        let workers: Vec<_> = jobs.map(|job| scope.spawn(move || worker(job))).collect();
        workers.into_iter().try_for_each(|worker| worker.join().expect("workers catch panics"))
    })?;
    let results = results.into_inner().expect("no thread panics with the lock");
    Ok(results.into_iter().flatten().collect())
}
