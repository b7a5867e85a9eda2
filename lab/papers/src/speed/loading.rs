//! The time to load a large configuration: `pfctl -f` compared with `nft -f` of the same contents.
//! Each runs on its own host and replaces the configuration of the previous round.

use std::fmt::Write;
use std::path::PathBuf;
use std::process::Command;
use std::time::Instant;

use anyhow::Context;
use fwlab_method::rounds::{Measured, Subject};
use fwlab_net::host::Host;
use fwlab_net::system::{self, skipstep};
use fwlab_results::{Better, Quantity, Role, Series};

use crate::study::{Extent, Study};

/// The kind of configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cargo {
    /// Rules that each block a port of an address.
    Rules,
    /// A table to which one rule refers. A third of its entries are networks of 256 addresses, the
    /// others are addresses.
    Table,
}

/// Kind, title of the series, and number of rules or entries.
pub(super) const CARGOES: [(Cargo, &str, u32); 2] =
    [(Cargo::Rules, "Loading rules", 100_000), (Cargo::Table, "Loading table entries", 1_000_000)];

/// The names of the two loaders in samples.
pub(super) const PFCTL: &str = "pfctl-f";
pub(super) const NFT: &str = "nft-f";

/// Estimated seconds of a round.
pub(super) const ROUND: f64 = 9.0;

/// Number of rules or entries with `--smoke`.
const SMOKE: u32 = 1000;

/// A loader with its file.
struct Loader<'h> {
    id: &'static str,
    host: &'h Host,
    file: PathBuf,
}

impl Subject for Loader<'_> {
    fn id(&self) -> &str {
        self.id
    }

    fn trial(&mut self) -> anyhow::Result<Measured> {
        let mut command = match self.id {
            PFCTL => {
                let mut command = Command::new(skipstep::pfctl());
                command.arg("-q");
                command
            }
            _ => Command::new("nft"),
        };
        let since = Instant::now();
        self.host.run(command.arg("-f").arg(&self.file), "")?;
        let value = since.elapsed().as_secs_f64();
        Ok(Measured { value, doubt: None, counts: None, latency: None })
    }
}

/// Measures all kinds of configuration.
///
/// # Errors
/// Fails if a configuration cannot be written or loaded, or if a signal arrives.
pub(super) fn measure(study: &mut Study) -> anyhow::Result<()> {
    for program in [skipstep::pfctl().display().to_string(), "nft".to_owned()] {
        if !system::is_there(&program) {
            study.leave_out(&format!("loading: no such program: {program}"));
            return Ok(());
        }
    }
    let [ours, theirs] = [Host::new("loading", "pfctl")?, Host::new("loading", "nft")?];
    let folder = tempfile::tempdir().context("folder for the rules and tables")?;
    for (cargo, title, count) in CARGOES {
        let count = if study.extent == Extent::Smoke { SMOKE } else { count };
        let mut loaders: Vec<Box<dyn Subject + '_>> = Vec::new();
        let mut systems = Vec::new();
        for (id, host) in [(PFCTL, &ours), (NFT, &theirs)] {
            let file = folder.path().join(format!("{id}-{count}"));
            let text = match id {
                PFCTL => pf_conf(cargo, count, &file.with_extension("table"))?,
                _ => nft(cargo, count),
            };
            std::fs::write(&file, text).with_context(|| file.display().to_string())?;
            loaders.push(Box::new(Loader { id, host, file }));
            let label = if id == PFCTL { "skipstep, pfctl -f" } else { "nftables, nft -f" };
            let what = format!(
                "{count} as docs/reference/speed.md describes them, on a host without a network"
            );
            // results have no topology for a host without links
            systems.push(fwlab_results::System::new(id, label, Role::Subject, "router", what));
        }
        study.measure_others(systems, &series(title), count, ROUND, &mut loaders)?;
    }
    Ok(())
}

