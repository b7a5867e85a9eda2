//! A thread that others do not take the CPU from.

use std::io;

use nix::libc;

use crate::error::{Context, Result};

/// Gives a thread (0 for the calling one) the CPU whenever it wants it (`SCHED_FIFO`), more
/// urgently than others with a lower `priority`; 0 makes it an ordinary thread again.
///
/// What an urgent thread starts, threads and programs, is ordinary. Most settings of networks under
/// /proc/sys and /sys are written with the kernel's lock of networks, and who finds it taken does
/// not wait: the system call begins anew until the lock is free. An urgent thread that does so
/// never lets go of its CPU, and if who has the lock wants that CPU, no more urgently, both stay as
/// they are.
pub fn set_priority(thread: u32, priority: u8) -> Result<()> {
    let policy = match priority {
        0 => libc::SCHED_OTHER,
        _ => libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK,
    };
    let parameter = libc::sched_param { sched_priority: priority.into() };
    // SAFETY: the parameter lives until the call returns
    let done = unsafe { libc::sched_setscheduler(thread as i32, policy, &raw const parameter) };
    outcome(done).context(|| format!("thread {thread}: SCHED_FIFO"))
}

/// Favours a thread (0 for the calling one) before all other ordinary ones as far as it goes (nice
/// -20). Unlike one of `SCHED_FIFO` it may have the whole CPU for more than
/// `kernel.sched_rt_runtime_us` of each second.
pub fn favour(thread: u32) -> Result<()> {
    // SAFETY: the call reads no memory of ours
    let done = unsafe { libc::setpriority(libc::PRIO_PROCESS, thread, -20) };
    outcome(done).context(|| format!("thread {thread}: nice -20"))
}

/// What a system call that gives back -1 has come to.
fn outcome(done: libc::c_int) -> io::Result<()> {
    if done < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
