//! Real-time priority for a thread.

use std::io;

use nix::libc;

use crate::error::{Context, Result};

/// Gives a thread (0 for the calling one) the CPU whenever it can run (`SCHED_FIFO`), ahead of
/// threads with a lower `priority`. Priority 0 makes it an ordinary thread again.
/// Threads and programs that a real-time thread starts are ordinary. Most network settings under
/// /proc/sys and /sys are written under the kernel's RTNL lock. A writer that finds this lock taken
/// does not sleep: the system call restarts until the lock is free. A real-time thread that does so
/// never frees its CPU. If the holder of the lock needs this CPU and has no higher priority, both
/// threads hang.
///
/// # Errors
/// Fails if there is no such thread, or if the process lacks CAP_SYS_NICE.
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

/// Favours a thread (0 for the calling one) over all other ordinary threads (nice -20). Unlike a
/// `SCHED_FIFO` thread, it may use the whole CPU for more than `kernel.sched_rt_runtime_us` of each
/// second.
///
/// # Errors
/// Fails if there is no such thread, or if the process lacks CAP_SYS_NICE.
pub fn favour(thread: u32) -> Result<()> {
    // SAFETY: the call reads no memory of this process
    let done = unsafe { libc::setpriority(libc::PRIO_PROCESS, thread, -20) };
    outcome(done).context(|| format!("thread {thread}: nice -20"))
}

/// Converts the return value of a system call, -1 for an error.
fn outcome(done: libc::c_int) -> io::Result<()> {
    if done < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
