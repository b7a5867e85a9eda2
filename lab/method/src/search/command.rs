//! The flags of `fwlab search`, and the check of their combinations.

mod connections;
mod frames;
mod place;
mod report;
mod search;
mod ways;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::ensure;
use fwlab_agent::Agents;
use fwlab_load::connections::{MOST_AT_ONCE, PAGE, Pages};
use fwlab_load::raw::extension::Extension;
use fwlab_load::raw::load::{Engine, Load};
use fwlab_load::wire::Interfaces;
use fwlab_net::family::Family;

use super::filters::Filters;
use super::frames::{Frames, Kinds};
use super::simulated::Curve;
use super::test::{ConnectionTest, ConnectionTestAtRate, FrameTest, FrameTestAtThroughput, Test};
use super::{Setting, Variety, Waits};

use ways::EndpointFlags;

/// The default of `--connections`.
const MOST_CONNECTIONS: u64 = 5000;

/// The default of `--requests`.
const REQUESTS: u32 = 10;

/// The flags of `fwlab search`.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Test to run
    #[arg(value_enum)]
    test: Test,
    /// System to test, named as in `fwlab measure`, in its own network
    #[arg(long, value_name = "NAME", required_unless_present_any = ["simulate", "client_if", "client_agent"], conflicts_with_all = ["simulate", "seed", "client_if"])]
    system: Option<String>,
    #[command(flatten)]
    filters: Filters,
    /// Simulated device to test instead of a system: knee, slope or noise, each with an optional
    /// :RATE in frames per second; drop, reflect, or die:TRIAL
    #[arg(long, value_name = "CURVE", conflicts_with = "client_if")]
    simulate: Option<Curve>,
    /// Omit the pauses around trials
    #[arg(long)]
    no_pauses: bool,
    #[command(flatten)]
    interfaces: Interfaces,
    #[command(flatten)]
    agents: Agents,
    #[command(flatten)]
    ways: EndpointFlags,
    #[command(flatten)]
    kinds: Kinds,
    /// Generator of the frames
    #[arg(long, value_enum, default_value = "xdp", conflicts_with = "simulate")]
    engine: Engine,
    /// Maximum number of simultaneous TCP connections, or of connections to tear down in a trial;
    /// 5000 by default
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u64).range(1..=MOST_AT_ONCE))]
    connections: Option<u64>,
    /// Number of pages that each connection fetches, 1 to 10000; 10 by default
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    requests: Option<u32>,
    /// Bytes of a page, 0 to 1000000; by default 64 for http-rate and 10240 for tcp-flood
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u32).range(0..=1_000_000))]
    object: Option<u32>,
    /// Speed of the link in bits per second, 1e6 to 1e12; by default the speed that the interfaces
    /// report, or 1e10
    #[arg(long, value_name = "BITS", value_parser = link)]
    link: Option<f64>,
    /// Known throughput in frames or TCP connections per second, for the tests that need one;
    /// without the flag they search for it first
    #[arg(long, value_name = "RATE", value_parser = throughput_rate)]
    throughput: Option<f64>,
    /// Duration of the deciding trials in seconds, 0.01 to 3600
    #[arg(long, default_value_t = 60.0, value_parser = fwlab_load::seconds)]
    seconds: f64,
    /// Seed of the simulated device's noise
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Print the result as JSON, with every trial
    #[arg(long)]
    json: bool,
    /// Result file to write, for `fwlab report` and `fwlab compare`
    #[arg(long, value_name = "FILE", conflicts_with = "simulate")]
    result: Option<PathBuf>,
}

fn link(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(bits) if (1e6..=1e12).contains(&bits) => Ok(bits),
        _ => Err("must be 1e6 to 1e12 bits a second".to_string()),
    }
}

fn throughput_rate(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(rate) if (1.0..=1e9).contains(&rate) => Ok(rate),
        _ => Err("must be 1 to 1e9 frames or connections a second".to_string()),
    }
}

