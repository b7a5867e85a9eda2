//! The CPU and the priority of threads, and the CPU time that others took from them.

use std::fs;
use std::time::Duration;

use anyhow::Context;
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::sys::resource::{Usage, UsageWho, getrusage};
use nix::time::{ClockId, clock_gettime};
use nix::unistd::Pid;
use serde::{Deserialize, Serialize};
use skipstep_kernel::lab::realtime;

use crate::host::Host;
use crate::process::user_time;

/// The unit of times in /proc/stat.
const TICK: Duration = Duration::from_millis(10);

/// The most involuntary context switches a second without a repeat: the kernel's own threads cause
/// some.
const FEW_SWITCHES: i64 = 4;

/// The CPU and the priority of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Placement {
    /// The only CPU of the thread.
    pub cpu: usize,
    /// The priority of `SCHED_FIFO`; 0 for a thread without real-time priority.
    pub priority: u8,
}

impl Placement {
    /// Moves the calling thread to the CPU and sets its priority. Continues without the priority if
    /// the system forbids it, as some containers do; [`Watch`] then sees the time that others take.
    ///
    /// # Errors
    /// Fails if there is no such CPU.
    pub fn take(self) -> anyhow::Result<()> {
        pin(Pid::from_raw(0), &[self.cpu])?;
        let _ = realtime::set_priority(0, self.priority);
        Ok(())
    }

    /// Moves the calling thread to the CPU for work of several seconds without a break. The kernel
    /// keeps a share of every second from real-time threads (`kernel.sched_rt_runtime_us`), 50 ms
    /// at a time. So the thread gets the highest priority of ordinary threads instead.
    ///
    /// # Errors
    /// Fails if there is no such CPU.
    pub fn take_for_long(self) -> anyhow::Result<()> {
        Placement { priority: 0, ..self }.take()?;
        // if the system forbids it, Watch sees the time that others take
        let _ = realtime::favour(0);
        Ok(())
    }

    /// Calls a function in a new thread at the placement. Processes that it starts run on the same
    /// CPU, without the priority.
    ///
    /// # Errors
    /// Fails if there is no such CPU.
    pub fn run<T: Send>(self, work: impl FnOnce() -> T + Send) -> anyhow::Result<T> {
        std::thread::scope(|scope| {
            let there = scope.spawn(|| self.take().map(|()| work()));
            there.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }
}

/// Returns the CPUs that this process may use, in ascending order.
///
/// # Errors
/// Fails if sched_getaffinity(2) fails.
pub fn cpus() -> anyhow::Result<Vec<usize>> {
    let set = sched_getaffinity(Pid::from_raw(0)).context("CPUs of this process")?;
    Ok((0..CpuSet::count()).filter(|&cpu| set.is_set(cpu).unwrap_or(false)).collect())
}

/// Restricts a thread (0: the calling thread) to these CPUs.
///
/// # Errors
/// Fails if there are no such CPUs.
pub fn pin(thread: Pid, cpus: &[usize]) -> anyhow::Result<()> {
    let mut set = CpuSet::new();
    for &cpu in cpus {
        set.set(cpu).with_context(|| format!("CPU {cpu}"))?;
    }
    sched_setaffinity(thread, &set).with_context(|| format!("CPUs {cpus:?}"))
}

/// A watch of the calling thread and its CPU.
pub struct Watch {
    cpu: usize,
    user: Duration,
    steal: Duration,
    own_user: Duration,
    own: Duration,
    switches: i64,
}

/// A watch of a CPU for the time that other programs take. This program, its ended children and the
/// daemons on `hosts` do not count as others.
pub struct KinWatch<'h> {
    cpu: usize,
    hosts: Vec<&'h Host>,
    user: Duration,
    steal: Duration,
    kin: Duration,
}

impl<'h> KinWatch<'h> {
    /// Begins to watch.
    ///
    /// # Errors
    /// Fails if /proc/stat or getrusage(2) cannot be read.
    pub fn begin(cpu: usize, hosts: Vec<&'h Host>) -> anyhow::Result<KinWatch<'h>> {
        let ((user, steal), kin) = (times(cpu)?, kin(&hosts)?);
        Ok(KinWatch { cpu, hosts, user, steal, kin })
    }

    /// Returns the time that other programs and the hypervisor took since the start.
    ///
    /// # Errors
    /// Fails if /proc/stat or getrusage(2) cannot be read.
    pub fn end(&self) -> anyhow::Result<Disturbance> {
        let kin = kin(&self.hosts)?.saturating_sub(self.kin);
        let (user, steal) = times(self.cpu)?;
        Ok(Disturbance {
            others: user.saturating_sub(self.user).saturating_sub(kin),
            steal: steal.saturating_sub(self.steal),
            ..Disturbance::default()
        })
    }
}

fn kin(hosts: &[&Host]) -> anyhow::Result<Duration> {
    let own = user_time(std::process::id()).unwrap_or_default();
    let ended = getrusage(UsageWho::RUSAGE_CHILDREN).context("getrusage")?;
    let daemons: Duration = hosts.iter().map(|host| host.daemons_time()).sum();
    Ok(own + user_of(&ended) + daemons)
}

/// The use of a CPU by a thread and by others.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Disturbance {
    /// Time that the thread had the CPU.
    pub own: Duration,
    /// Time that other programs had the CPU.
    pub others: Duration,
    /// Time that the hypervisor took.
    pub steal: Duration,
    /// Number of involuntary context switches of the thread.
    pub switches: i64,
}

impl Watch {
    /// Begins to watch the calling thread, which runs on `cpu`.
    ///
    /// # Errors
    /// Fails if /proc/stat, getrusage(2) or the thread's clock cannot be read.
    pub fn begin(cpu: usize) -> anyhow::Result<Watch> {
        let (user, steal) = times(cpu)?;
        let (own_user, switches) = usage()?;
        Ok(Watch { cpu, user, steal, own_user, own: thread_time()?, switches })
    }

