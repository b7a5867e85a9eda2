//! The gain of a second CPU: the programs of an instance run repeatedly on one CPU alone, and on
//! two CPUs at once. Each CPU has a frame of its own flow. No cable, driver or route is involved,
//! so the result shows contention between the programs only.

use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, ScopedJoinHandle};
use std::time::Duration;

use anyhow::{Context, ensure};
use fwlab_load::raw::extension::Extension;
use fwlab_load::raw::flood::{Flood, PORTS, Pace};
use fwlab_load::raw::frame::{CHECKSUM_BYTES, Flow};
use fwlab_load::raw::load::{Load, Vary};
use fwlab_method::rounds::{Measured, Subject};
use fwlab_net::family::Family;
use fwlab_net::host::Host;
use fwlab_net::interrupt::Interrupt;
use fwlab_net::placement::{Placement, Watch};
use fwlab_net::rules::Rules;
use fwlab_net::system::System;
use fwlab_net::topology::{End, Lab, Shape, Topology};
use fwlab_net::transport::Transport::Udp;
use fwlab_results::{Better, Quantity, Role, Series};
use skipstep_kernel::instance::Instance;
use skipstep_kernel::offload;
use skipstep_testing::{FRAME, FrameRestorer, TimedHook};

use crate::study::Study;

/// The title of the series, and the dimension's value at its one point.
pub(super) const TITLE: &str = "Programs on two CPUs";
pub(super) const CPUS: u32 = 2;

/// The names of the samples of each program, on one CPU and on two.
pub(super) const NOTHING: [&str; 2] = ["no-program", "no-program-twice"];
pub(super) const TCX: [&str; 2] = ["tcx", "tcx-twice"];
pub(super) const XDP: [&str; 2] = ["xdp", "xdp-twice"];

/// Index of the loopback interface, the same in every network namespace. No instance filters it
/// here.
const LOOPBACK: u32 = 1;

/// Estimated seconds of a round.
pub(super) const ROUND: f64 = 4.0;

/// Number of runs that measure the time of one run.
const CALIBRATION_RUNS: u32 = 10_000;

/// Number of frames sent to make the states, and to renew their cached routes.
const FRAMES: u64 = 1000;

/// Time for which the other CPU already runs when a measurement begins.
const LEAD: Duration = Duration::from_millis(10);

/// Factor by which the other CPU runs longer.
const LONGER: u32 = 3;

/// Longest trial in seconds. A cached adjacency is valid for two seconds without packets that the
/// kernel forwards.
const LONGEST: f64 = 0.2;

/// A program, with its host, frames and CPUs.
struct Track<'l> {
    anew: FrameRestorer,
    way: TimedHook,
    /// The host and the index of the interface on which frames arrive, or None if no program of
    /// skipstep runs.
    device: Option<(&'l Host, u32)>,
    /// One frame of each flow.
    frames: [[u8; FRAME]; 2],
    cpus: [usize; 2],
    /// Number of runs in a trial.
    repeat: u32,
}

/// The result of one CPU.
struct Done {
    /// Nanoseconds per run.
    cost: f64,
    /// The reason to repeat the trial, if any.
    doubt: Option<String>,
}

impl<'l> Track<'l> {
    fn new(
        anew: FrameRestorer,
        way: TimedHook,
        device: Option<(&'l Host, u32)>,
        cpus: [usize; 2],
        seconds: f64,
    ) -> anyhow::Result<Track<'l>> {
        let frames = [frame(0)?, frame(1)?];
        let mut track = Track { anew, way, device, frames, cpus, repeat: CALIBRATION_RUNS };
        let run_time = track.alone(0)?.cost.max(1.0);
        track.repeat = (seconds * 1e9 / run_time).clamp(f64::from(CALIBRATION_RUNS), 1e9) as u32;
        Ok(track)
    }

    /// Runs the program `repeat` times on the CPU's own frame. Calls `begins` just before.
    fn run(&self, which: usize, repeat: u32, begins: impl FnOnce()) -> anyhow::Result<Done> {
        let cpu = self.cpus[which];
        Placement { cpu, priority: 1 }.take()?;
        if let Some((device, _)) = self.device {
            device.enter()?;
        }
        begins();
        let ifindex = self.device.map_or(LOOPBACK, |(_, ifindex)| ifindex);
        let watch = Watch::begin(cpu)?;
        let run = self.anew.run(self.way, &self.frames[which], ifindex, repeat)?;
        let doubt = watch.end()?.doubt_if_busy(run.duration * repeat);
        Ok(Done { cost: run.duration.as_nanos() as f64, doubt })
    }

