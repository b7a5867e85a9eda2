//! Child processes that do not outlive their parent.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::Signal;
use nix::unistd::{Pid, getpid, getppid};

/// Lets the kernel kill the started process as soon as the thread that started it ends, even by
/// SIGKILL.
pub fn end_with_this_thread(command: &mut Command) -> &mut Command {
    let parent = getpid();
    // SAFETY: the child makes only system calls there, which are safe between fork and exec
    unsafe { command.pre_exec(move || keep_to(parent)) }
}

fn keep_to(parent: Pid) -> io::Result<()> {
    set_pdeathsig(Signal::SIGKILL)?;
    // the parent may have ended before the prctl took effect
    if getppid() == parent { Ok(()) } else { Err(io::ErrorKind::BrokenPipe.into()) }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;
    use std::thread;

    use super::*;

    #[test]
    fn a_child_goes_with_the_thread_that_started_it() {
        let start = || end_with_this_thread(Command::new("sleep").arg("60")).spawn();
        let mut child = thread::spawn(start).join().unwrap().unwrap();
        assert_eq!(child.wait().unwrap().signal(), Some(Signal::SIGKILL as i32));
    }
}
