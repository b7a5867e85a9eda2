//! Runs the commands of a workload. One thread sleeps until a child ends, a gap is over or a signal
//! comes.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap, VecDeque};
use std::io::{ErrorKind, Read};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{Signal, killpg};
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid, waitpid};
use nix::unistd::Pid;
use serde::Serialize;
use signal_hook::SigId;
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGTERM};
use signal_hook::low_level::{pipe, unregister};

use super::language::Job;
use super::random::Random;

/// Time between SIGTERM and SIGKILL for commands.
const GRACE: Duration = Duration::from_secs(2);

/// The result of a workload.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct WorkloadResult {
    /// Seconds from the beginning to the end of the last command.
    pub seconds: f64,
    /// True if a signal ended the workload early.
    pub interrupted: bool,
    /// The commands in the order of their starts.
    pub executed: Vec<Executed>,
}

/// A command that was run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Executed {
    /// The command's words.
    pub command: Vec<String>,
    /// The command's line in the file, from 1.
    pub line: usize,
    /// Time of the start, in seconds since the workload began.
    pub start: f64,
    /// Seconds between the scheduled start after a gap and the actual start.
    pub late: f64,
    /// Run time in seconds.
    pub seconds: f64,
    /// The way in which the command ended.
    pub ending: Ending,
}

/// The way in which a command ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    /// The command exited with this status.
    Exit(i32),
    /// The signal of this name killed the command.
    Signal(String),
    /// The command could not be started, for this reason.
    NotStarted(String),
}

impl Ending {
    /// Returns true if the exit status is 0.
    pub fn is_success(&self) -> bool {
        *self == Ending::Exit(0)
    }
}

/// The destination of the commands' standard output. Standard error is always inherited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Printed {
    /// The standard output of this program.
    Through,
    /// The standard error of this program.
    ToErrors,
    /// Discarded.
    Nowhere,
}

/// Runs a workload to its end, or until SIGINT, SIGTERM or SIGHUP. A signal ends all commands: they
/// get SIGTERM, and SIGKILL after two seconds or with a second signal. No command is left running.
///
/// # Errors
/// Fails if a signal handler cannot be installed, or if waiting for children fails.
pub fn execute(job: &Job, printed: Printed) -> std::io::Result<WorkloadResult> {
    let signals = Signals::watch()?;
    let mut executor = Executor {
        begin: Instant::now(),
        printed,
        groups: Vec::new(),
        free: Vec::new(),
        ready: VecDeque::from([Step::Start { job, parent: None, due: None }]),
        gaps: BinaryHeap::new(),
        children: HashMap::new(),
        executed: BTreeMap::new(),
        started: 0,
    };
    let interrupted = executor.run(&signals)?;
    let executed: Vec<Executed> = executor.executed.into_values().collect();
    let end = executed.iter().map(|one| one.start + one.seconds).fold(0.0, f64::max);
    Ok(WorkloadResult { seconds: end, interrupted, executed })
}

/// A step that can be taken at once.
enum Step<'a> {
    Start {
        job: &'a Job,
        parent: Option<usize>,
        due: Option<Instant>,
    },
    /// A job in the group of this number has ended. None means the whole workload.
    Done(Option<usize>),
}

/// A job that contains jobs and is running.
struct Group<'a> {
    parent: Option<usize>,
    jobs: &'a [Job],
    /// Number of jobs still to be started, with repeats.
    left: u64,
    /// Number of jobs that are running.
    running: u64,
    order: Order,
}

enum Order {
    Sequential,
    Parallel,
    Random { random: Random, low: f64, high: f64, due: Instant },
}

/// A child that is running.
struct Child<'a> {
    number: u64,
    job: &'a Job,
    parent: Option<usize>,
    start: Instant,
    late: Duration,
}

struct Executor<'a> {
    begin: Instant,
    printed: Printed,
    groups: Vec<Group<'a>>,
    /// Numbers of groups that have ended.
    free: Vec<usize>,
    ready: VecDeque<Step<'a>>,
    /// The time of the next start in each group with gaps.
    gaps: BinaryHeap<Reverse<(Instant, usize)>>,
    children: HashMap<Pid, Child<'a>>,
    /// Commands that have ended, by the order of their starts.
    executed: BTreeMap<u64, Executed>,
    started: u64,
}

impl<'a> Executor<'a> {
    /// Runs all steps. Returns true if a signal interrupted the workload.
    fn run(&mut self, signals: &Signals) -> std::io::Result<bool> {
        loop {
            if signals.came() {
                self.end_all(signals)?;
                return Ok(true);
            }
            if let Some(step) = self.ready.pop_front() {
                match step {
                    Step::Start { job, parent, due } => self.start(job, parent, due),
                    Step::Done(group) => self.done(group),
                }
                continue;
            }
            self.start_after_gaps();
            self.reap()?;
            if self.ready.is_empty() {
                if self.children.is_empty() && self.gaps.is_empty() {
                    return Ok(false);
                }
                signals.wait(self.gaps.peek().map(|Reverse((due, _))| *due))?;
            }
        }
    }