    fn alone(&self, which: usize) -> anyhow::Result<Done> {
        thread::scope(|scope| join(scope.spawn(|| self.run(which, self.repeat, || {}))))
    }

    /// Runs the program while the other CPU does the same. The other CPU begins before and ends
    /// after this one.
    fn beside_the_other(&self, which: usize) -> anyhow::Result<Done> {
        let (begun, ended) = (AtomicBool::new(false), AtomicBool::new(false));
        thread::scope(|scope| {
            let other = scope.spawn(|| {
                let begins = || begun.store(true, Ordering::Release);
                let done = self.run(1 - which, self.repeat * LONGER, begins);
                // also release the waiting thread after an error
                begun.store(true, Ordering::Release);
                ended.store(true, Ordering::Release);
                done
            });
            let this = scope.spawn(|| -> anyhow::Result<Done> {
                while !begun.load(Ordering::Acquire) {
                    thread::yield_now();
                }
                thread::sleep(LEAD);
                let done = self.run(which, self.repeat, || {})?;
                let alone = ended.load(Ordering::Acquire);
                let doubt = alone.then(|| "the other CPU finished first".to_owned());
                Ok(Done { doubt: doubt.or(done.doubt), ..done })
            });
            let (this, other) = (join(this), join(other));
            let (this, other) = (this?, other?);
            Ok(Done { doubt: this.doubt.or(other.doubt), ..this })
        })
    }
}

fn join<T>(thread: ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// The host in the middle, and a flood of frames through it.
struct Router<'l> {
    device: &'l Host,
    instance: Instance,
    flood: Flood<'l>,
    at: Placement,
    interrupt: Interrupt,
}

impl<'l> Router<'l> {
    /// Loads a system, and sends frames in both directions, which make states.
    fn new(
        lab: &'l Lab,
        system: &dyn System,
        at: Placement,
        interrupt: Interrupt,
    ) -> anyhow::Result<Router<'l>> {
        let device = lab.device().context("the router's host in the middle")?;
        let rules = Rules {
            count: super::FEW_RULES,
            transport: Udp,
            family: Family::V4,
            to: End::Server,
            topology: Topology::Router,
        };
        system.install(device, &rules, &system.configuration(&rules))?;
        let name = device.inside(|| {
            // leave VLAN tags in the frames: if the device may have removed a tag, the XDP program
            // for drivers ignores the frame
            offload::keep_vlan_tags(End::Client.leg());
            Instance::default_name()
        })?;
        let instance = Instance::open(&name)?;
        let load = Load { source_ports: Vary::Count(CPUS), ..super::load(Family::V4) };
        let mut flood = Flood::new(lab, &load, End::Client, End::Server)?;
        flood.trial(&Pace::fast(FRAMES), at, &interrupt)?;
        flood.answer(lab.next_link(End::Server, End::Client), at)?;
        Ok(Router { device, instance, flood, at, interrupt })
    }

    /// Renews the cached routes of the states: a change of the kernel's routes invalidates them,
    /// and then the kernel forwards a packet of each flow. All packets of the next second can then
    /// take the fast path.
    fn open_paths(&mut self) -> anyhow::Result<()> {
        let (network, leg) = ("203.0.113.0/24", End::Client.leg());
        self.device.ip(&format!("route add {network} dev {leg}\nroute delete {network}\n"))?;
        let trial = self.flood.trial(&Pace::fast(FRAMES), self.at, &self.interrupt)?;
        ensure!(trial.received() > 0, "none of {FRAMES} frames came through");
        Ok(())
    }

    /// Returns the number of packets redirected so far, past the kernel's forwarding.
    fn forwarded(&self, way: TimedHook) -> anyhow::Result<u64> {
        let [tcx, xdp] = self.instance.status()?.forwarded;
        Ok(match way {
            TimedHook::Tcx => tcx,
            TimedHook::Xdp => xdp,
        })
    }
}

/// Makes a frame of flow `which`.
fn frame(which: u16) -> anyhow::Result<[u8; FRAME]> {
    let [source, destination] = PORTS;
    let (from, to) = (End::Client, End::Server);
    let flow = Flow {
        transport: Udp,
        extension: Extension::None,
        links: [from.link(), from.leg_link()],
        addresses: [from, to].map(|end| end.address(Family::V4)),
        ports: [source + which, destination],
    };
    let frame = flow.frame(FRAME + CHECKSUM_BYTES)?;
    let mut frame = <[u8; FRAME]>::try_from(frame).ok().context("a frame of another size")?;
    FrameRestorer::prepare(&mut frame);
    Ok(frame)
}

/// A program on one CPU and then on the other, each alone or both at once.
struct Turn<'t, 'l> {
    id: &'static str,
    track: &'t Track<'l>,
    router: Option<&'t RefCell<Router<'l>>>,
    at_once: bool,
}