    /// Returns the use of the CPU since the start.
    ///
    /// # Errors
    /// Fails if /proc/stat, getrusage(2) or the thread's clock cannot be read.
    pub fn end(&self) -> anyhow::Result<Disturbance> {
        let own = thread_time()?;
        let (own_user, switches) = usage()?;
        let (user, steal) = times(self.cpu)?;
        let others = user.saturating_sub(self.user);
        Ok(Disturbance {
            own: own.saturating_sub(self.own),
            others: others.saturating_sub(own_user.saturating_sub(self.own_user)),
            steal: steal.saturating_sub(self.steal),
            switches: switches - self.switches,
        })
    }
}

impl Disturbance {
    /// Returns the reason to doubt a measurement in which the thread needed the CPU for `busy`
    /// without a break. None if it had the CPU.
    pub fn doubt_if_busy(&self, busy: Duration) -> Option<String> {
        let switches = FEW_SWITCHES * (busy.as_secs() as i64).max(1);
        self.beyond(busy.saturating_sub(self.own), busy / 50, TICK, switches)
    }

    /// Returns the disturbance without the context switches, for a thread without real-time
    /// priority. The kernel's own threads interrupt such a thread often, all the more if the other
    /// CPUs are busy. Only the time that they take matters.
    pub fn without_switches(self) -> Disturbance {
        Disturbance { switches: 0, ..self }
    }

    /// Returns the reason to doubt a measurement of this length, if the thread did not need the CPU
    /// all the time. All time that others had the CPU counts. None if it was little.
    pub fn doubt_within(&self, time: Duration) -> Option<String> {
        let switches = FEW_SWITCHES * (time.as_secs() as i64).max(1);
        self.beyond(self.others, (2 * TICK).max(time / 50), TICK.max(time / 100), switches)
    }