    fn start(&mut self, job: &'a Job, parent: Option<usize>, due: Option<Instant>) {
        let (repeat, jobs, order) = match job {
            Job::Command { words, .. } => return self.spawn(job, words, parent, due),
            Job::Sequential { repeat, jobs } => (repeat, jobs, Order::Sequential),
            Job::Parallel { repeat, jobs } => (repeat, jobs, Order::Parallel),
            Job::Random { repeat, seed, low, high, jobs } => {
                let (random, due) = (Random::new(*seed), Instant::now());
                (repeat, jobs, Order::Random { random, low: *low, high: *high, due })
            }
        };
        let left = u64::from(*repeat) * jobs.len() as u64;
        let group = self.enter(Group { parent, jobs, left, running: 0, order });
        match self.groups[group].order {
            Order::Parallel => (0..left).for_each(|_| self.start_next(group, None)),
            Order::Sequential => self.start_next(group, None),
            Order::Random { .. } => self.start_and_draw(group),
        }
    }

    /// Adds a group under a free number, and returns the number.
    fn enter(&mut self, group: Group<'a>) -> usize {
        if let Some(number) = self.free.pop() {
            self.groups[number] = group;
            return number;
        }
        self.groups.push(group);
        self.groups.len() - 1
    }

    /// Starts the next job of a group.
    fn start_next(&mut self, number: usize, due: Option<Instant>) {
        let group = &mut self.groups[number];
        let jobs = group.jobs.len() as u64;
        let job = &group.jobs[((jobs - group.left % jobs) % jobs) as usize];
        group.left -= 1;
        group.running += 1;
        self.ready.push_back(Step::Start { job, parent: Some(number), due });
    }

    /// Starts the next job of a group, and draws the start of the job after it. A gap counts from
    /// the scheduled start, so a late start does not delay all others.
    fn start_and_draw(&mut self, number: usize) {
        let Order::Random { random, low, high, due } = &mut self.groups[number].order else {
            return;
        };
        let this = *due;
        *due += Duration::from_secs_f64(random.between(*low, *high));
        let next = *due;
        self.start_next(number, Some(this));
        if self.groups[number].left > 0 {
            self.gaps.push(Reverse((next, number)));
        }
    }

    fn start_after_gaps(&mut self) {
        while let Some(Reverse((due, number))) = self.gaps.peek().copied() {
            if due > Instant::now() {
                return;
            }
            self.gaps.pop();
            self.start_and_draw(number);
        }
    }

    /// Handles the end of a job: its group continues, or ends itself.
    fn done(&mut self, group: Option<usize>) {
        let Some(number) = group else { return };
        let group = &mut self.groups[number];
        group.running -= 1;
        match (group.left, group.running) {
            (0, 0) => {
                self.ready.push_back(Step::Done(group.parent));
                self.free.push(number);
            }
            (1.., _) if matches!(group.order, Order::Sequential) => self.start_next(number, None),
            _ => {}
        }
    }

    fn spawn(
        &mut self,
        job: &'a Job,
        words: &[String],
        parent: Option<usize>,
        due: Option<Instant>,
    ) {
        let mut command = Command::new(&words[0]);
        // Each command leads its own process group, so that its children can be killed, too.
        command.args(&words[1..]).stdin(Stdio::null()).process_group(0);
        match (self.printed, std::io::stderr().as_fd().try_clone_to_owned()) {
            (Printed::Through, _) => &mut command,
            (Printed::ToErrors, Ok(error)) => command.stdout(error),
            // without a standard error there is no reader
            (Printed::ToErrors, Err(_)) | (Printed::Nowhere, _) => command.stdout(Stdio::null()),
        };
        let start = Instant::now();
        let late = due.map_or(Duration::ZERO, |due| start.saturating_duration_since(due));
        let child = Child { number: self.started, job, parent, start, late };
        self.started += 1;
        match command.spawn() {
            Ok(process) => {
                let pid = Pid::from_raw(process.id().cast_signed());
                self.children.insert(pid, child);
            }
            Err(error) => self.ended(child, Ending::NotStarted(error.to_string())),
        }
    }

