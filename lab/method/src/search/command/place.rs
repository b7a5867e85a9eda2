//! The places of a search: a system in a network of its own, two interfaces, two other machines, or
//! a simulated device. Searches for each kind of frames.

use anyhow::{Context, ensure};
use fwlab_agent::Machine;
use fwlab_load::connections::Pages;
use fwlab_load::raw::load::{Engine, KERNEL_MTU, Load};
use fwlab_load::wire::{self, Wire};
use fwlab_net::interrupt::Interrupt;
use fwlab_net::link::Link;
use fwlab_net::placement::{self, Placement};
use fwlab_net::system::{self, System};
use fwlab_net::topology::Lab;
use fwlab_net::transport::Transport;
use fwlab_net::{environment, host};
use fwlab_results::{Mode, Role, Run};

use super::report::Report;
use super::ways::EndpointFlags;
use super::{Arguments, MOST_CONNECTIONS};
use crate::search::apart::Apart;
use crate::search::connections_apart::ConnectionsApart;
use crate::search::filters::Filter;
use crate::search::frames::Frames;
use crate::search::network::{self, Built, Cpus, Installed};
use crate::search::simulated::{Curve, Simulated};
use crate::search::tcp_network::{self, TcpNetwork};
use crate::search::test::{ConnectionTestAtRate, Test};
use crate::search::wire::Here;
use crate::search::written::{self, SearchResult};
use crate::search::{Conformance, Measurer, Setting, Site};

/// The assumed speed of a link that reports none, in bits a second.
const USUAL_LINK: f64 = 1e10;

/// Searches at the place that the flags name, with all kinds of frames and filters.
///
/// # Errors
/// Fails if the place cannot be prepared, or if the result file cannot be written.
pub(super) fn search(arguments: &Arguments) -> anyhow::Result<Vec<Report>> {
    if let (None, Some(curve)) = (&arguments.system, arguments.simulate) {
        return Ok(on_a_simulated_device(arguments, curve));
    }
    let interrupt = Interrupt::watch()?;
    interrupt.or_interrupted(match &arguments.system {
        Some(name) => on_a_system(arguments, name, &interrupt),
        None if !arguments.agents.are_given() => between_interfaces(arguments, &interrupt),
        None if arguments.test.is_about_connections() => {
            connections_between_agents(arguments, &interrupt)
        }
        None => frames_between_agents(arguments, &interrupt),
    })
}

fn on_a_simulated_device(arguments: &Arguments, curve: Curve) -> Vec<Report> {
    let on = |frames: Frames| {
        let most = Setting::line_rate(arguments.link.unwrap_or(USUAL_LINK), frames.size);
        let mut device = Simulated::new(curve, arguments.seed);
        let setting = arguments.setting(frames, most);
        let name = format!("simulated {curve}");
        let mut report = Report::from_search(arguments, &mut device, setting, name);
        report.seconds = device.clock;
        let simulated = Conformance::Not("the device is simulated".to_owned());
        report.on_a_virtual_link = Some(std::mem::replace(&mut report.conformance, simulated));
        report
    };
    arguments.kinds().each().into_iter().map(on).collect()
}

/// Searches in the mode queue: the firewall has a CPU of its own, so a slow firewall loses frames.
fn on_a_system(
    arguments: &Arguments,
    name: &str,
    interrupt: &Interrupt,
) -> anyhow::Result<Vec<Report>> {
    let system = system::named(name).map_err(anyhow::Error::msg)?;
    if let Some(program) = system::missing(system.as_ref()) {
        anyhow::bail!("{name}: no such program: {program}: install it");
    }
    ensure!(
        arguments.test != Test::ConnectionsAtRate(ConnectionTestAtRate::Illegal)
            || (system.filters() && arguments.filters.have_rules()),
        "no rule forbids anything here: tcp-illegal needs a firewall, and --rules 1 or more"
    );
    let mtu = arguments.kinds().mtu();
    ensure!(
        mtu <= KERNEL_MTU || arguments.engine == Engine::Packet,
        "--size: the engine xdp makes frames of up to {} bytes: add --engine packet",
        KERNEL_MTU + 18
    );
    host::sweep()?;
    let there = (Cpus::choose()?, interrupt);
    let mut results = Results::begin(arguments, Mode::Queue, name.to_owned());
    for filter in arguments.filters.each() {
        if interrupt.came() && !results.reports.is_empty() {
            results.cut_short();
            break;
        }
        results.device = format!("{name} with {}", filter.name());
        results.filter = results.has_several_filters().then_some(filter);
        match behind(filter, system.as_ref(), there, &mut results) {
            Err(why) if results.filter.is_some() => results.keep_failure(&why)?,
            done => done?,
        }
    }
    results.written()
}