fn series(title: &str) -> Series {
    Series {
        title: title.to_owned(),
        load: fwlab_results::Load { kind: "load".to_owned(), ..fwlab_results::Load::default() },
        quantity: Quantity {
            name: "time".to_owned(),
            unit: "s".to_owned(),
            better: Better::Lower,
            additive: false,
        },
        dimension: None,
        points: Vec::new(),
    }
}

/// Returns the address of an entry. All addresses differ, and none lies in the network of another
/// entry.
fn address(index: u32) -> String {
    let [_, a, b, c] = index.to_be_bytes();
    format!("{}.{a}.{b}.{c}", 10 + (index >> 24))
}

/// Returns an entry of the table: a network for each third index, otherwise an address.
fn entry(index: u32) -> String {
    match index % 3 {
        0 => {
            let [_, a, b, c] = (index / 3).to_be_bytes();
            format!("{}.{b}.{c}.0/24", 64 + a)
        }
        _ => address(index),
    }
}

fn pf_conf(cargo: Cargo, count: u32, table: &std::path::Path) -> anyhow::Result<String> {
    let mut text = String::new();
    match cargo {
        Cargo::Rules => {
            for index in 0..count {
                // writing to a string cannot fail
                let _ = writeln!(
                    text,
                    "block drop in quick inet proto udp from any to {} port {}",
                    address(index),
                    1 + index % 60_000
                );
            }
        }
        Cargo::Table => {
            let entries: String = (0..count).map(|index| entry(index) + "\n").collect();
            std::fs::write(table, entries).with_context(|| table.display().to_string())?;
            let _ = write!(
                text,
                "set limit table-entries {}\ntable <many> persist file \"{}\"\nblock drop in quick inet from <many>\n",
                count + 1000,
                table.display()
            );
        }
    }
    Ok(text)
}

fn nft(cargo: Cargo, count: u32) -> String {
    let chain = "type filter hook forward priority 0; policy accept;";
    // the table does not exist in the first round, so make it before deleting it
    let mut text = "table ip loading {}\ndelete table ip loading\ntable ip loading {\n".to_owned();
    match cargo {
        Cargo::Rules => {
            let _ = writeln!(text, " chain forward {{\n  {chain}");
            for index in 0..count {
                let port = 1 + index % 60_000;
                let _ = writeln!(text, "  ip daddr {} udp dport {port} drop", address(index));
            }
        }
        Cargo::Table => {
            let entries: Vec<String> = (0..count).map(entry).collect();
            let _ = writeln!(
                text,
                " set many {{ type ipv4_addr; flags interval; elements = {{ {} }} }}\n chain forward {{\n  {chain}\n  ip saddr @many drop",
                entries.join(", ")
            );
        }
    }
    text + " }\n}\n"
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn entries_do_not_overlap() {
        let mut networks = BTreeSet::new();
        for index in (0..200_000).chain(900_000..1_000_000) {
            let text = entry(index);
            let network = text.rsplit_once('.').unwrap().0.to_owned();
            if text.ends_with("/24") {
                assert!(networks.insert(network), "{text}");
            } else {
                let first: u32 = text.split('.').next().unwrap().parse().unwrap();
                assert!(first < 64, "{text} may be in a network");
            }
        }
    }

    #[test]
    fn both_get_as_many() {
        let folder = tempfile::tempdir().unwrap();
        let table = folder.path().join("table");
        for cargo in [Cargo::Rules, Cargo::Table] {
            let ours = pf_conf(cargo, 300, &table).unwrap();
            let theirs = nft(cargo, 300);
            match cargo {
                Cargo::Rules => {
                    assert_eq!(ours.lines().count(), 300);
                    assert_eq!(theirs.matches("dport").count(), 300);
                }
                Cargo::Table => {
                    assert_eq!(std::fs::read_to_string(&table).unwrap().lines().count(), 300);
                    assert_eq!(theirs.matches(", ").count(), 299);
                }
            }
        }
    }
}