    fn ended(&mut self, child: Child<'a>, ending: Ending) {
        let Job::Command { words, line } = child.job else { return };
        let executed = Executed {
            command: words.clone(),
            line: *line,
            start: (child.start - self.begin).as_secs_f64(),
            late: child.late.as_secs_f64(),
            seconds: child.start.elapsed().as_secs_f64(),
            ending,
        };
        self.executed.insert(child.number, executed);
        self.ready.push_back(Step::Done(child.parent));
    }

    /// Collects all children that have ended.
    fn reap(&mut self) -> std::io::Result<()> {
        // One call for all children is cheap, even with thousands of them.
        let who = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
        loop {
            match waitid(Id::All, who) {
                Ok(WaitStatus::StillAlive) | Err(Errno::ECHILD) => return Ok(()),
                Ok(status) => match status.pid().filter(|pid| self.children.contains_key(pid)) {
                    Some(pid) => self.reap_one(pid)?,
                    // A child of another part of the program has ended and hides ours: check each
                    // of ours.
                    None => {
                        let pids: Vec<Pid> = self.children.keys().copied().collect();
                        return pids.into_iter().try_for_each(|pid| self.reap_one(pid));
                    }
                },
                Err(Errno::EINTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn reap_one(&mut self, pid: Pid) -> std::io::Result<()> {
        let ending = match waitpid(pid, Some(WaitPidFlag::WNOHANG)) {
            Ok(WaitStatus::Exited(_, status)) => Ending::Exit(status),
            Ok(WaitStatus::Signaled(_, signal, _)) => Ending::Signal(signal.to_string()),
            Ok(_) | Err(Errno::EINTR) => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        if let Some(child) = self.children.remove(&pid) {
            self.ended(child, ending);
        }
        Ok(())
    }

    /// Ends all commands with their children, and waits for the commands.
    fn end_all(&mut self, signals: &Signals) -> std::io::Result<()> {
        let groups: Vec<Pid> = self.children.keys().copied().collect();
        let signal = |signal| {
            for group in &groups {
                // A group may have ended already.
                let _ = killpg(*group, signal);
            }
        };
        signal(Signal::SIGTERM);
        let deadline = Instant::now() + GRACE;
        while !self.children.is_empty() {
            signals.wait(Some(deadline))?;
            if Instant::now() >= deadline || signals.came() {
                break;
            }
            self.reap()?;
        }
        // Children of a command may outlive it.
        signal(Signal::SIGKILL);
        while !self.children.is_empty() {
            self.reap()?;
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    }
}

/// Signals as bytes in sockets, which poll(2) can wait for together with a deadline.
struct Signals {
    children: UnixStream,
    end: UnixStream,
    ids: [SigId; 4],
}

impl Signals {
    fn watch() -> std::io::Result<Signals> {
        let pair = || -> std::io::Result<(UnixStream, UnixStream)> {
            let (read, write) = UnixStream::pair()?;
            read.set_nonblocking(true)?;
            write.set_nonblocking(true)?;
            Ok((read, write))
        };
        let (children, child_write) = pair()?;
        let (end, end_write) = pair()?;
        let ids = [
            pipe::register(SIGCHLD, child_write)?,
            pipe::register(SIGINT, end_write.try_clone()?)?,
            pipe::register(SIGTERM, end_write.try_clone()?)?,
            pipe::register(SIGHUP, end_write)?,
        ];
        Ok(Signals { children, end, ids })
    }

    /// Returns true if a signal to end has come since the last call.
    fn came(&self) -> bool {
        drain(&self.end)
    }

    /// Waits until a child ends, a signal comes, or `until` is reached.
    fn wait(&self, until: Option<Instant>) -> std::io::Result<()> {
        let mut sockets = [&self.children, &self.end]
            .map(|socket| PollFd::new(socket.as_fd(), PollFlags::POLLIN));
        let left = until.map(|until| until.saturating_duration_since(Instant::now()));
        let timeout = match left {
            // poll counts milliseconds, so the last one before a start is slept.
            Some(left) if left < Duration::from_millis(2) => {
                std::thread::sleep(left);
                PollTimeout::ZERO
            }
            Some(left) => {
                PollTimeout::try_from(left - Duration::from_millis(1)).unwrap_or(PollTimeout::MAX)
            }
            None => PollTimeout::NONE,
        };
        match poll(&mut sockets, timeout) {
            Ok(_) | Err(Errno::EINTR) => {}
            Err(error) => return Err(error.into()),
        }
        drain(&self.children);
        Ok(())
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        for id in self.ids {
            unregister(id);
        }
    }
}

/// Reads all bytes, and returns true if there were any.
fn drain(mut socket: &UnixStream) -> bool {
    let mut buffer = [0; 256];
    let mut any = false;
    loop {
        match socket.read(&mut buffer) {
            Ok(1..) => any = true,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Ok(0) | Err(_) => return any,
        }
    }
}
