//! The daemon at work: one thread attaches interfaces, one follows what changes of them, one puts
//! fragments together, one hands packets to programs, one holds those that are delayed, one reports
//! flows, one removes what dead processes have left, one writes the log.

use std::cell::OnceCell;
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
use skipstep_abi::{FlowRecord, LogRecord};
use skipstep_kernel::host::{self, Watch};
use skipstep_kernel::record::Load;
use skipstep_kernel::{
    Attacher, DelayCounters, Delayer, Device, Diverter, Error, FlowReader, Instance, LogReader,
    RECORDS_A_TURN, stop_waits_with,
};

use crate::clock::boot_time;
use crate::delay::Delays;
use crate::divert::Ports;
use crate::file;
use crate::flows::Exporter;
use crate::fragments::{Fragments, LONGEST_FRAME};
use crate::log::{self, Logs};
use crate::notify;
use crate::options::Options;
use crate::pflog::Origin;

/// The time until a thread answers a signal, or notices an instance that is made anew.
const TICK: Duration = Duration::from_millis(500);
/// While there is no filter: how soon one is noticed. Until then its fragments are dropped.
const NOTICE: Duration = Duration::from_millis(100);

/// After an interface that could not be attached: when others are looked at again.
const PAUSE: Duration = Duration::from_millis(1);

/// How long the rules of a dead process may stay.
const ORPHANS: Duration = Duration::from_millis(300);

/// Packets taken for programs before what they wrote has its turn, and taken to be held before
/// those that are due have theirs.
const BURST: usize = 64;

/// Bytes of a ring. After a signal to stop a thread reads that much at most, as a flood may go on.
const RING: usize = 1 << 20;

/// What signals ask for.
#[derive(Clone, Default)]
struct Signals {
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

