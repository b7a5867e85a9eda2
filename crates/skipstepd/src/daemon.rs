//! The daemon at work: one thread attaches interfaces, one follows their changes, one removes what
//! dead processes have left, and the others are the guardians of a worker each.

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

use crate::complaint::{Complaint, say};
use crate::flows;
use crate::guardian::{Collectors, Handing, Holding, Reassembly, Reporting, Writing, serve};
use crate::notify;
use crate::options::Options;
use crate::task::TICK;

/// While there is no filter: how soon one is noticed. Until then its fragments are dropped.
const NOTICE: Duration = Duration::from_millis(100);

/// After an interface that could not be attached: when others are looked at again.
const PAUSE: Duration = Duration::from_millis(1);

/// How long the rules of a dead process may stay.
const ORPHANS: Duration = Duration::from_millis(300);

/// A worker that ends sooner is started again after a pause, each time twice as long.
const HEALTHY: Duration = Duration::from_secs(10);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// What signals ask for.
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

    /// True if the daemon is to end.
    pub fn stop(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// True if SIGHUP came since the last call.
    pub fn reopen(&self) -> bool {
        self.reopen.swap(false, Ordering::Relaxed)
    }
}

/// Runs until SIGTERM or SIGINT. The filter goes on afterwards.
///
/// # Errors
/// When nothing can be done at all: no permission, no netlink. What goes wrong later is reported
/// and tried again.
pub fn run(options: &Options) -> Result<()> {
    if !geteuid().is_root() {
        bail!("needs root");
    }
    let signals = Signals::register()?;
    let name = options.instance.clone().unwrap_or_else(Instance::default_name);
    let sockets = flows::open(&options.collectors, options.source).context("-e, -a")?;
    let collectors = Collectors { sockets, sequence: 0, lost: 0 };
    let (watch, links) = (Watch::new()?, Watch::of_links()?);
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
            attend(&signals, &name, Some(starting), |instance, starting| {
                serve(&mut Reassembly::new(instance)?, instance, &signals, starting)
            });
        })
    };
    let diverter = {
        let (signals, name, starting) = (signals.clone(), name.clone(), starting.clone());
        thread::spawn(move || {
            attend(&signals, &name, Some(starting), |instance, starting| {
                serve(&mut Handing::new(instance)?, instance, &signals, starting)
            });
        })
    };
    let delayer = {
        let (signals, name) = (signals.clone(), name.clone());
        thread::spawn(move || {
            attend(&signals, &name, Some(starting), |instance, starting| {
                serve(&mut Holding::new(instance)?, instance, &signals, starting)
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
    // nothing is ever sent: the last who starts drops the last sender
    let _: Result<(), _> = started.recv();
    notify::ready().context("NOTIFY_SOCKET")?;
    say("ready");
    write_log(&signals, &name, options);
    signals.stop.store(true, Ordering::Relaxed);
    for (thread, task) in [
        (reassembler, "puts fragments together"),
        (reporter, "reports flows"),
        (diverter, "hands packets to programs"),
        (delayer, "holds delayed packets"),
        (attacher, "attaches interfaces"),
        (follower, "follows interfaces"),
        (janitor, "removes what dead processes have left"),
    ] {
        if thread.join().is_err() {
            say(&format!("the thread that {task} has failed"));
        }
    }
    Ok(())
}

/// The instance, if there is one by now.
fn open(name: &str) -> Result<Option<Instance>, Error> {
    match Instance::open(name) {
        Ok(instance) => Ok(Some(instance)),
        Err(Error::NoInstance { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Attaches each interface the moment it appears. Nothing else is done here, so that nothing keeps
/// an interface open. The interfaces that are there come first; then `starting` is dropped.
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

/// Tells the filter of every change of interfaces, addresses and routes. Attaches interfaces that
/// the attacher could not attach, too. `starting` is dropped once the filter knows the interfaces
/// that are there, so that rules with their names match.
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
                tell_unattached(&mut unattached, instance.unattached()?);
                Ok(Some(host))
            }
            None => Ok(None),
        });
        let host = complaint.note(refreshed).flatten();
        if debug && let Some(host) = host.as_ref().filter(|host| known.as_ref() != Some(*host)) {
            let names: Vec<&str> = host.interfaces.iter().map(|i| i.name.as_str()).collect();
            say(&format!("interfaces: {}", names.join(" ")));
        }
        known = host;
        starting = None;
    }
}

/// Names interfaces that are not filtered, unless they are the ones that are `known` to be so.
fn tell_unattached(known: &mut BTreeMap<String, String>, now: BTreeMap<String, String>) {
    for (name, why) in now.iter().filter(|(name, why)| known.get(*name) != Some(*why)) {
        say(&format!("{name}: not filtered: {why}"));
    }
    *known = now;
}

/// Removes the rules that belong to processes which are no more.
fn remove_orphans(signals: &Signals, name: &str) {
    let mut complaint = Complaint::default();
    while !signals.stop() {
        if Instance::has_orphans(name)
            && let Some(mut instance) = complaint.note(open(name)).flatten()
            && let Some(dead @ 1..) = complaint.note(instance.remove_orphans())
        {
            say(&format!("removed the rules of {dead} dead processes"));
        }
        thread::sleep(ORPHANS);
    }
}

/// Serves a worker for the instance of this name, whenever there is one, until told to stop.
/// `starting` is dropped once the worker is at work, and here if there is none for now.
fn attend(
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
            // it went well for long, so the same error is news
            Some(None) if began.elapsed() >= HEALTHY => {
                complaint.forget();
                NOTICE
            }
            Some(None) => (2 * pause).min(LONGEST_PAUSE),
            _ => NOTICE,
        };
        if !matches!(served, Some(Some(()))) {
            rest(signals, pause);
        }
    }
}

/// Sleeps, but not while there is a signal to stop.
fn rest(signals: &Signals, pause: Duration) {
    let began = Instant::now();
    while !signals.stop() && began.elapsed() < pause {
        thread::sleep(NOTICE.min(pause - began.elapsed().min(pause)));
    }
}

/// Has states that have ended reported, until told to stop; then those that have by then.
fn report_flows(signals: &Signals, name: &str, mut collectors: Collectors) {
    if collectors.sockets.is_empty() {
        return;
    }
    attend(signals, name, None, |instance, starting| {
        let mut function = Reporting::new(instance, &mut collectors);
        serve(&mut function, instance, signals, starting)
    });
    if collectors.lost > 0 {
        say(&format!("{} flow records could not be sent", collectors.lost));
    }
}

/// Has the log written, until told to stop; then what is left in the ring.
fn write_log(signals: &Signals, name: &str, options: &Options) {
    let mut lost = 0;
    attend(signals, name, None, |instance, starting| {
        let mut function = Writing::new(instance, signals, &options.file, &mut lost);
        serve(&mut function, instance, signals, starting)
    });
    if lost > 0 {
        say(&format!("{lost} log records were lost"));
    }
}
