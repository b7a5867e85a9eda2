//! NAPI threads, so that a firewall has its own CPU and its own packet queue (`queue` mode).

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, ensure};
use nix::time::{clock_getcpuclockid, clock_gettime};
use nix::unistd::Pid;
use skipstep_kernel::lab::realtime;

use crate::host::Host;
use crate::placement::pin;
use crate::program;

/// Real-time priority of the threads. It exceeds that of other tasks on their CPU, so the queue
/// overflows only by load.
const PRIORITY: u8 = 50;

/// Enables threaded NAPI for interfaces of a host and pins the new threads to a CPU. Returns the
/// threads' process numbers.
///
/// # Errors
/// Fails if the kernel lacks threaded NAPI, or refuses the CPU or the priority.
pub fn give_threads(host: &Host, interfaces: &[&str], cpu: usize) -> anyhow::Result<Vec<u32>> {
    let before = threads();
    for interface in interfaces {
        // /sys shows the devices of the namespace in which it was mounted; `ip netns exec` mounts
        // it again
        let order = format!("echo 1 >/sys/class/net/{interface}/threaded");
        let mut command = Command::new("ip");
        command.args(["netns", "exec", host.name(), "sh", "-c", &order]);
        program::run(&mut command, "").context("threaded NAPI")?;
    }
    let new: Vec<u32> = threads().difference(&before).copied().collect();
    ensure!(!new.is_empty(), "{}: the kernel started no NAPI thread", host.name());
    for &thread in &new {
        pin(Pid::from_raw(thread.cast_signed()), &[cpu])?;
        realtime::set_priority(thread, PRIORITY)?;
    }
    Ok(new)
}

/// Returns the CPU time of the threads, exact to the nanosecond.
///
/// # Errors
/// Fails if a thread no longer exists.
pub fn time(threads: &[u32]) -> anyhow::Result<Duration> {
    let time = |&thread: &u32| {
        let clock = clock_getcpuclockid(Pid::from_raw(thread.cast_signed()))?;
        anyhow::Ok(Duration::from(clock_gettime(clock)?))
    };
    threads.iter().map(time).sum::<anyhow::Result<Duration>>().context("time of NAPI's threads")
}

/// Returns all NAPI threads of all hosts.
fn threads() -> BTreeSet<u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let processes = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let is_napi = |process: &u32| {
        fs::read_to_string(format!("/proc/{process}/comm"))
            .is_ok_and(|name| name.starts_with("napi/"))
    };
    processes.filter(is_napi).collect()
}
