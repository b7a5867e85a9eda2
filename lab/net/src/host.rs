//! Hosts: network namespaces whose names contain the process that made them, with the programs that
//! run there. The host on which this program was started is one, too.

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

use crate::program::{first_message, run};
use crate::{pins, process};

/// Directory in which `ip netns` keeps namespaces.
const NAMESPACES: &str = "/run/netns";

/// Prefix of the names of fwlab's namespaces.
const PREFIX: &str = "fwlab-";

/// A host. Dropping it ends its programs, and removes the namespace if this process made it.
#[derive(Debug)]
pub struct Host {
    name: String,
    /// True if this process made the namespace.
    is_made: bool,
    daemons: Mutex<Vec<Daemon>>,
}

/// A program that runs in the background, and the thread that started it. The kernel kills the
/// program when that thread ends, even if this process is killed.
#[derive(Debug)]
struct Daemon {
    child: Child,
    /// Keeps the thread alive: the thread ends when this sender is dropped.
    stay: Sender<()>,
    keeper: JoinHandle<()>,
}

impl Daemon {
    fn end(mut self) {
        // a program that has ended already must be waited for, too
        let _ = self.child.kill();
        let _ = self.child.wait();
        drop(self.stay);
        let _ = self.keeper.join();
    }
}

impl Host {
    /// Makes a host without links. `lab` distinguishes the labs of one process.
    ///
    /// # Errors
    /// Fails without root, without `ip`, or if the kernel refuses a setting.
    pub fn new(lab: &str, role: &str) -> anyhow::Result<Host> {
        ensure!(geteuid().is_root(), "must run as root, to make network namespaces");
        let name = format!("{PREFIX}{}-{lab}-{role}", std::process::id());
        let host = Host { name, is_made: true, daemons: Mutex::default() };
        run(Command::new("ip").args(["netns", "add", &host.name]), "")?;
        // otherwise clients that close first run out of ports
        host.set("net/ipv4/tcp_tw_reuse", "1")?;
        host.set("net/ipv6/conf/all/disable_ipv6", "0")?;
        host.set("net/ipv6/conf/default/accept_dad", "0")?;
        host.set("net/ipv6/conf/default/accept_ra", "0")?;
        host.set("net/ipv6/conf/default/router_solicitations", "0")?;
        host.ip("link set lo up")?;
        Ok(host)
    }

    /// Returns the host on which this program was started.
    pub fn here() -> Host {
        Host { name: "this host".to_owned(), is_made: false, daemons: Mutex::default() }
    }

    /// Returns the name for `ip netns`, or "this host" if this process did not make it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Runs commands of ip(8), one on each line.
    ///
    /// # Errors
    /// Fails if `ip` refuses a command.
    pub fn ip(&self, orders: &str) -> anyhow::Result<()> {
        run(Command::new("ip").args(["-n", &self.name, "-batch", "-"]), orders).map(drop)
    }

