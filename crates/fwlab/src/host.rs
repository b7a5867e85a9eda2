//! Hosts are network namespaces, with names that say which process made them, and programs that run
//! there; or the one this program was started on.

use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use nix::sched::{CloneFlags, setns};
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, geteuid};
use skipstep_kernel::lab::child::end_with_this_thread;

use crate::program::{run, said_first};
use crate::{pins, process};

/// Where `ip netns` keeps them.
const NAMESPACES: &str = "/run/netns";

/// What the name of each of ours begins with.
const PREFIX: &str = "fwlab-";

/// A host; it goes when this value does, and what runs there.
#[derive(Debug)]
pub struct Host {
    name: String,
    /// Whether it was made here, and goes with this value.
    is_made: bool,
    daemons: Mutex<Vec<Daemon>>,
}

/// A program that stays, and the thread that started it: the kernel kills it when that is gone,
/// however this process ends.
#[derive(Debug)]
struct Daemon {
    child: Child,
    /// The thread ends when nobody can tell it anything any more.
    stay: Sender<()>,
    keeper: JoinHandle<()>,
}

impl Daemon {
    fn end(mut self) {
        // one that has ended already is collected all the same
        let _ = self.child.kill();
        let _ = self.child.wait();
        drop(self.stay);
        let _ = self.keeper.join();
    }
}

impl Host {
    /// Makes a host that knows only itself. `lab` tells apart the labs of one process.
    ///
    /// # Errors
    /// Not root, or no `ip`.
    pub fn new(lab: &str, role: &str) -> anyhow::Result<Host> {
        ensure!(geteuid().is_root(), "needs root, to make networks");
        let name = format!("{PREFIX}{}-{lab}-{role}", std::process::id());
        let host = Host { name, is_made: true, daemons: Mutex::default() };
        run(Command::new("ip").args(["netns", "add", &host.name]), "")?;
        // clients that close first would run out of ports
        host.set("net/ipv4/tcp_tw_reuse", "1")?;
        host.set("net/ipv6/conf/all/disable_ipv6", "0")?;
        host.set("net/ipv6/conf/default/accept_dad", "0")?;
        host.set("net/ipv6/conf/default/accept_ra", "0")?;
        host.set("net/ipv6/conf/default/router_solicitations", "0")?;
        host.ip("link set lo up")?;
        Ok(host)
    }

    /// The host this program was started on, as it is.
    pub fn here() -> Host {
        Host { name: "this host".to_owned(), is_made: false, daemons: Mutex::default() }
    }

    /// Its name for `ip netns`, if it was made.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Carries out orders of ip(8), one a line.
    ///
    /// # Errors
    /// One was refused.
    pub fn ip(&self, orders: &str) -> anyhow::Result<()> {
        run(Command::new("ip").args(["-n", &self.name, "-batch", "-"]), orders).map(drop)
    }

