//! Which CPU a thread runs on, how urgently, and what others did there meanwhile.

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

/// What /proc/stat counts in.
const TICK: Duration = Duration::from_millis(10);

/// Involuntary switches of a trial that are no reason to repeat it: the kernel's own threads cause
/// some.
const FEW_SWITCHES: i64 = 4;

/// Where a thread runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Placement {
    /// The only CPU it runs on.
    pub cpu: usize,
    /// Of `SCHED_FIFO`; 0 for an ordinary thread.
    pub priority: u8,
}

impl Placement {
    /// Puts the calling thread there.
    ///
    /// # Errors
    /// There is no such CPU. Where the system allows no urgent threads, as in some containers, it
    /// is an ordinary one: what others do to it is seen by [`Watch`].
    pub fn take(self) -> anyhow::Result<()> {
        pin(Pid::from_raw(0), &[self.cpu])?;
        let _ = realtime::set_priority(0, self.priority);
        Ok(())
    }

    /// Puts the calling thread there for work that wants the CPU for seconds without a break: the
    /// kernel keeps a share of every second from urgent threads (`kernel.sched_rt_runtime_us`), 50
    /// ms at once, so it is the most favoured of the ordinary ones instead.
    ///
    /// # Errors
    /// There is no such CPU.
    pub fn take_for_long(self) -> anyhow::Result<()> {
        Placement { priority: 0, ..self }.take()?;
        // where the system does not allow it, what others do is seen by Watch
        let _ = realtime::favour(0);
        Ok(())
    }

    /// Calls a function in a thread that is there. What it starts is on the same CPU, but ordinary.
    ///
    /// # Errors
    /// There is no such CPU.
    pub fn run<T: Send>(self, work: impl FnOnce() -> T + Send) -> anyhow::Result<T> {
        std::thread::scope(|scope| {
            let there = scope.spawn(|| self.take().map(|()| work()));
            there.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }
}

/// CPUs this process may use.
///
/// # Errors
/// The system does not tell.
pub fn cpus() -> anyhow::Result<Vec<usize>> {
    let set = sched_getaffinity(Pid::from_raw(0)).context("CPUs of this process")?;
    Ok((0..CpuSet::count()).filter(|&cpu| set.is_set(cpu).unwrap_or(false)).collect())
}

/// Lets a thread (0: the calling one) run on these CPUs alone.
///
/// # Errors
/// There are no such CPUs.
pub fn pin(thread: Pid, cpus: &[usize]) -> anyhow::Result<()> {
    let mut set = CpuSet::new();
    for &cpu in cpus {
        set.set(cpu).with_context(|| format!("CPU {cpu}"))?;
    }
    sched_setaffinity(thread, &set).with_context(|| format!("CPUs {cpus:?}"))
}

/// Watches the calling thread and its CPU from when it was made.
pub struct Watch {
    cpu: usize,
    user: Duration,
    steal: Duration,
    own_user: Duration,
    own: Duration,
    switches: i64,
}

/// Watches what programs other than these have of a CPU: this one, those it ran to their end, and
/// those that were started on some hosts.
pub struct KinWatch<'h> {
    cpu: usize,
    hosts: Vec<&'h Host>,
    user: Duration,
    steal: Duration,
    kin: Duration,
}

impl<'h> KinWatch<'h> {
    /// Begins.
    ///
    /// # Errors
    /// The system does not tell.
    pub fn begin(cpu: usize, hosts: Vec<&'h Host>) -> anyhow::Result<KinWatch<'h>> {
        let ((user, steal), kin) = (times(cpu)?, kin(&hosts)?);
        Ok(KinWatch { cpu, hosts, user, steal, kin })
    }

    /// What others had since, programs and the hypervisor.
    ///
    /// # Errors
    /// The system does not tell.
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

/// What came between the thread and its CPU.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Disturbance {
    /// Time the thread had the CPU.
    pub own: Duration,
    /// Programs of others on the same CPU.
    pub others: Duration,
    /// Time that the hypervisor took away.
    pub steal: Duration,
    /// How often the thread had to leave the CPU.
    pub switches: i64,
}

impl Watch {
    /// Begins to watch the calling thread, which runs on `cpu`.
    ///
    /// # Errors
    /// The system does not tell.
    pub fn begin(cpu: usize) -> anyhow::Result<Watch> {
        let (user, steal) = times(cpu)?;
        let (own_user, switches) = usage()?;
        Ok(Watch { cpu, user, steal, own_user, own: thread_time()?, switches })
    }