    fn stop(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Whether SIGHUP came since the last call.
    fn reopen(&self) -> bool {
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
    let exporter = Exporter::new(&options.collectors, options.source).context("-e, -a")?;
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
        thread::spawn(move || attend(&signals, &name, starting, serve))
    };
    let diverter = {
        let (signals, name, starting) = (signals.clone(), name.clone(), starting.clone());
        thread::spawn(move || attend(&signals, &name, starting, hand_packets))
    };
    let delayer = {
        let (signals, name) = (signals.clone(), name.clone());
        thread::spawn(move || attend(&signals, &name, starting, hold_packets))
    };
    let reporter = {
        let (signals, name) = (signals.clone(), name.clone());
        thread::spawn(move || report_flows(&signals, &name, exporter))
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

fn say(message: &str) {
    eprintln!("skipstepd: {message}");
}

/// The instance, if there is one by now.
fn open(name: &str) -> Result<Option<Instance>, Error> {
    match Instance::open(name) {
        Ok(instance) => Ok(Some(instance)),
        Err(Error::NoInstance { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Says an error that does not stop the daemon, but not the same one again and again.
#[derive(Default)]
struct Complaint(Option<String>);

impl Complaint {
    fn note<T>(&mut self, result: Result<T, Error>) -> Option<T> {
        match result {
            Ok(value) => {
                self.0 = None;
                Some(value)
            }
            Err(error) => {
                let message = error.to_string();
                if self.0.as_ref() != Some(&message) {
                    say(&message);
                    self.0 = Some(message);
                }
                None
            }
        }
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

/// Does `work` for the instance of this name, whenever there is one, until told to stop. `starting`
/// is dropped by who does it when that is under way, and here if it cannot be for now.
fn attend(
    signals: &Signals,
    name: &str,
    starting: Sender<()>,
    work: impl Fn(&Signals, &Instance, &mut Option<Sender<()>>) -> Result<(), Error>,
) {
    let mut starting = Some(starting);
    let mut complaint = Complaint::default();
    while !signals.stop() {
        let done = complaint
            .note(open(name))
            .flatten()
            .and_then(|instance| complaint.note(work(signals, &instance, &mut starting)));
        starting = None;
        if done.is_none() {
            thread::sleep(NOTICE);
        }
    }
}

/// Puts fragments together, and makes fragments of datagrams, while this instance is the one of its
/// name and there is no signal to stop.
fn serve(
    signals: &Signals,
    instance: &Instance,
    starting: &mut Option<Sender<()>>,
) -> Result<(), Error> {
    let mut generation = instance.generation();
    let mut fragments = Fragments::new(&instance.loaded()?.ruleset.options);
    let mut device = Device::new(instance)?;
    *starting = None;
    let mut buffer = vec![0; LONGEST_FRAME];
    let mut checked = Instant::now();
    let mut complaint = Complaint::default();
    while !signals.stop() {
        if device.wait(TICK)? {
            let now = instance.uptime()?;
            while let Some(frame) = device.take(&mut buffer)? {
                for answer in fragments.answer(frame, now) {
                    complaint.note(device.give(&answer)); // the others are not to suffer for it
                }
                if checked.elapsed() >= TICK {
                    break;
                }
            }
        }
        if checked.elapsed() < TICK {
            continue;
        }
        checked = Instant::now();
        fragments.expire(instance.uptime()?);
        device.publish(instance, fragments.pieces(), fragments.counters())?;
        if !instance.is_current() {
            return Ok(());
        }
        if instance.generation() != generation {
            generation = instance.generation();
            fragments.configure(&instance.loaded()?.ruleset.options);
        }
    }
    Ok(())
}

/// Reports states that have ended, until told to stop; then those that have by then.
fn report_flows(signals: &Signals, name: &str, mut exporter: Exporter) {
    let mut complaint = Complaint::default();
    while exporter.is_wanted() && !signals.stop() {
        exporter.flush();
        match complaint.note(open(name)).flatten() {
            Some(instance) => {
                if complaint.note(follow_flows(signals, &instance, &mut exporter)).is_none() {
                    thread::sleep(TICK);
                }
            }
            None => thread::sleep(NOTICE),
        }
    }
    if exporter.lost() > 0 {
        say(&format!("{} flow records could not be sent", exporter.lost()));
    }
}

/// The same for an instance, while this is the one of its name.
fn follow_flows(
    signals: &Signals,
    instance: &Instance,
    exporter: &mut Exporter,
) -> Result<(), Error> {
    let mut reader = FlowReader::open(instance)?;
    let mut last_turns = RING / size_of::<FlowRecord>() / RECORDS_A_TURN + 1;
    loop {
        let stopping = signals.stop();
        let timeout = if stopping { Duration::ZERO } else { TICK };
        let records = reader.poll(timeout, |flow| exporter.report(flow))?;
        exporter.flush();
        last_turns -= usize::from(stopping);
        let is_empty = records < RECORDS_A_TURN;
        if (stopping && (is_empty || last_turns == 0)) || !instance.is_current() {
            return Ok(());
        }
    }
}

/// Hands packets to programs and back, that long.
fn hand_packets(
    signals: &Signals,
    instance: &Instance,
    starting: &mut Option<Sender<()>>,
) -> Result<(), Error> {
    let mut device = Diverter::new(instance)?;
    let mut ports = Ports::new(&instance.divert_directory());
    let mut generation = None;
    let mut buffer = vec![0; LONGEST_FRAME];
    let mut checked = Instant::now();
    let mut complaint = Complaint::default();
    while !signals.stop() {
        if generation != Some(instance.generation()) {
            let now = instance.generation();
            let opened = ports.open(&instance.divert_ports()?);
            complaint.note(opened.map_err(|cause| system("sockets for diverted packets", cause)));
            generation = Some(now);
            *starting = None;
        }
        let waited = ports.wait(&device, TICK);
        waited.map_err(|cause| system("diverted packets", cause))?;
        for _ in 0..BURST {
            let Some(frame) = device.take(&mut buffer)? else { break };
            ports.deliver(frame);
        }
        ports.serve(|frame| {
            complaint.note(device.give(frame)); // the others are not to suffer for it
        });
        if checked.elapsed() >= TICK {
            checked = Instant::now();
            device.publish(instance, ports.counters())?;
            if !instance.is_current() {
                return Ok(());
            }
        }
    }
    device.publish(instance, ports.counters())
}

/// Holds packets until their time has come, that long. Those it holds when it ends are lost.
fn hold_packets(
    signals: &Signals,
    instance: &Instance,
    starting: &mut Option<Sender<()>>,
) -> Result<(), Error> {
    let limit = || Ok::<_, Error>(instance.loaded()?.ruleset.options.limits.pktdelay_pkts);
    let mut generation = instance.generation();
    let mut delays = Delays::new(limit()?);
    let mut device = Delayer::new(instance)?;
    *starting = None;
    let mut buffer = vec![0; LONGEST_FRAME];
    let mut checked = Instant::now();
    let mut complaint = Complaint::default();
    while !signals.stop() {
        device.wait(delays.until_next(boot_time()).map_or(TICK, |next| next.min(TICK)))?;
        for _ in 0..BURST {
            let Some(frame) = device.take(&mut buffer)? else { break };
            if let Some(refusal) = delays.hold(frame) {
                complaint.note(device.give(&refusal)); // the others are not to suffer for it
            }
        }
        let now = boot_time();
        while let Some(frame) = delays.next(now) {
            complaint.note(device.give(&frame));
        }
        if checked.elapsed() < TICK {
            continue;
        }
        checked = Instant::now();
        device.publish(instance, delays.counters())?;
        if !instance.is_current() {
            return Ok(());
        }
        if instance.generation() != generation {
            generation = instance.generation();
            delays.configure(limit()?);
        }
    }
    device.publish(instance, DelayCounters { waiting: 0, ..delays.counters() })
}

/// What the system said.
fn system(what: &str, cause: std::io::Error) -> Error {
    Error::System { what: what.to_owned(), cause }
}

/// Takes records out of the ring and writes them, until told to stop; then what is left in it.
fn write_log(signals: &Signals, name: &str, options: &Options) {
    let mut logs = Logs::new(&options.file, options.snaplen);
    let mut complaint = Complaint::default();
    while !signals.stop() {
        match complaint.note(open(name)).flatten() {
            Some(instance) => {
                if complaint.note(drain(signals, &instance, &mut logs, options)).is_none() {
                    thread::sleep(TICK);
                }
            }
            None => thread::sleep(TICK),
        }
    }
    if logs.lost() > 0 {
        say(&format!("{} log records were lost", logs.lost()));
    }
}

/// Writes records while this is the instance of its name and there is no signal to stop.
fn drain(
    signals: &Signals,
    instance: &Instance,
    logs: &mut Logs,
    options: &Options,
) -> Result<(), Error> {
    let mut reader = LogReader::open(instance)?;
    let mut last_turns = RING / size_of::<LogRecord>() / RECORDS_A_TURN + 1;
    loop {
        if signals.reopen() {
            logs.reopen();
            if options.debug {
                say("log files are opened anew");
            }
        }
        let stopping = signals.stop();
        let timeout = if stopping { Duration::ZERO } else { TICK };
        let origins = OnceCell::new();
        let records = reader.poll(timeout, |record| {
            let origins = origins.get_or_init(|| instance.origins().unwrap_or_default());
            let open = |number| file::open(&log::path(&options.file, number));
            logs.add(record, &origin(origins, record.anchor), open);
        })?;
        logs.flush().iter().for_each(|message| say(message));
        if options.debug && records > 0 {
            say(&format!("{records} log records"));
        }
        last_turns -= usize::from(stopping);
        let is_empty = records < RECORDS_A_TURN;
        if (stopping && (is_empty || last_turns == 0)) || !instance.is_current() {
            return Ok(());
        }
    }
}

/// What there is to say of the rule set that a record names.
fn origin(origins: &BTreeMap<u32, (String, Load)>, anchor: u32) -> Origin {
    let (anchor, load) = origins.get(&anchor).cloned().unwrap_or_default();
    Origin { anchor, uid: load.uid, pid: load.pid }
}
