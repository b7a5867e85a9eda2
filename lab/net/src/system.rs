//! Systems under test. Each has a file with its name, the exact text of its configuration, and the
//! hooks that a packet crosses. The file also loads the text on the host in the middle.
//! docs/reference/fwlab.md explains how to add a system.

mod bare_route;
mod ftp_gw;
mod haproxy;
mod iptables;
mod nftables;
mod plain;
pub mod skipstep;

use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::ensure;
use fwlab_results::Role;
use skipstep_kernel::lab::RoutesIn;

use self::plain::Plain;
use crate::host::Host;
use crate::rules::Rules;

use crate::topology::Topology;
use crate::traffic::{self, ServerAddress, TrafficKind};
use crate::transport::Transport;

/// A system that forwards between client and server, and may filter.
pub trait System: Sync {
    /// Returns the name for `--systems`.
    fn name(&self) -> &'static str;

    /// Returns the label in tables.
    fn label(&self) -> &'static str;

    /// Returns the role of the system in a comparison.
    fn role(&self) -> Role {
        Role::Subject
    }

    /// Returns the topology in which the system is measured if `wanted` is requested.
    fn topology(&self, wanted: Topology) -> Topology {
        wanted
    }

    /// Returns the programs that are needed to configure the system.
    fn programs(&self) -> Vec<String>;

    /// Returns the whole configuration, in the system's own syntax.
    fn configuration(&self, rules: &Rules) -> String;

    /// Returns an addition to the configuration that translates clients' addresses to the system's
    /// own address towards the server. None if the system cannot do so in this topology.
    fn translation(&self, _: &Rules) -> Option<String> {
        None
    }

    /// Returns the hooks that a packet crosses.
    fn hooks(&self, topology: Topology) -> Vec<String>;

    /// Loads a configuration on the host in the middle.
    ///
    /// # Errors
    /// Fails if the system's program or the kernel refuses the configuration, or if a program it
    /// needs does not start.
    fn install(&self, device: &Host, rules: &Rules, configuration: &str) -> anyhow::Result<()>;

    /// Describes the reset that [`System::restart`] does. None if there is nothing to reset except
    /// the host.
    fn reset(&self) -> Option<&'static str> {
        None
    }

    /// Removes the system's configuration from a host and loads it again.
    ///
    /// # Errors
    /// Fails if the system has no reset, or if its program or the kernel refuses the configuration.
    fn restart(&self, _: &Host, _: &Rules, _: &str) -> anyhow::Result<()> {
        anyhow::bail!("{} has nothing to reset", self.name())
    }

    /// Returns true if the system applies the rules. A system that does not, like a plain router,
    /// only serves for comparison.
    fn filters(&self) -> bool {
        self.role() == Role::Subject
    }

    /// Returns true if the system keeps states. Such a system needs packets of both directions.
    fn keeps_states(&self) -> bool {
        false
    }

    /// Returns true if the system supports a topology, or has its own.
    fn supports(&self, topology: Topology) -> bool {
        topology != Topology::Proxy
    }

    /// Returns true if a load passes the system: the generator's frames (None), or a load of
    /// sockets.
    fn takes(&self, _: Option<TrafficKind>, _: Transport) -> bool {
        true
    }

    /// Returns a TCP port of the server that clients must not reach. None where frames to the ports
    /// of [`Rules`] already check the rules.
    fn closed(&self, topology: Topology) -> Option<u16> {
        (topology == Topology::Proxy).then_some(traffic::HTTP)
    }

    /// Returns the address by which clients reach the server.
    fn server_address(&self) -> ServerAddress {
        ServerAddress::Straight
    }
}

/// Waits until a program on a host listens on a port.
fn await_listener(device: &Host, at: SocketAddr) -> anyhow::Result<()> {
    let since = Instant::now();
    loop {
        device.ensure_running()?;
        match device.inside(|| TcpListener::bind(at).map(drop))? {
            Err(error) if error.kind() == ErrorKind::AddrInUse => return Ok(()),
            _ => ensure!(since.elapsed() < PATIENCE, "nothing listens at {at}"),
        }
        thread::sleep(TICK);
    }
}

/// Longest time until a program listens, and the interval of checks.
const PATIENCE: Duration = Duration::from_secs(5);
const TICK: Duration = Duration::from_millis(20);

/// Returns all systems in the order of tables. The systems that every block has come first.
pub fn all() -> Vec<Box<dyn System>> {
    let mut all: Vec<Box<dyn System>> =
        vec![Box::new(Plain::Null), Box::new(Plain::Router), Box::new(Plain::Bridge)];
    for stands in [RoutesIn::Xdp, RoutesIn::Tcx] {
        all.push(Box::new(bare_route::BareRoute(stands)));
    }
    all.extend(iptables::all());
    all.extend(nftables::all());
    all.extend(skipstep::all());
    all.extend(ftp_gw::all());
    all.push(Box::new(haproxy::Haproxy));
    all
}

/// Returns the system of a name.
///
/// # Errors
/// Fails if there is no such system; the error lists all names.
pub fn named(name: &str) -> Result<Box<dyn System>, String> {
    let names = || all().iter().map(|system| system.name()).collect::<Vec<_>>().join(", ");
    let found = all().into_iter().find(|system| system.name() == name);
    found.ok_or_else(|| format!("{name}: no such system: choose one of {}", names()))
}

/// Returns a program that a system needs and that is not installed.
pub fn missing(system: &dyn System) -> Option<String> {
    system.programs().into_iter().find(|program| !is_there(program))
}

/// Returns true if a program exists: as a path with a slash, or in a folder of `PATH`.
pub fn is_there(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    program.contains('/') || std::env::split_paths(&path).any(|dir| dir.join(program).exists())
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::family::Family;
    use crate::topology::End;

    #[test]
    fn names_are_different_and_found() {
        let names: Vec<_> = all().iter().map(|system| system.name()).collect();
        for name in &names {
            assert_eq!(names.iter().filter(|other| other == &name).count(), 1);
            assert_eq!(named(name).unwrap().name(), *name);
        }
        assert!(named("ipfw").err().unwrap().contains("nft-flat"));
    }

    #[test]
    fn each_has_its_place_on_the_page_and_no_long_file() {
        let page = include_str!("../../../docs/reference/systems.md");
        for system in all() {
            assert!(page.contains(&format!("| `{}` |", system.name())), "{}", system.name());
        }
        let mut folders = vec![PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/src/system"))];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(&folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                    continue;
                }
                let lines = std::fs::read_to_string(&path).unwrap().lines().count();
                assert!(lines < 100, "{}: {lines} lines", path.display());
            }
        }
    }

    #[test]
    fn filters_block_every_port_by_a_rule_of_its_own() {
        for topology in [Topology::Router, Topology::Bridge] {
            for family in [Family::V4, Family::V6] {
                let (transport, to) = (Transport::Tcp, End::Server);
                let rules = Rules { count: 3, transport, family, to, topology };
                for system in all().iter().filter(|system| system.filters()) {
                    let text = system.configuration(&rules);
                    for port in ["20000", "20001", "20002"] {
                        assert!(text.contains(port), "{}: {text}", system.name());
                    }
                    assert!(!text.contains("20003"));
                    assert!(text.contains(&rules.server().to_string()));
                }
            }
        }
    }
}
