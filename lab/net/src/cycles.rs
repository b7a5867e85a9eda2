//! The cycle counter of a CPU. It counts the cycles of all processes, of the kernel and of
//! interrupts. Many virtual machines have no such counter; the result then has the reason.

use std::io;

use perf_event::events::{Event, Hardware};
use perf_event::{Builder, Counter};

/// The cycle counter of one CPU. It runs only during [`Cycles::count_during`].
#[derive(Debug)]
pub struct Cycles(Counter);

impl Cycles {
    /// Opens the counter of a CPU.
    ///
    /// # Errors
    /// Fails if the CPU does not exist or has no such counter, or if the process lacks the right.
    pub fn on(cpu: usize) -> io::Result<Cycles> {
        Cycles::counting(Hardware::CPU_CYCLES, cpu)
    }

    fn counting(event: impl Event, cpu: usize) -> io::Result<Cycles> {
        let mut builder = Builder::new(event);
        builder.any_pid().one_cpu(cpu).include_kernel().include_hv().enabled(false);
        builder.build().map(Cycles)
    }

    /// Calls a function. Returns its result and the cycles of the CPU meanwhile, or None if the
    /// counter did not run all the time.
    pub fn count_during<T>(&mut self, work: impl FnOnce() -> T) -> (T, Option<u64>) {
        let started = self.0.reset().and_then(|()| self.0.enable()).is_ok();
        let done = work();
        let stopped = self.0.disable().is_ok();
        // if more counters are open than the CPU has, each runs for a part of the time
        let read = self.0.read_count_and_time().ok();
        let whole =
            read.filter(|read| started && stopped && read.time_running == read.time_enabled);
        (done, whole.map(|read| read.count))
    }
}

/// Returns the reason if cycles cannot be counted on a CPU, or None if they can.
pub fn no_cycles_reason(cpu: usize) -> Option<String> {
    Cycles::on(cpu).err().map(|error| format!("CPU {cpu} has no counter for this: {error}"))
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use perf_event::events::Software;

    use super::*;

    /// Uses the kernel's clock in place of the cycle counter, so the test runs on machines without
    /// one. Root is needed, because the clock counts all processes of a CPU.
    #[test]
    #[ignore = "needs root"]
    fn only_cycles_during_the_call_are_counted() {
        let mut clock = Cycles::counting(Software::CPU_CLOCK, 0).unwrap();
        let mut wait = |time: Duration| {
            let start = Instant::now();
            clock.count_during(|| while start.elapsed() < time {}).1.unwrap()
        };
        let (long, short) = (wait(Duration::from_millis(40)), wait(Duration::from_millis(5)));
        assert!((38_000_000..400_000_000).contains(&long), "{long}");
        assert!(short < long, "{short} {long}");
    }

    #[test]
    fn a_cpu_that_is_not_there_has_a_reason() {
        let reason = no_cycles_reason(1 << 14).unwrap();
        assert!(reason.starts_with("CPU 16384 has no counter for this: "), "{reason}");
    }
}