impl Turn<'_, '_> {
    fn side(&self, which: usize) -> anyhow::Result<Done> {
        let Turn { track, at_once, .. } = *self;
        let run = || if at_once { track.beside_the_other(which) } else { track.alone(which) };
        let Some(router) = self.router else { return run() };
        let mut router = router.borrow_mut();
        router.open_paths()?;
        let before = router.forwarded(track.way)?;
        let done = run()?;
        let runs = u64::from(track.repeat) * if at_once { 1 + u64::from(LONGER) } else { 1 };
        let forwarded = router.forwarded(track.way)?.saturating_sub(before);
        let few = forwarded < runs / 100 * 99;
        let doubt =
            few.then(|| format!("{} of {runs} frames took the slow path", runs - forwarded));
        Ok(Done { doubt: doubt.or(done.doubt), ..done })
    }
}

impl Subject for Turn<'_, '_> {
    fn id(&self) -> &str {
        self.id
    }

    fn trial(&mut self) -> anyhow::Result<Measured> {
        let (one, other) = (self.side(0)?, self.side(1)?);
        let value = f64::midpoint(one.cost, other.cost);
        Ok(Measured { value, doubt: one.doubt.or(other.doubt), counts: None, latency: None })
    }
}

/// Measures all programs.
///
/// # Errors
/// Fails if the network cannot be made, if rules are refused, or if a signal arrives.
pub(super) fn measure(study: &mut Study) -> anyhow::Result<()> {
    let [at, beside] = study.places()?;
    if at.cpu == beside.cpu {
        study.leave_out(&format!("{TITLE}: needs two CPUs"));
        return Ok(());
    }
    let (cpus, seconds) = ([at.cpu, beside.cpu], study.seconds.min(LONGEST));
    let mut labs = Vec::new();
    for system in study.systems(&["skipstep-states", "skipstep-states-xdp"]) {
        let shape = Shape { topology: Topology::Router, mtu: 1500, napi: true };
        labs.push((Lab::new(&format!("cores-{}", system.name()), shape)?, system));
    }
    let nothing =
        Track::new(FrameRestorer::for_instance(None)?, TimedHook::Tcx, None, cpus, seconds)?;
    let mut tracks = vec![(NOTHING, nothing, None)];
    for (lab, system) in &labs {
        let (way, ids) = match system.name() {
            "skipstep-states" => (TimedHook::Tcx, TCX),
            _ => (TimedHook::Xdp, XDP),
        };
        let mut router = Router::new(lab, &**system, at, study.interrupt())?;
        let anew = FrameRestorer::for_instance(Some(&router.instance))?;
        let device = (router.device, router.device.index(End::Client.leg())?);
        router.open_paths()?;
        let track = Track::new(anew, way, Some(device), cpus, seconds)?;
        tracks.push((ids, track, Some(RefCell::new(router))));
    }
    let mut turns: Vec<Box<dyn Subject + '_>> = Vec::new();
    for (ids, track, router) in &tracks {
        for (id, at_once) in ids.iter().zip([false, true]) {
            turns.push(Box::new(Turn { id, track, router: router.as_ref(), at_once }));
        }
    }
    study.measure_others(described(), &series(seconds), CPUS, ROUND, &mut turns)
}

/// Describes the measured programs for results.
fn described() -> Vec<fwlab_results::System> {
    let what = [
        (NOTHING, "headers alone, without a program"),
        (TCX, "skipstep on tcx, a state is hit"),
        (XDP, "skipstep in XDP, a state is hit"),
    ];
    let system = |id, label, cpus| {
        let label = format!("{label}, {cpus}");
        let what = "run by BPF_PROG_TEST_RUN on a frame of a flow for each CPU".to_owned();
        fwlab_results::System::new(id, &label, Role::Subject, "router", what)
    };
    what.into_iter()
        .flat_map(|([one, both], label)| {
            [system(one, label, "one CPU"), system(both, label, "two CPUs at once")]
        })
        .collect()
}

fn series(seconds: f64) -> Series {
    Series {
        title: TITLE.to_owned(),
        load: fwlab_results::Load {
            kind: "programs".to_owned(),
            protocol: Some("udp".to_owned()),
            family: Some("inet".to_owned()),
            size: Some((FRAME + CHECKSUM_BYTES) as u64),
            flows: Some(u64::from(CPUS)),
            seconds,
            ..fwlab_results::Load::default()
        },
        quantity: Quantity {
            name: "time per packet".to_owned(),
            unit: "ns".to_owned(),
            better: Better::Lower,
            additive: false,
        },
        dimension: None,
        points: Vec::new(),
    }
}