    /// Returns the first limit that the disturbance exceeds. Stolen time is too much if it reaches
    /// its limit.
    fn beyond(
        &self,
        taken: Duration,
        most: Duration,
        steal: Duration,
        switches: i64,
    ) -> Option<String> {
        if self.steal >= steal {
            Some(format!("{} ms stolen by the hypervisor", self.steal.as_millis()))
        } else if taken > most {
            Some(format!("other processes used the CPU for {:.1} ms", taken.as_secs_f64() * 1e3))
        } else if self.switches > switches {
            Some(format!("{} involuntary switches", self.switches))
        } else {
            None
        }
    }
}

/// Returns the time that programs had on a CPU outside of the kernel, and the stolen time.
fn times(cpu: usize) -> anyhow::Result<(Duration, Duration)> {
    let table = fs::read_to_string("/proc/stat").context("/proc/stat")?;
    parse_times(&table, cpu).with_context(|| format!("/proc/stat: CPU {cpu}"))
}

fn parse_times(table: &str, cpu: usize) -> Option<(Duration, Duration)> {
    let start = format!("cpu{cpu} ");
    let line = table.lines().find_map(|line| line.strip_prefix(&start))?;
    let ticks: Vec<u32> = line.split_whitespace().map(|word| word.parse().unwrap_or(0)).collect();
    Some((TICK * (ticks.first()? + ticks.get(1)?), TICK * *ticks.get(7)?))
}

/// Returns the time that the calling thread spent outside of the kernel, and its involuntary
/// switches.
fn usage() -> anyhow::Result<(Duration, i64)> {
    let usage = getrusage(UsageWho::RUSAGE_THREAD).context("getrusage")?;
    Ok((user_of(&usage), usage.involuntary_context_switches()))
}

fn user_of(usage: &Usage) -> Duration {
    let user = usage.user_time();
    Duration::new(user.tv_sec() as u64, user.tv_usec() as u32 * 1000)
}

/// Returns the CPU time of the calling thread.
fn thread_time() -> anyhow::Result<Duration> {
    Ok(clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).context("thread's clock")?.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_of_a_cpu_is_read() {
        let table = "cpu  9 9 9 9 9 9 9 9\ncpu1 10 2 3 4 5 6 7 8 0 0\ncpu10 1 1 1 1 1 1 1 1\n";
        let (user, steal) = parse_times(table, 1).unwrap();
        assert_eq!((user, steal), (TICK * 12, TICK * 8));
        assert!(parse_times(table, 0).is_none());
    }

    #[test]
    fn disturbances_are_named() {
        let disturbance = |steal, others, switches| Disturbance {
            own: Duration::ZERO,
            others: TICK * others,
            steal: TICK * steal,
            switches,
        };
        let moment = Duration::from_millis(100);
        assert_eq!(disturbance(0, 2, 4).doubt_within(moment), None);
        assert!(disturbance(1, 0, 0).doubt_within(moment).unwrap().contains("stolen"));
        assert!(disturbance(0, 3, 0).doubt_within(moment).unwrap().contains("other processes"));
        assert!(disturbance(0, 0, 5).doubt_within(moment).unwrap().contains("switches"));
        let minute = Duration::from_secs(60);
        assert_eq!(disturbance(59, 120, 240).doubt_within(minute), None, "more time, more of all");
        assert!(disturbance(60, 0, 0).doubt_within(minute).unwrap().contains("600 ms stolen"));
        let busy = Duration::from_millis;
        let had = Disturbance { own: Duration::from_millis(99), ..disturbance(0, 9, 0) };
        assert_eq!(had.doubt_if_busy(busy(100)), None, "others had the CPU while it slept");
        assert!(had.doubt_if_busy(busy(110)).unwrap().contains("11.0 ms"));
        let left = Disturbance { own: Duration::from_millis(99), ..disturbance(0, 0, 40) };
        assert!(left.doubt_if_busy(busy(100)).unwrap().contains("40 involuntary switches"));
        assert_eq!(left.without_switches().doubt_if_busy(busy(100)), None, "they took a hundredth");
        assert!(left.without_switches().doubt_if_busy(busy(110)).unwrap().contains("11.0 ms"));
    }

    #[test]
    fn this_thread_is_watched() {
        let cpu = cpus().unwrap()[0];
        let watch = Watch::begin(cpu).unwrap();
        let disturbance = watch.end().unwrap();
        assert!(disturbance.switches >= 0);
    }
}
