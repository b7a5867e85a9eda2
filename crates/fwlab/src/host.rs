//! Hosts are network namespaces, with names that say which process made them, and programs that run there; or the one this
//! program was started on.

use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use nix::sched::{CloneFlags, setns};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

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
    daemons: Mutex<Vec<Child>>,
}

impl Host {
    /// Makes a host that knows only itself. `lab` tells apart the labs of one process.
    ///
    /// # Errors
    /// Not root, or no `ip`.
    pub fn new(lab: &str, role: &str) -> anyhow::Result<Host> {
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

    /// Starts a command there that stays; `input` is what it reads. It is on the CPU of who starts it.
    ///
    /// # Errors
    /// It cannot be run.
    pub fn start(&self, command: &mut Command, input: &str) -> anyhow::Result<()> {
        use std::io::Write;

        let mut child = self.inside(|| {
            command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
            let name = command.get_program().to_string_lossy().into_owned();
            command.spawn().with_context(|| name)
        })??;
        let pipe = child.stdin.take();
        self.daemons().push(child);
        // who ends before it read everything is found out by `ensure_running`
        let _ = pipe.map(|mut pipe| pipe.write_all(input.as_bytes()));
        Ok(())
    }

    /// Ends what was started.
    pub fn stop(&self) {
        for mut daemon in self.daemons().drain(..) {
            // one that has ended already is collected all the same
            let _ = daemon.kill();
            let _ = daemon.wait();
        }
    }

    /// Sees that nothing of what was started has ended.
    ///
    /// # Errors
    /// Something has; what it said is in the error.
    pub fn ensure_running(&self) -> anyhow::Result<()> {
        use std::io::Read;

        for daemon in self.daemons().iter_mut() {
            if let Some(status) = daemon.try_wait().context("wait")? {
                let mut said = Vec::new();
                if let Some(mut pipe) = daemon.stderr.take() {
                    pipe.read_to_end(&mut said).context("standard error")?;
                }
                bail!("{}", last_line(&String::from_utf8_lossy(&said), &status.to_string()));
            }
        }
        Ok(())
    }

    /// CPU time outside of the kernel of what was started here.
    pub fn daemons_time(&self) -> Duration {
        self.daemons().iter().filter_map(|daemon| crate::placement::user_time(daemon.id())).sum()
    }

    fn daemons(&self) -> std::sync::MutexGuard<'_, Vec<Child>> {
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
        if !self.is_made {
            return Ok(());
        }
        let path = PathBuf::from(NAMESPACES).join(&self.name);
        let file = File::open(&path).with_context(|| path.display().to_string())?;
        setns(file, CloneFlags::CLONE_NEWNET).with_context(|| path.display().to_string())
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

/// Removes a namespace, and before it what outlives one: programs whose starter was killed, and a skipstep
/// instance, pinned under its inode.
fn remove(name: &str) -> anyhow::Result<()> {
    let processes = run(Command::new("ip").args(["netns", "pids", name]), "")?;
    for process in processes.lines().filter_map(|line| line.trim().parse().ok()) {
        // this one has threads there that are about to end
        if process != std::process::id().cast_signed() {
            let _ = kill(Pid::from_raw(process), Signal::SIGKILL);
        }
    }
    crate::system::skipstep::forget(name);
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

/// Runs a command to its end with `input` to read; what it printed.
///
/// # Errors
/// It is not there or fails; what it said is in the error.
pub fn run(command: &mut Command, input: &str) -> anyhow::Result<String> {
    use std::io::Write;

    let name = command.get_program().to_string_lossy().into_owned();
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = match command.spawn() {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            bail!("{name}: no such program: it is needed here, install it")
        }
        other => other.with_context(|| name.clone())?,
    };
    let mut pipe = child.stdin.take().context("no pipe to the command")?;
    let output = thread::scope(|scope| {
        // who ends before it read everything says why on its standard error
        scope.spawn(move || pipe.write_all(input.as_bytes()));
        child.wait_with_output()
    });
    let output = output.with_context(|| name.clone())?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{name}: {}", last_line(&said, &output.status.to_string()));
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn last_line<'s>(said: &'s str, otherwise: &'s str) -> &'s str {
    said.lines().find(|line| !line.trim().is_empty()).unwrap_or(otherwise)
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
