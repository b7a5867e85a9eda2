//! Systems under test. One is a file here: what it is called, the exact text that configures it,
//! how that text is loaded on the host between client and server, and which hooks a packet crosses
//! there. docs/reference/fwlab.md says how to add one.

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
use skipstep_kernel::lab::RoutesIn;

use self::plain::Plain;
use crate::host::Host;
use crate::raw::frame::Transport;
use crate::results::Role;
use crate::rules::Rules;
use crate::sockets::{self, Kind, Way};
use crate::topology::Topology;

/// Something that forwards, and perhaps filters.
pub trait System: Sync {
    /// What `--systems` calls it.
    fn name(&self) -> &'static str;

    /// What tables call it.
    fn label(&self) -> &'static str;

    /// What it is there for.
    fn role(&self) -> Role {
        Role::Subject
    }

    /// The topology it is measured in when `wanted` was asked for.
    fn topology(&self, wanted: Topology) -> Topology {
        wanted
    }

    /// Programs without which it cannot be configured.
    fn programs(&self) -> Vec<String>;

    /// Its whole configuration, as its own program reads it.
    fn configuration(&self, rules: &Rules) -> String;

    /// What is added to its configuration if it is to translate the addresses of clients to its own
    /// towards the server; none if it cannot there.
    fn translation(&self, _: &Rules) -> Option<String> {
        None
    }

    /// Hooks that a packet crosses.
    fn hooks(&self, topology: Topology) -> Vec<String>;

    /// Loads a configuration on the host in the middle.
    ///
    /// # Errors
    /// Its program or the kernel refuses it.
    fn install(&self, device: &Host, rules: &Rules, configuration: &str) -> anyhow::Result<()>;

    /// What a reset of it is, as far as there is anything but the host to be reset: what
    /// [`System::restart`] does.
    fn reset(&self) -> Option<&'static str> {
        None
    }

    /// Takes its configuration away and loads it again, on a host where it is.
    ///
    /// # Errors
    /// It has no reset, or its program or the kernel refuses it.
    fn restart(&self, _: &Host, _: &Rules, _: &str) -> anyhow::Result<()> {
        anyhow::bail!("{} has nothing to reset", self.name())
    }

    /// Whether it does what the rules say. What does not is there to be compared with, like a plain
    /// router.
    fn filters(&self) -> bool {
        self.role() == Role::Subject
    }

    /// Whether it keeps states, which want to see both directions.
    fn keeps_states(&self) -> bool {
        false
    }

    /// Whether it can stand in a topology, or brings one of its own.
    fn stands_in(&self, topology: Topology) -> bool {
        topology != Topology::Proxy
    }

    /// Whether a load gets through: the generator's frames (none), or what sockets do.
    fn takes(&self, _: Option<Kind>, _: Transport) -> bool {
        true
    }

    /// Where frames to the ports of [`Rules`] do not show what gets through: a TCP port of the
    /// server that clients must not get to, while what they are to do is done.
    fn closed(&self, topology: Topology) -> Option<u16> {
        (topology == Topology::Proxy).then_some(sockets::HTTP)
    }

    /// How clients reach the server.
    fn way(&self) -> Way {
        Way::Straight
    }
}

/// Waits until something that was started on a host listens on a port.
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

/// How long a program may take until it listens, and how often that is looked at.
const PATIENCE: Duration = Duration::from_secs(5);
const TICK: Duration = Duration::from_millis(20);

/// All systems, in the order of tables: those that every block has first.
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

/// The system of a name.
///
/// # Errors
/// There is none.
pub fn named(name: &str) -> Result<Box<dyn System>, String> {
    let names = || all().iter().map(|system| system.name()).collect::<Vec<_>>().join(", ");
    let found = all().into_iter().find(|system| system.name() == name);
    found.ok_or_else(|| format!("{name}: no such system: there are {}", names()))
}

/// Which of the programs that a system needs is not in the path.
pub fn missing(system: &dyn System) -> Option<String> {
    system.programs().into_iter().find(|program| !is_there(program))
}

/// Whether a program is in the path.
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