/// Searches with one filter.
fn behind(
    filter: Filter,
    system: &dyn System,
    (cpus, interrupt): (Cpus, &Interrupt),
    results: &mut Results,
) -> anyhow::Result<()> {
    let arguments = results.arguments;
    let lab = network::lab(system, arguments.kinds().mtu())?;
    if arguments.test.is_about_connections() {
        return with_connections(filter, system, &lab, (cpus, interrupt), results);
    }
    let ip = arguments.kinds().ip;
    let installed = Installed::new(&lab, system, filter, (Transport::Udp, ip), cpus);
    let installed = installed.with_context(|| system.name().to_owned())?;
    results.describe_system(&lab, installed.described())?;
    let mut site = Built { installed, cpus, interrupt: interrupt.clone() };
    let setting = |frames, most| arguments.setting(frames, most);
    results.search_each(&mut site, &setting, USUAL_LINK, interrupt)
}

/// Does a test of RFC 3511.
fn with_connections(
    filter: Filter,
    system: &dyn System,
    lab: &Lab,
    (cpus, interrupt): (Cpus, &Interrupt),
    results: &mut Results,
) -> anyhow::Result<()> {
    let arguments = results.arguments;
    let kinds = arguments.kinds();
    let frames = *kinds.each().first().context("no frames")?;
    let most = tcp_network::most(frames.ip, cpus, interrupt, Pages::ONE)?;
    let at_once = match arguments.holds_connections() {
        true => arguments.connections(),
        // the connections of a trial that makes and closes them one after the other
        false => MOST_CONNECTIONS,
    };
    let limits = (cpus, at_once);
    let network = TcpNetwork::new(lab, system, filter, frames.ip, limits, interrupt);
    let (mut network, described) = network.with_context(|| system.name().to_owned())?;
    results.describe_system(lab, described)?;
    let setting = arguments.setting(frames, most);
    results.search(&mut network, setting, &frames.load(Engine::Xdp));
    Ok(())
}

/// Searches between two interfaces of this machine.
fn between_interfaces(arguments: &Arguments, interrupt: &Interrupt) -> anyhow::Result<Vec<Report>> {
    let wire = Wire::from_interfaces(&arguments.interfaces)?;
    let [client, server] = wire.links();
    let device = format!("device between {} and {}", client.name, server.name);
    let mut results = Results::begin(arguments, Mode::Wire, device);
    results.describe(wire.described(), wire.links(), arguments)?;
    let (is_wire, link) = seen_from([client, server]);
    let mut site = Here { wire, at: place_of_generator()?, interrupt: interrupt.clone() };
    let setting = |frames, most| Setting { wire: is_wire, ..arguments.setting(frames, most) };
    results.search_each(&mut site, &setting, link, interrupt)?;
    results.written()
}

/// Searches between two other machines with frames, through an agent on each.
fn frames_between_agents(
    arguments: &Arguments,
    interrupt: &Interrupt,
) -> anyhow::Result<Vec<Report>> {
    let mut site = Apart::connect(&arguments.agents, &arguments.interfaces, interrupt)?;
    let mut results = between(&site.machines, arguments)?;
    let (is_wire, link) = seen_from(site.machines.each_ref().map(|machine| &machine.link));
    let setting = |frames, most| {
        // agents send no frames from the server's end
        Setting { wire: is_wire, learns: false, ..arguments.setting(frames, most) }
    };
    results.search_each(&mut site, &setting, link, interrupt)?;
    results.written()
}