    /// Sets a value under /proc/sys. Kernels without IPv6 have no such files for it.
    ///
    /// # Errors
    /// The kernel refuses it.
    pub fn set(&self, key: &str, value: &str) -> anyhow::Result<()> {
        let path = PathBuf::from("/proc/sys").join(key);
        self.inside(|| match fs::write(&path, value) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
            other => other.with_context(|| path.display().to_string()),
        })?
    }

    /// Runs a command there to its end; what it printed.
    ///
    /// # Errors
    /// It cannot be run or fails; what it said is in the error.
    pub fn run(&self, command: &mut Command, input: &str) -> anyhow::Result<String> {
        self.inside(|| run(command, input))?
    }

    /// Starts a command there that stays, but not longer than this process; `input` is what it
    /// reads. It is on the CPU of who starts it.
    ///
    /// # Errors
    /// It cannot be run.
    pub fn start(&self, mut command: Command, input: &str) -> anyhow::Result<()> {
        use std::io::Write;

        let name = command.get_program().to_string_lossy().into_owned();
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
        let place = self.place()?;
        let ((started, outcome), (stay, told)) = (channel(), channel());
        let keeper = thread::spawn(move || {
            let child = place
                .enter()
                .and_then(|()| end_with_this_thread(&mut command).spawn().with_context(|| name));
            // who started this thread waits for the first, and tells it nothing but that it may go
            let _ = started.send(child);
            let _ = told.recv();
        });
        let mut child = outcome.recv().context("a thread that starts a program")??;
        let pipe = child.stdin.take();
        self.daemons().push(Daemon { child, stay, keeper });
        // who ends before it read everything is found out by `ensure_running`
        let _ = pipe.map(|mut pipe| pipe.write_all(input.as_bytes()));
        Ok(())
    }

    /// Ends what was started.
    pub fn stop(&self) {
        self.daemons().drain(..).for_each(Daemon::end);
    }

    /// Sees that nothing of what was started has ended.
    ///
    /// # Errors
    /// Something has; what it said is in the error.
    pub fn ensure_running(&self) -> anyhow::Result<()> {
        use std::io::Read;

        for Daemon { child, .. } in self.daemons().iter_mut() {
            if let Some(status) = child.try_wait().context("wait")? {
                let mut said = Vec::new();
                if let Some(mut pipe) = child.stderr.take() {
                    pipe.read_to_end(&mut said).context("standard error")?;
                }
                bail!("{}", said_first(&String::from_utf8_lossy(&said), &status.to_string()));
            }
        }
        Ok(())
    }

    /// CPU time outside of the kernel of what was started here.
    pub fn daemons_time(&self) -> Duration {
        let time = |daemon: &Daemon| process::user_time(daemon.child.id());
        self.daemons().iter().filter_map(time).sum()
    }

    fn daemons(&self) -> std::sync::MutexGuard<'_, Vec<Daemon>> {
        self.daemons.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls a function in a thread that is on this host.
    ///
    /// # Errors
    /// The namespace is gone.
    pub fn inside<T: Send>(&self, work: impl FnOnce() -> T + Send) -> anyhow::Result<T> {
        thread::scope(|scope| {
            let there = scope.spawn(|| self.enter().map(|()| work()));
            there.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    /// Moves the calling thread there.
    ///
    /// # Errors
    /// The namespace is gone.
    pub fn enter(&self) -> anyhow::Result<()> {
        self.place()?.enter()
    }

    /// Where threads go that are to be there.
    fn place(&self) -> anyhow::Result<Place> {
        if !self.is_made {
            return Ok(Place(None));
        }
        let path = PathBuf::from(NAMESPACES).join(&self.name);
        File::open(&path).map(|file| Place(Some(file))).with_context(|| path.display().to_string())
    }

    /// Packets that its interfaces have received.
    ///
    /// # Errors
    /// The namespace is gone.
    pub fn packets(&self) -> anyhow::Result<u64> {
        let table = self.inside(|| fs::read_to_string("/proc/thread-self/net/dev"))??;
        let received =
            |line: &str| line.split_once(':')?.1.split_whitespace().nth(1)?.parse::<u64>().ok();
        Ok(table.lines().filter_map(received).sum::<u64>())
    }

    /// The kernel's number of an interface there.
    ///
    /// # Errors
    /// There is none of that name.
    pub fn index(&self, interface: &str) -> anyhow::Result<u32> {
        let index = self.inside(|| nix::net::if_::if_nametoindex(interface))?;
        index.with_context(|| format!("{}: {interface}", self.name))
    }
}

/// The network namespace of a host, or that of this program.
struct Place(Option<File>);

impl Place {
    fn enter(self) -> anyhow::Result<()> {
        let Some(file) = self.0 else { return Ok(()) };
        setns(file, CloneFlags::CLONE_NEWNET).context("network namespace")
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        self.stop();
        if self.is_made
            && let Err(error) = remove(&self.name)
        {
            eprintln!("fwlab: {}: {error:#}", self.name);
        }
    }
}

/// Removes a namespace, and before it what outlives one: programs whose starter was killed, and a
/// skipstep instance, pinned under its inode.
fn remove(name: &str) -> anyhow::Result<()> {
    let processes = run(Command::new("ip").args(["netns", "pids", name]), "")?;
    for process in processes.lines().filter_map(|line| line.trim().parse().ok()) {
        // this one has threads there that are about to end
        if process != std::process::id().cast_signed() {
            let _ = kill(Pid::from_raw(process), Signal::SIGKILL);
        }
    }
    pins::forget(name);
    run(Command::new("ip").args(["netns", "delete", name]), "").map(drop)
}

/// Takes away what killed runs left: namespaces with the number of a process that is no fwlab now.
///
/// # Errors
/// One cannot be removed.
pub fn sweep() -> anyhow::Result<usize> {
    let Ok(entries) = fs::read_dir(NAMESPACES) else {
        return Ok(0);
    };
    let mut swept = 0;
    for entry in entries.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if maker(&name).is_some_and(|process| !is_alive(process)) {
            remove(&name)?;
            swept += 1;
        }
    }
    Ok(swept)
}

/// Which process made a namespace of ours.
fn maker(name: &str) -> Option<u32> {
    name.strip_prefix(PREFIX)?.split_once('-')?.0.parse().ok()
}

/// Whether a process lives and is a program like this one.
fn is_alive(process: u32) -> bool {
    let kind = |process: &str| fs::read_to_string(format!("/proc/{process}/comm")).ok();
    let ours = kind("self");
    kind(&process.to_string()).is_some_and(|theirs| Some(theirs) == ours)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_say_who_made_a_host() {
        assert_eq!(maker("fwlab-12-router-client"), Some(12));
        assert_eq!(maker("fwlab-x-client"), None);
        assert_eq!(maker("skipstep-12-client"), None);
        assert!(is_alive(std::process::id()));
        assert!(!is_alive(u32::MAX));
    }

    #[test]
    fn a_command_that_fails_says_why() {
        let said = run(Command::new("sh").args(["-c", "echo why >&2; exit 3"]), "");
        assert_eq!(said.unwrap_err().to_string(), "sh: why");
        let missing = run(&mut Command::new("fwlab-no-such-program"), "").unwrap_err();
        assert!(missing.to_string().contains("no such program"));
        assert_eq!(run(&mut Command::new("cat"), "hello").unwrap(), "hello");
    }
}
