//! The daemon's threads. One attaches interfaces, one follows their changes, and one removes
//! orphaned rules. The others are guardians, each with one worker.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Sender};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use nix::unistd::geteuid;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;
use skipstep_kernel::host::{self, Watch};
use skipstep_kernel::{Attacher, Error, Instance, stop_waits_with};

use crate::complaint::{Complaint, print_message};
use crate::flows;
use crate::guardian::{
    Collectors, DelayGuardian, DivertGuardian, FlowGuardian, FragmentGuardian, LogGuardian, serve,
};
use crate::notify;
use crate::options::Options;
use crate::task::TICK;

/// Interval of the checks for a filter while there is none. Until a check finds the filter,
/// fragments are dropped.
const NOTICE: Duration = Duration::from_millis(100);

/// Pause after a failed attachment, before other interfaces are tried.
const PAUSE: Duration = Duration::from_millis(1);

/// Interval of the checks for orphaned rules and for trials that have ended. Orphaned rules stay no
/// longer.
const ORPHANS: Duration = Duration::from_millis(300);

/// A worker that ends sooner is restarted after a pause, which doubles each time up to
/// [`LONGEST_PAUSE`].
const HEALTHY: Duration = Duration::from_secs(10);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// Flags that signals set: stop (SIGTERM, SIGINT) and reopen (SIGHUP).
#[derive(Clone, Default)]
pub struct Signals {
    stop: Arc<AtomicBool>,
    reopen: Arc<AtomicBool>,
}

impl Signals {
    fn register() -> Result<Signals> {
        let signals = Signals::default();
        for signal in [SIGTERM, SIGINT] {
            flag::register(signal, signals.stop.clone()).context("signals")?;
        }
        flag::register(SIGHUP, signals.reopen.clone()).context("signals")?;
        stop_waits_with(signals.stop.clone());
        Ok(signals)
    }

