//! Threads that take packets from a device, so that a firewall has a CPU and a queue of its own
//! (`queue` mode).

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

/// More urgent than what else runs on that CPU, so that its queue overflows by load and not by
/// waiting.
const PRIORITY: u8 = 50;

/// Lets threads take the packets of interfaces of a host, and ties them to a CPU. The threads.
///
/// # Errors
/// The kernel has no such threads.
pub fn give_threads(host: &Host, interfaces: &[&str], cpu: usize) -> anyhow::Result<Vec<u32>> {
    let before = threads();
    for interface in interfaces {
        // /sys shows the devices of the namespace it was mounted in, and `ip netns exec` mounts it
        // anew
        let order = format!("echo 1 >/sys/class/net/{interface}/threaded");
        let mut command = Command::new("ip");
        command.args(["netns", "exec", host.name(), "sh", "-c", &order]);
        program::run(&mut command, "").context("threaded NAPI")?;
    }
    let new: Vec<u32> = threads().difference(&before).copied().collect();
    ensure!(!new.is_empty(), "{}: the kernel gave no thread for its packets", host.name());
    for &thread in &new {
        pin(Pid::from_raw(thread.cast_signed()), &[cpu])?;
        realtime::set_priority(thread, PRIORITY)?;
    }
    Ok(new)
}

/// CPU time that threads had, exact to the nanosecond.
///
/// # Errors
/// One of them is gone.
pub fn time(threads: &[u32]) -> anyhow::Result<Duration> {
    let time = |&thread: &u32| {
        let clock = clock_getcpuclockid(Pid::from_raw(thread.cast_signed()))?;
        anyhow::Ok(Duration::from(clock_gettime(clock)?))
    };
    threads.iter().map(time).sum::<anyhow::Result<Duration>>().context("time of NAPI's threads")
}

/// All threads of that kind, of whatever host.
fn threads() -> BTreeSet<u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let processes = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let is_napi = |process: &u32| {
        fs::read_to_string(format!("/proc/{process}/comm"))
            .is_ok_and(|name| name.starts_with("napi/"))
    };
    processes.filter(is_napi).collect()
}