/// Searches between two other machines with connections, through an agent on each.
fn connections_between_agents(
    arguments: &Arguments,
    interrupt: &Interrupt,
) -> anyhow::Result<Vec<Report>> {
    let endpoints = EndpointFlags::endpoints(arguments);
    let mut site = ConnectionsApart::connect(&arguments.agents, endpoints, interrupt)?;
    let mut results = between(&site.machines, arguments)?;
    let (is_wire, _) = seen_from(site.machines.each_ref().map(|machine| &machine.link));
    let most = site.most(Pages::ONE)?.context("the highest rate is unknown")?;
    let frames = *arguments.kinds().each().first().context("no frames")?;
    // the server's answers make bridges learn its port, so `learns` stays true
    let setting = Setting { wire: is_wire, foreign: true, ..arguments.setting(frames, most) };
    let mut report = Report::from_search(arguments, &mut site, setting, results.device.clone());
    for doubt in site.doubts() {
        report.conformance = report.conformance.and_but_for(&doubt);
    }
    results.keep(report, &frames.load(Engine::Xdp));
    results.written()
}

/// Begins the results for the network between the machines of two agents.
fn between<'a>(machines: &[Machine; 2], arguments: &'a Arguments) -> anyhow::Result<Results<'a>> {
    let device = "device between the agents".to_owned();
    let mut results = Results::begin(arguments, Mode::Wire, device);
    let [client, server] = machines;
    let links = [&client.link, &server.link];
    results.describe(wire::described("two machines", links), links, arguments)?;
    for (end, machine) in [("client", client), ("server", server)] {
        let environment = machine.environment.clone();
        results.run.agents.push(fwlab_results::Agent { end: end.to_owned(), environment });
    }
    Ok(results)
}

/// Returns true if both links are physical, and the speed of the slower one in bits a second.
fn seen_from(links: [&Link; 2]) -> (bool, f64) {
    let speed = links.iter().filter_map(|link| link.speed).min();
    let speed = speed.map_or(USUAL_LINK, |bits| bits as f64);
    (links.iter().all(|link| !link.is_virtual), speed)
}

/// Returns the placement of the generator on the last CPU, and pins this thread to the other CPUs.
fn place_of_generator() -> anyhow::Result<Placement> {
    let cpus = placement::cpus()?;
    let (&last, others) = cpus.split_last().context("no CPU")?;
    if !others.is_empty() {
        placement::pin(nix::unistd::Pid::from_raw(0), others)?;
    }
    Ok(Placement { cpu: last, priority: 1 })
}

/// The reports of a search and its result file.
struct Results<'a> {
    arguments: &'a Arguments,
    device: String,
    run: Run,
    watch: fwlab_results::Watch,
    reports: Vec<Report>,
    /// The current filter. None unless the search has several.
    filter: Option<Filter>,
}

