//! The time to look each source up in a table of a million addresses, compared with an interval set
//! of nftables. Sources are drawn at random, and half of them are in the table. All frames pass.

use std::fmt::Write;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context;
use fwlab_load::raw::load::Vary;
use fwlab_net::family::Family;
use fwlab_net::host::Host;
use fwlab_net::rules::Rules;
use fwlab_net::system::System;
use fwlab_net::topology::{End, Topology};
use fwlab_results::Role;
use tempfile::TempDir;

use super::cost;
use crate::study::{Block, Extent, PlannedPoint, Study};

/// The title of the series, and the number of entries.
pub(super) const TITLE: &str = "A table is asked";
pub(super) const ENTRIES: u32 = 1_000_000;

/// The names of the systems: tcx, XDP, nftables.
pub(super) const SYSTEMS: [&str; 3] = ["skipstep-table", "skipstep-table-xdp", "nft-interval-set"];

/// Number of entries with `--smoke`.
const SMOKE: u32 = 1000;

/// A system with a table.
struct Listed {
    /// The system that loads the configuration and determines the hooks.
    inner: Box<dyn System>,
    name: &'static str,
    entries: u32,
    /// The folder of the files with the entries.
    folder: Arc<TempDir>,
}

impl Listed {
    fn is_nftables(&self) -> bool {
        self.name.starts_with("nft")
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join(if self.is_nftables() { "nft" } else { "pfctl" })
    }
}

impl System for Listed {
    fn name(&self) -> &'static str {
        self.name
    }

    fn label(&self) -> &'static str {
        match self.name {
            "skipstep-table" => "skipstep, a table",
            "skipstep-table-xdp" => "skipstep, a table and XDP",
            _ => "nftables, an interval set",
        }
    }

    fn role(&self) -> Role {
        self.inner.role()
    }

    fn programs(&self) -> Vec<String> {
        self.inner.programs()
    }

    fn configuration(&self, rules: &Rules) -> String {
        let file = self.file();
        let file = file.display();
        if self.is_nftables() {
            return format!(
                "table inet fwlab {{\n\tset many {{\n\t\ttype ipv4_addr; flags interval;\n\t}}\n\
                 \tchain forward {{\n\t\ttype filter hook forward priority 0; policy accept;\n\
                 \t\tip saddr @many accept\n\t}}\n}}\ninclude \"{file}\"\n"
            );
        }
        format!(
            "set limit table-entries {}\n{}table <many> persist file \"{file}\"\n\
             pass in inet from <many> no state allow-opts\n",
            self.entries + 1000,
            self.inner.configuration(rules)
        )
    }

    fn hooks(&self, topology: Topology) -> Vec<String> {
        self.inner.hooks(topology)
    }

    fn install(&self, device: &Host, rules: &Rules, configuration: &str) -> anyhow::Result<()> {
        self.inner.install(device, rules, configuration)
    }
}

/// Plans the time of a frame whose source is looked up in a table.
///
/// # Errors
/// Fails if the file of the entries cannot be written.
pub(super) fn block(study: &mut Study) -> anyhow::Result<(Block, Vec<PlannedPoint>)> {
    let entries = if study.extent == Extent::Smoke { SMOKE } else { ENTRIES };
    let folder = tempfile::tempdir().context("folder for a table")?;
    for (name, text) in [("pfctl", pfctl(entries)), ("nft", nft(entries))] {
        let file = folder.path().join(name);
        fs::write(&file, text).with_context(|| file.display().to_string())?;
    }
    let folder = Arc::new(folder);
    let mut load = super::load(Family::V4);
    load.sources = Vary::Random(2 * entries);
    let (mut block, mut cells) = cost(study, TITLE, 0, load, &[]);
    cells[0].at = Some(ENTRIES.into());
    if let Some(dimension) = &mut cells[0].series.dimension {
        dimension.name = "entries".to_owned();
    }
    for (name, inner) in
        SYSTEMS.into_iter().zip(["skipstep-compiled", "skipstep-compiled-xdp", "nft-flat"])
    {
        let found = study.systems(&[inner]).pop();
        block.systems.extend(found.map(|inner| -> Box<dyn System> {
            Box::new(Listed { inner, name, entries, folder: folder.clone() })
        }));
    }
    Ok((block, cells))
}

/// Returns the entries: one of each two consecutive addresses from the client's on, chosen by a
/// hash.
fn addresses(entries: u32) -> impl Iterator<Item = std::net::Ipv4Addr> {
    let first = match End::Client.address(Family::V4) {
        std::net::IpAddr::V4(first) => first.to_bits(),
        std::net::IpAddr::V6(_) => 0,
    };
    (0..entries).map(move |number| {
        let odd = number.wrapping_mul(0x9e37_79b9) >> 31;
        (first + 2 * number + odd).into()
    })
}

fn pfctl(entries: u32) -> String {
    addresses(entries).map(|address| format!("{address}\n")).collect()
}

fn nft(entries: u32) -> String {
    let mut text = "add element inet fwlab many {".to_owned();
    for address in addresses(entries) {
        // writing to a string cannot fail
        let _ = write!(text, " {address},");
    }
    text + " }\n"
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn both_have_every_second_source() {
        let all: BTreeSet<u32> = addresses(10_000).map(u32::from).collect();
        assert_eq!(all.len(), 10_000);
        let (first, last) = (all.first().unwrap(), all.last().unwrap());
        assert!((19_990..=20_000).contains(&(last - first + 1)), "{first} to {last}");
        let neighbours = all.iter().filter(|address| all.contains(&(**address + 1))).count();
        assert!((1000..4000).contains(&neighbours), "{neighbours} are beside another one");
        assert_eq!(pfctl(300).lines().count(), 300);
        assert_eq!(nft(300).matches(',').count(), 300);
    }
}