    /// True if the daemon has to end.
    pub fn stop(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// True if SIGHUP was received since the last call.
    pub fn reopen(&self) -> bool {
        self.reopen.swap(false, Ordering::Relaxed)
    }
}

/// Runs the daemon until SIGTERM or SIGINT. The filter stays attached afterwards.
///
/// # Errors
/// Fails if the user is not root, if a collector's socket cannot be opened, or if netlink or the
/// instance cannot be opened. Later errors are printed, and the failed step is tried again.
pub fn run(options: &Options) -> Result<()> {
    if !geteuid().is_root() {
        bail!("needs root");
    }
    let signals = Signals::register()?;
    let name = options.instance.clone().unwrap_or_else(Instance::default_name);
    let sockets = flows::open(&options.collectors, options.source).context("-e, -a")?;
    let collectors = Collectors { sockets, sequence: 0, lost: 0 };
    let (watch, links) = (Watch::new()?, Watch::for_links()?);
    open(&name)?;
    let (starting, started) = mpsc::channel();
    let attacher = {
        let (signals, name, starting) = (signals.clone(), name.clone(), starting.clone());
        thread::spawn(move || attach_interfaces(&signals, &name, links, starting))
    };
    let follower = {
        let (signals, name, starting) = (signals.clone(), name.clone(), starting.clone());
        let debug = options.debug;
        thread::spawn(move || follow_interfaces(&signals, &name, watch, starting, debug))
    };
    let reassembler = {
        let (signals, name, starting) = (signals.clone(), name.clone(), starting.clone());
        thread::spawn(move || {
            run_guardian(&signals, &name, Some(starting), |instance, starting| {
                serve(&mut FragmentGuardian::new(instance)?, instance, &signals, starting)
            });
        })
    };
    let diverter = {
        let (signals, name, starting) = (signals.clone(), name.clone(), starting.clone());
        thread::spawn(move || {
            run_guardian(&signals, &name, Some(starting), |instance, starting| {
                serve(&mut DivertGuardian::new(instance)?, instance, &signals, starting)
            });
        })
    };
    let delayer = {
        let (signals, name) = (signals.clone(), name.clone());
        thread::spawn(move || {
            run_guardian(&signals, &name, Some(starting), |instance, starting| {
                serve(&mut DelayGuardian::new(instance)?, instance, &signals, starting)
            });
        })
    };
    let reporter = {
        let (signals, name) = (signals.clone(), name.clone());
        thread::spawn(move || report_flows(&signals, &name, collectors))
    };
    let janitor = {
        let (signals, name) = (signals.clone(), name.clone());
        thread::spawn(move || remove_orphans(&signals, &name))
    };
    // no value is ever sent: `recv` returns when the last thread has dropped its sender
    let _: Result<(), _> = started.recv();
    notify::ready().context("NOTIFY_SOCKET")?;
    print_message("ready");
    write_log(&signals, &name, options);
    signals.stop.store(true, Ordering::Relaxed);
    for (thread, task) in [
        (reassembler, "reassembles fragments"),
        (reporter, "reports flows"),
        (diverter, "hands packets to programs"),
        (delayer, "holds delayed packets"),
        (attacher, "attaches interfaces"),
        (follower, "follows interfaces"),
        (janitor, "removes records of dead processes and ends trials"),
    ] {
        if thread.join().is_err() {
            print_message(&format!("the thread that {task} has failed"));
        }
    }
    Ok(())
}

/// Opens the instance; `None` if it does not exist yet.
fn open(name: &str) -> Result<Option<Instance>, Error> {
    match Instance::open(name) {
        Ok(instance) => Ok(Some(instance)),
        Err(Error::NoInstance { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Attaches each interface as soon as it appears. This thread does nothing else, so no interface
/// waits unattached. `starting` is dropped when all present interfaces have been tried.
// Differs from OpenBSD: linux.md, "Interfaces that come later"
fn attach_interfaces(signals: &Signals, name: &str, mut links: Watch, starting: Sender<()>) {
    let mut complaint = Complaint::default();
    let mut attacher = Attacher::new(name);
    complaint.note(host::link_indices().and_then(|present| attacher.attach(&present)));
    drop(starting);
    while !signals.stop() {
        let attached = links.changed_links(TICK).and_then(|changed| match changed.is_empty() {
            true => attacher.prepare(),
            false => attacher.attach(&changed),
        });
        if complaint.note(attached).is_none() {
            thread::sleep(PAUSE);
        }
    }
}

/// Updates the filter after each change of interfaces, addresses and routes. It also attaches
/// interfaces that the attacher could not attach. `starting` is dropped when the filter knows the
/// present interfaces, so that rules with their names match.
fn follow_interfaces(
    signals: &Signals,
    name: &str,
    mut watch: Watch,
    starting: Sender<()>,
    debug: bool,
) {
    let mut complaint = Complaint::default();
    let (mut known, mut unattached) = (None, BTreeMap::new());
    let mut starting = Some(starting);
    while !signals.stop() {
        let timeout = if starting.is_some() { Duration::ZERO } else { TICK };
        let Some(changed) = complaint.note(watch.wait(Some(timeout))) else {
            thread::sleep(TICK);
            continue;
        };
        if !changed && known.is_some() {
            continue;
        }
        let refreshed = open(name).and_then(|instance| match instance {
            Some(instance) => {
                let host = host::read()?;
                instance.refresh(&host)?;
                report_unattached(&mut unattached, instance.unattached()?);
                Ok(Some(host))
            }
            None => Ok(None),
        });
        let host = complaint.note(refreshed).flatten();
        if debug && let Some(host) = host.as_ref().filter(|host| known.as_ref() != Some(*host)) {
            let names: Vec<&str> = host.interfaces.iter().map(|i| i.name.as_str()).collect();
            print_message(&format!("interfaces: {}", names.join(" ")));
        }
        known = host;
        starting = None;
    }
}

/// Prints the interfaces that are not filtered, unless `known` has them with the same reason.
fn report_unattached(known: &mut BTreeMap<String, String>, now: BTreeMap<String, String>) {
    for (name, why) in now.iter().filter(|(name, why)| known.get(*name) != Some(*why)) {
        print_message(&format!("{name}: not filtered: {why}"));
    }
    *known = now;
}

/// Removes the rules of processes that have ended, and ends trials of rules.
fn remove_orphans(signals: &Signals, name: &str) {
    let mut complaint = Complaint::default();
    while !signals.stop() {
        if let Some(Some(trial)) = complaint.note(Instance::follow_trial(name)) {
            let seconds = trial.seconds;
            print_message(&format!(
                "a load was not confirmed in {seconds} s: the rules before it are in force again"
            ));
        }
        if Instance::has_orphans(name)
            && let Some(mut instance) = complaint.note(open(name)).flatten()
            && let Some(dead @ 1..) = complaint.note(instance.remove_orphans())
        {
            print_message(&format!("removed the rules and rings of {dead} dead processes"));
        }
        thread::sleep(ORPHANS);
    }
}

/// Runs a guardian for the instance of this name, whenever the instance exists, until the daemon
/// stops. `starting` is dropped by `serve` when its worker runs, or after the first attempt.
fn run_guardian(
    signals: &Signals,
    name: &str,
    starting: Option<Sender<()>>,
    mut serve: impl FnMut(&Instance, &mut Option<Sender<()>>) -> Result<(), Error>,
) {
    let mut starting = starting;
    let mut complaint = Complaint::default();
    let mut pause = NOTICE;
    while !signals.stop() {
        let began = Instant::now();
        let served = complaint
            .note(open(name))
            .flatten()
            .map(|instance| complaint.note(serve(&instance, &mut starting)));
        starting = None;
        pause = match served {
            // the worker ran for long, so even the same error is worth a message
            Some(None) if began.elapsed() >= HEALTHY => {
                complaint.forget();
                NOTICE
            }
            Some(None) => (2 * pause).min(LONGEST_PAUSE),
            _ => NOTICE,
        };
        if !matches!(served, Some(Some(()))) {
            sleep_unless_stopped(signals, pause);
        }
    }
}

/// Sleeps for `pause`, but returns early if the daemon has to stop.
fn sleep_unless_stopped(signals: &Signals, pause: Duration) {
    let began = Instant::now();
    while !signals.stop() && began.elapsed() < pause {
        thread::sleep(NOTICE.min(pause - began.elapsed().min(pause)));
    }
}

/// Exports ended states as flow records until the daemon stops, and then the records that are left.
fn report_flows(signals: &Signals, name: &str, mut collectors: Collectors) {
    if collectors.sockets.is_empty() {
        return;
    }
    run_guardian(signals, name, None, |instance, starting| {
        let mut function = FlowGuardian::new(instance, &mut collectors);
        serve(&mut function, instance, signals, starting)
    });
    if collectors.lost > 0 {
        print_message(&format!("{} flow records could not be sent", collectors.lost));
    }
}

/// Writes the log until the daemon stops, and then the records that are left in the ring.
fn write_log(signals: &Signals, name: &str, options: &Options) {
    let mut lost = 0;
    run_guardian(signals, name, None, |instance, starting| {
        let mut function = LogGuardian::new(instance, signals, &options.file, &mut lost);
        serve(&mut function, instance, signals, starting)
    });
    if lost > 0 {
        print_message(&format!("{lost} log records were lost"));
    }
}