impl<'a> Results<'a> {
    fn begin(arguments: &'a Arguments, mode: Mode, device: String) -> Results<'a> {
        let run = Run::begin(mode, environment::here());
        let watch = fwlab_results::Watch::begin();
        Results { arguments, device, run, watch, reports: Vec::new(), filter: None }
    }

    /// Describes two interfaces, and all between them as the system.
    fn describe(
        &mut self,
        topology: fwlab_results::Topology,
        links: [&Link; 2],
        arguments: &Arguments,
    ) -> anyhow::Result<()> {
        let mtu = arguments.kinds().mtu();
        for link in links {
            ensure!(
                link.mtu >= mtu,
                "{}: packets have {mtu} bytes, and the interface has an MTU of {}",
                link.name,
                link.mtu
            );
        }
        let name = topology.name.clone();
        self.run.topologies.push(topology);
        let nothing = String::new();
        let system =
            fwlab_results::System::new("wire", &self.device, Role::Subject, &name, nothing);
        self.run.systems.push(system);
        Ok(())
    }

    fn has_several_filters(&self) -> bool {
        self.arguments.filters.each().len() > 1
    }

    /// Describes a system in its network. Several filters make its id and label unique.
    fn describe_system(
        &mut self,
        lab: &Lab,
        mut system: fwlab_results::System,
    ) -> anyhow::Result<()> {
        if let Some(Filter { rules, nat }) = self.filter {
            system.id = format!("{}@{rules}{}", system.id, if nat { "+nat" } else { "" });
            system.label += if nat { ", NAT" } else { "" };
        }
        let name = &system.topology;
        if self.run.topologies.iter().all(|known| &known.name != name) {
            self.run.topologies.push(lab.described(name.clone())?);
        }
        self.run.systems.push(system);
        Ok(())
    }

    /// Keeps a report of a filter with which the search could not begin. The next filter is tried.
    fn keep_failure(&mut self, why: &anyhow::Error) -> anyhow::Result<()> {
        let frames = *self.arguments.kinds().each().first().context("no frames")?;
        let setting = self.arguments.setting(frames, 0.0);
        let report = Report::not_begun(self.arguments, setting, self.device.clone(), why);
        self.keep(report, &frames.load(self.arguments.engine));
        Ok(())
    }

    /// Marks the last report as interrupted.
    fn cut_short(&mut self) {
        if let Some(last) = self.reports.last_mut() {
            last.complete = false;
            last.incomplete_because = Some("interrupted".to_owned());
        }
    }

    /// Searches with each kind of frames. A failure ends only the search of its kind, if there are
    /// several.
    fn search_each(
        &mut self,
        site: &mut dyn Site,
        setting: &dyn Fn(Frames, f64) -> Setting,
        link: f64,
        interrupt: &Interrupt,
    ) -> anyhow::Result<()> {
        let kinds = self.arguments.kinds().each();
        let link = self.arguments.link.unwrap_or(link);
        let before = self.reports.len();
        for &frames in &kinds {
            if interrupt.came() && self.reports.len() > before {
                break;
            }
            let load = frames.load(self.arguments.engine);
            let carried = Setting::line_rate(link, frames.size);
            let most = site.most(&load).map(|most| most.min(carried));
            let most = most.with_context(|| frames.name());
            let begun = most.and_then(|most| Ok((most, site.measurer(&load)?)));
            match interrupt.or_interrupted(begun) {
                Ok((most, mut measurer)) => {
                    self.search(measurer.as_mut(), setting(frames, most), &load);
                }
                Err(why) if kinds.len() == 1 => return Err(why.context(self.device.clone())),
                Err(why) => {
                    let (device, setting) = (self.device.clone(), setting(frames, 0.0));
                    let report = Report::not_begun(self.arguments, setting, device, &why);
                    self.keep(report, &load);
                }
            }
        }
        if self.reports.len() - before < kinds.len() {
            self.cut_short();
        }
        Ok(())
    }

    /// Searches with one kind of frames.
    fn search(&mut self, measurer: &mut dyn Measurer, setting: Setting, load: &Load) {
        let report = Report::from_search(self.arguments, measurer, setting, self.device.clone());
        self.keep(report, load);
    }

    fn keep(&mut self, mut report: Report, load: &Load) {
        let before = self.reports.iter().map(|report| report.seconds).sum::<f64>();
        let (seconds, steal) = self.watch.end();
        self.run.environment.steal = steal;
        report.seconds = seconds - before;
        report.mode = Some(self.run.mode);
        report.environment = Some(self.run.environment.clone());
        report.system = self.run.systems.last().cloned();
        let Report { test, ref conformance, ref result, ref trials, setting, .. } = report;
        let several = self.arguments.kinds().each().len() > 1;
        let kind = several.then(|| setting.frames().name());
        let filter = self.filter.map(Filter::name);
        let kind =
            kind.into_iter().chain(filter).reduce(|kind, filter| format!("{kind}, {filter}"));
        let found = SearchResult { test, conformance, result, trials, kind };
        if let Some(system) = &report.system {
            found.write(&mut self.run, &system.id, &self.arguments.load(load));
        }
        self.reports.push(report);
    }

    /// Writes the result file, if one was asked for, and returns the reports.
    fn written(mut self) -> anyhow::Result<Vec<Report>> {
        let Some(path) = &self.arguments.result else { return Ok(self.reports) };
        let incomplete = self.reports.iter().find(|report| !report.complete);
        self.run.incomplete_because =
            incomplete.and_then(|report| report.incomplete_because.clone());
        self.run.complete = incomplete.is_none();
        written::by_size(&mut self.run);
        self.run.seconds = self.reports.iter().map(|report| report.seconds).sum();
        self.run.write(path).with_context(|| path.display().to_string())?;
        Ok(self.reports)
    }
}