    /// Sets a value under /proc/sys. A file that does not exist is skipped, because kernels without
    /// IPv6 lack its files.
    ///
    /// # Errors
    /// Fails if the namespace no longer exists, or if the kernel refuses the value.
    pub fn set(&self, key: &str, value: &str) -> anyhow::Result<()> {
        let path = PathBuf::from("/proc/sys").join(key);
        self.inside(|| match fs::write(&path, value) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
            other => other.with_context(|| path.display().to_string()),
        })?
    }

    /// Runs a command there to its end, and returns its standard output.
    ///
    /// # Errors
    /// Fails if the command cannot be run or fails; the error has its message.
    pub fn run(&self, command: &mut Command, input: &str) -> anyhow::Result<String> {
        self.inside(|| run(command, input))?
    }

    /// Starts a command there that runs in the background, at most as long as this process. `input`
    /// is its standard input. It inherits the CPU of the calling thread.
    ///
    /// # Errors
    /// Fails if the command cannot be run.
    pub fn start(&self, mut command: Command, input: &str) -> anyhow::Result<()> {
        use std::io::Write;

        let name = command.get_program().to_string_lossy().into_owned();
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
        let namespace = self.namespace()?;
        let ((started, outcome), (stay, told)) = (channel(), channel());
        let keeper = thread::spawn(move || {
            let child = namespace
                .enter()
                .and_then(|()| end_with_this_thread(&mut command).spawn().with_context(|| name));
            // the caller waits for the result; the thread then waits until the caller drops `stay`
            let _ = started.send(child);
            let _ = told.recv();
        });
        let mut child = outcome.recv().context("thread for starting a program")??;
        let pipe = child.stdin.take();
        self.daemons().push(Daemon { child, stay, keeper });
        // `ensure_running` reports a program that ended before it read its input
        let _ = pipe.map(|mut pipe| pipe.write_all(input.as_bytes()));
        Ok(())
    }

    /// Ends all programs started here.
    pub fn stop(&self) {
        self.daemons().drain(..).for_each(Daemon::end);
    }

    /// Checks that all programs started here still run.
    ///
    /// # Errors
    /// Fails if a program has ended; the error has its message.
    pub fn ensure_running(&self) -> anyhow::Result<()> {
        use std::io::Read;

        for Daemon { child, .. } in self.daemons().iter_mut() {
            if let Some(status) = child.try_wait().context("wait")? {
                let mut said = Vec::new();
                if let Some(mut pipe) = child.stderr.take() {
                    pipe.read_to_end(&mut said).context("standard error")?;
                }
                bail!("{}", first_message(&String::from_utf8_lossy(&said), &status.to_string()));
            }
        }
        Ok(())
    }

    /// Returns the user CPU time of the programs started here.
    pub fn daemons_time(&self) -> Duration {
        let time = |daemon: &Daemon| process::user_time(daemon.child.id());
        self.daemons().iter().filter_map(time).sum()
    }

    fn daemons(&self) -> std::sync::MutexGuard<'_, Vec<Daemon>> {
        self.daemons.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls a function in a new thread on this host.
    ///
    /// # Errors
    /// Fails if the namespace no longer exists.
    pub fn inside<T: Send>(&self, work: impl FnOnce() -> T + Send) -> anyhow::Result<T> {
        thread::scope(|scope| {
            let there = scope.spawn(|| self.enter().map(|()| work()));
            there.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    /// Moves the calling thread to this host.
    ///
    /// # Errors
    /// Fails if the namespace no longer exists.
    pub fn enter(&self) -> anyhow::Result<()> {
        self.namespace()?.enter()
    }

    /// Opens the network namespace of this host.
    fn namespace(&self) -> anyhow::Result<Namespace> {
        if !self.is_made {
            return Ok(Namespace(None));
        }
        let path = PathBuf::from(NAMESPACES).join(&self.name);
        File::open(&path)
            .map(|file| Namespace(Some(file)))
            .with_context(|| path.display().to_string())
    }

    /// Returns the number of packets that its interfaces have received.
    ///
    /// # Errors
    /// Fails if the namespace no longer exists.
    pub fn packets(&self) -> anyhow::Result<u64> {
        let table = self.inside(|| fs::read_to_string("/proc/thread-self/net/dev"))??;
        let received =
            |line: &str| line.split_once(':')?.1.split_whitespace().nth(1)?.parse::<u64>().ok();
        Ok(table.lines().filter_map(received).sum::<u64>())
    }

    /// Returns the kernel's index of an interface there.
    ///
    /// # Errors
    /// Fails if there is no interface of that name.
    pub fn index(&self, interface: &str) -> anyhow::Result<u32> {
        let index = self.inside(|| nix::net::if_::if_nametoindex(interface))?;
        index.with_context(|| format!("{}: {interface}", self.name))
    }
}

/// The network namespace of a host, or None for the host of this program.
struct Namespace(Option<File>);

impl Namespace {
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

/// Removes a namespace. Before that, it kills programs that outlived their starter, and removes the
/// pins of a skipstep instance, which are named by the namespace's inode.
fn remove(name: &str) -> anyhow::Result<()> {
    let processes = run(Command::new("ip").args(["netns", "pids", name]), "")?;
    for process in processes.lines().filter_map(|line| line.trim().parse().ok()) {
        // this process may have threads there that are about to end
        if process != std::process::id().cast_signed() {
            let _ = kill(Pid::from_raw(process), Signal::SIGKILL);
        }
    }
    pins::remove_instance(name);
    run(Command::new("ip").args(["netns", "delete", name]), "").map(drop)
}

/// Removes the namespaces that killed runs left: those whose name has the number of a process that
/// is not a running fwlab. Returns their number.
///
/// # Errors
/// Fails if a namespace cannot be removed.
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

/// Returns the process number in the name of one of fwlab's namespaces.
fn maker(name: &str) -> Option<u32> {
    name.strip_prefix(PREFIX)?.split_once('-')?.0.parse().ok()
}

/// Returns true if a process runs and has the same program name as this one.
fn is_alive(process: u32) -> bool {
    let kind = |process: &str| fs::read_to_string(format!("/proc/{process}/comm")).ok();
    let ours = kind("self");
    kind(&process.to_string()).is_some_and(|theirs| Some(theirs) == ours)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_names_contain_the_process() {
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