    /// What happened since.
    ///
    /// # Errors
    /// The system does not tell.
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
    /// Why what was measured meanwhile is not to be believed, where the thread wanted the CPU for
    /// so long without a break.
    pub fn why(&self, busy: Duration) -> Option<String> {
        let switches = FEW_SWITCHES * (busy.as_secs() as i64).max(1);
        self.beyond(busy.saturating_sub(self.own), busy / 50, TICK, switches)
    }

    /// The same of an ordinary thread. That one has to leave for the kernel's own threads now and
    /// then, all the more often if the other CPUs are busy: what it takes is counted, how often
    /// says nothing.
    pub fn of_ordinary(self) -> Disturbance {
        Disturbance { switches: 0, ..self }
    }

    /// The same of so long a time, where nobody knows when the thread wanted the CPU: all that
    /// others had of it counts.
    pub fn why_in(&self, time: Duration) -> Option<String> {
        let switches = FEW_SWITCHES * (time.as_secs() as i64).max(1);
        self.beyond(self.others, (2 * TICK).max(time / 50), TICK.max(time / 100), switches)
    }

    /// Which of these limits it is beyond; as much stolen time as its limit is too much.
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
            Some(format!("{:.1} ms of the CPU went to others", taken.as_secs_f64() * 1e3))
        } else if self.switches > switches {
            Some(format!("{} involuntary switches", self.switches))
        } else {
            None
        }
    }
}

/// Time that programs had on a CPU, and time that was stolen.
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

/// Time the calling thread spent outside of the kernel, and its involuntary switches.
fn usage() -> anyhow::Result<(Duration, i64)> {
    let usage = getrusage(UsageWho::RUSAGE_THREAD).context("getrusage")?;
    Ok((user_of(&usage), usage.involuntary_context_switches()))
}

fn user_of(usage: &Usage) -> Duration {
    let user = usage.user_time();
    Duration::new(user.tv_sec() as u64, user.tv_usec() as u32 * 1000)
}

/// CPU time of the calling thread.
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
    fn what_disturbs_is_named() {
        let disturbance = |steal, others, switches| Disturbance {
            own: Duration::ZERO,
            others: TICK * others,
            steal: TICK * steal,
            switches,
        };
        let moment = Duration::from_millis(100);
        assert_eq!(disturbance(0, 2, 4).why_in(moment), None);
        assert!(disturbance(1, 0, 0).why_in(moment).unwrap().contains("stolen"));
        assert!(disturbance(0, 3, 0).why_in(moment).unwrap().contains("others"));
        assert!(disturbance(0, 0, 5).why_in(moment).unwrap().contains("switches"));
        let minute = Duration::from_secs(60);
        assert_eq!(disturbance(59, 120, 240).why_in(minute), None, "more time, more of all");
        assert!(disturbance(60, 0, 0).why_in(minute).unwrap().contains("600 ms stolen"));
        let busy = Duration::from_millis;
        let had = Disturbance { own: Duration::from_millis(99), ..disturbance(0, 9, 0) };
        assert_eq!(had.why(busy(100)), None, "others had the CPU while it slept");
        assert!(had.why(busy(110)).unwrap().contains("11.0 ms"));
        let left = Disturbance { own: Duration::from_millis(99), ..disturbance(0, 0, 40) };
        assert!(left.why(busy(100)).unwrap().contains("40 involuntary switches"));
        assert_eq!(left.of_ordinary().why(busy(100)), None, "they took a hundredth");
        assert!(left.of_ordinary().why(busy(110)).unwrap().contains("11.0 ms"));
    }

    #[test]
    fn this_thread_is_watched() {
        let cpu = cpus().unwrap()[0];
        let watch = Watch::begin(cpu).unwrap();
        let disturbance = watch.end().unwrap();
        assert!(disturbance.switches >= 0);
    }
}