/// Searches, and prints the reports. The exit status is 1 if a kind of frames has no result.
///
/// # Errors
/// Fails if the flags contradict each other, if the network cannot be made, or if the report cannot
/// be printed.
pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    arguments.check()?;
    let reports = place::search(arguments)?;
    report::print(&reports, arguments.json)?;
    let is_complete = reports.iter().all(|report| report.complete);
    Ok(if is_complete { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

impl Arguments {
    /// Returns the setting of a laboratory of namespaces. `most` is the highest rate to offer, in
    /// frames or connections a second.
    fn setting(&self, frames: Frames, most: f64) -> Setting {
        let Frames { size, ip, extension, networks } = frames;
        Setting {
            wire: false,
            foreign: false,
            size,
            ip6: ip == Family::V6,
            extension,
            networks,
            // adjacencies are static
            learns: true,
            variety: Variety {
                rules: self.filters.have_several_sizes(),
                nat: self.filters.have_both(),
                ..self.kinds().variety()
            },
            most,
            waits: if self.no_pauses { Waits::NONE } else { Waits::STANDARD },
        }
    }

    /// Returns the kinds of frames. The hop-by-hop test has its own.
    fn kinds(&self) -> Kinds {
        match self.test {
            Test::Frames(FrameTest::HopByHop) => self.kinds.only(Family::V6, Extension::HopByHop),
            _ => self.kinds.clone(),
        }
    }

    fn connections(&self) -> u64 {
        self.connections.unwrap_or(MOST_CONNECTIONS)
    }

    /// Returns the pages that each connection of the HTTP tests fetches.
    fn pages(&self) -> Pages {
        let requests = self.requests.unwrap_or(REQUESTS);
        Pages { requests, bytes: self.object.unwrap_or(PAGE) }
    }

    fn holds_connections(&self) -> bool {
        matches!(
            self.test,
            Test::Connections(ConnectionTest::TcpCapacity | ConnectionTest::TcpTearDown)
        )
    }

    /// Fails if the flags contradict each other or the test.
    fn check(&self) -> anyhow::Result<()> {
        let name = self.test.name();
        ensure!(
            self.throughput.is_none() || self.test.takes_rate(),
            "--throughput: {name} measures the throughput itself: leave the flag out"
        );
        ensure!(
            !self.kinds.has(Extension::HopByHop),
            "--extension hop-by-hop: devices handle these frames slowly: run `fwlab search \
             hop-by-hop`"
        );
        ensure!(
            !self.kinds.has_extensions() || self.kinds.ip == Family::V6,
            "IPv4 has no extension headers: add --ip 6"
        );
        ensure!(
            !(self.kinds.are_special() && self.test.is_about_connections()),
            "{name} tests connections, not frames: leave out --size, --networks and --extension"
        );
        ensure!(
            !self.filters.translate() || self.test.is_about_connections(),
            "--nat: {name} has frames that nobody answers, and NAT needs connections: leave out \
             --nat"
        );
        ensure!(
            self.engine == Engine::Xdp || !self.test.is_about_connections(),
            "{name} tests connections, not frames: leave out --engine"
        );
        ensure!(
            self.connections.is_none() || self.holds_connections(),
            "--connections is for tcp-capacity and tcp-tear-down: leave it out of {name}"
        );
        let is_flood = self.test == Test::ConnectionsAtRate(ConnectionTestAtRate::Flood);
        let is_http_rate = self.test == Test::Connections(ConnectionTest::HttpRate);
        let is_http_transfer = self.test == Test::Connections(ConnectionTest::HttpTransfer);
        ensure!(
            self.requests.is_none() || is_http_transfer || is_http_rate || is_flood,
            "--requests is for http-transfer, http-rate and tcp-flood: leave it out of {name}"
        );
        ensure!(
            self.object.is_none() || is_http_rate || is_flood,
            "--object is for http-rate and tcp-flood: leave it out of {name}"
        );
        if self.simulate.is_some() {
            ensure!(
                self.kinds.knows_sizes_alone() || self.test == Test::Frames(FrameTest::HopByHop),
                "--simulate: the simulated device ignores addresses and headers: leave out \
                 --networks and --extension"
            );
        }
        self.check_wire(&name)
    }

    /// Checks the flags of a test between two interfaces or agents. There fwlab cannot reset the
    /// device, and has no clients and servers behind it.
    fn check_wire(&self, name: &str) -> anyhow::Result<()> {
        let has_interfaces = self.interfaces.names().is_some();
        if self.agents.are_given() {
            self.ways.check(self.test)?;
        }
        if self.agents.are_given() && self.test.is_about_connections() {
            ensure!(
                self.system.is_none() && self.simulate.is_none(),
                "--client-agent: connections go through the device between the agents: leave out \
                 --system and --simulate"
            );
            ensure!(
                !has_interfaces,
                "--client-if: {name} has connections, which follow the routes of the agents' \
                 machines: leave out --client-if and --server-if"
            );
            return Ok(());
        }
        if !has_interfaces {
            ensure!(
                !self.agents.are_given(),
                "--client-agent: {name} sends frames: add --client-if and --server-if"
            );
            return Ok(());
        }
        ensure!(
            !self.test.is_about_connections(),
            "--client-if: {name} has connections: use --system, or --client-agent and \
             --server-agent"
        );
        ensure!(
            self.test != Test::FramesAtThroughput(FrameTestAtThroughput::Reset),
            "--client-if: fwlab cannot reset the device between two interfaces: use --system"
        );
        ensure!(
            !self.agents.have_an_address(),
            "--server-address: frames have the benchmarking addresses of RFC 2544: leave the flag \
             out"
        );
        ensure!(
            !self.agents.are_given()
                || self.test != Test::FramesAtThroughput(FrameTestAtThroughput::Latency),
            "--client-agent: fwlab does not compare the clocks of two machines: measure latency \
             between --client-if and --server-if of one machine"
        );
        Ok(())
    }

    /// Returns the load of frames or connections for result files.
    fn load(&self, frames: &Load) -> fwlab_results::Load {
        let inet = if frames.ip == Family::V6 { "inet6" } else { "inet" };
        let common = fwlab_results::Load {
            family: Some(inet.to_owned()),
            seconds: self.seconds,
            ..fwlab_results::Load::default()
        };
        if self.test.is_about_connections() {
            return fwlab_results::Load {
                kind: "connections".to_owned(),
                protocol: Some("tcp".to_owned()),
                size: Some(self.pages().bytes.into()),
                ..common
            };
        }
        fwlab_results::Load {
            kind: "raw".to_owned(),
            protocol: Some("udp".to_owned()),
            size: frames.size.single().map(u64::from),
            flows: frames.flows(),
            details: frames.details(),
            ..common
        }
    }
}
