//! `xtask bench --tables`: the time that the BPF programs take to look an address up in a table.
//! The unit is a lookup in a hash map of the kernel.
//!
//! Entries and addresses are drawn from a seed. Half of the addresses are in a random entry, the
//! others are random, so that caches help little. Results are compared with the entries.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::process::ExitCode;

use anyhow::{bail, ensure};
use ipnet::IpNet;
use skipstep_abi as abi;
use skipstep_kernel::Indexing;
use skipstep_pfconf::Context;
use skipstep_ruleset::Ruleset;
use skipstep_testing::{Lookup, LookupPacket, Lookups, PACKETS};

use super::lookup::baseline;
use super::{host, median};

const COUNTS: [usize; 4] = [10, 1_000, 100_000, 1_000_000];

/// The kind of entries in a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Entries {
    /// Addresses only.
    Hosts,
    /// Every third entry is a network of 256 addresses, or an IPv6 /48.
    Mixed,
    /// Networks of all lengths, nested, of which every fifth is negated.
    Nested,
}

/// Measures all tables. Returns failure if lookups differ from the entries.
///
/// # Errors
/// Fails if the kernel refuses a program or a table.
pub fn run(rounds: u32) -> anyhow::Result<ExitCode> {
    println!(
        "Lookups of {PACKETS} addresses: medians of {rounds} rounds; a unit is a lookup in a hash map of 1,000 keys\n"
    );
    println!(
        "{:<16}{:>10}{:>9}{:>9}{:>9}{:>9}{:>9}{:>9}",
        "table", "entries", "unit ns", "trie", "ns", "index", "ns", "differ"
    );
    // each table replaces the previous one
    let mut lookups = Lookups::new(1000, 2 * COUNTS[COUNTS.len() - 1] as u32 + 1000)?;
    let mut differ = 0;
    for kind in [Entries::Hosts, Entries::Mixed, Entries::Nested] {
        for six in [false, true] {
            for count in COUNTS {
                differ += measure(&mut lookups, (kind, six, count), rounds)?;
            }
        }
    }
    if differ > 0 {
        println!("\n{differ} lookups differ from the entries");
        return Ok(ExitCode::FAILURE);
    }
    Ok(ExitCode::SUCCESS)
}

fn measure(
    lookups: &mut Lookups,
    (kind, six, count): (Entries, bool, usize),
    rounds: u32,
) -> anyhow::Result<usize> {
    let mut rng = fastrand::Rng::with_seed(7);
    let entries = entries(&mut rng, kind, six, count);
    let ruleset = ruleset(&entries)?;
    let nets: Vec<&IpNet> = entries.keys().collect();
    let packets: Vec<LookupPacket> = (0..PACKETS)
        .map(|number| {
            let address = match number % 2 {
                0 => {
                    let net = nets[rng.usize(..nets.len())];
                    within(&mut rng, net)
                }
                _ => anywhere(&mut rng, six),
            };
            LookupPacket {
                source: abi::address_bytes(address),
                family: if six { abi::INET6 } else { abi::INET },
                ..LookupPacket::default()
            }
        })
        .collect();
    let expected = |packet: &LookupPacket| {
        u32::from(holds(&entries, abi::address_from(packet.family, packet.source)))
    };
    let expected: Vec<u32> = packets.iter().map(expected).collect();
    print!("{:<16}{count:>10}", format!("{kind:?} {}", if six { "IPv6" } else { "IPv4" }));
    let (mut units, mut costs, mut differ) = (Vec::new(), Vec::new(), 0);
    for indexing in [Indexing::None, Indexing::All] {
        lookups.set_indexing(indexing);
        // an unchanged table would keep its index, so load a rule set without the table first
        lookups.load(&Ruleset::default(), &host())?;
        lookups.load(&ruleset, &host())?;
        lookups.set_packets(&packets)?;
        let mut of_table = Vec::new();
        for _ in 0..rounds {
            let baseline = baseline(lookups)?;
            units.push(lookups.run(Lookup::Hash)? - baseline);
            of_table.push(lookups.run(Lookup::Table)? - baseline);
        }
        costs.push(median(&mut of_table));
        differ +=
            expected.iter().zip(lookups.decided()?).filter(|(one, other)| **one != *other).count();
    }
    let unit = median(&mut units);
    print!("{unit:>9.0}");
    costs.iter().for_each(|cost| print!("{:>9.1}{cost:>9.0}", cost / unit));
    println!("{differ:>9}");
    Ok(differ)
}

/// Returns a rule set with one rule that names a table of these entries.
fn ruleset(entries: &HashMap<IpNet, bool>) -> anyhow::Result<Ruleset> {
    let host = host();
    let mut ruleset =
        match skipstep_pfconf::load("table <t>\nblock in from <t>\n", &Context::new(&host)) {
            Ok(loaded) => loaded.ruleset,
            Err(rejected) => bail!("{}", rejected.diagnostics[0]),
        };
    ruleset.options.limits.table_entries = entries.len() as u32 + 1000;
    let table = ruleset.tables.first_mut();
    ensure!(table.is_some(), "there is no table");
    if let Some(table) = table {
        table.initialized = true;
        let entry = |(net, negated): (&IpNet, &bool)| skipstep_ruleset::TableEntry {
            negated: *negated,
            ..skipstep_ruleset::TableEntry::from(*net)
        };
        table.entries = entries.iter().map(entry).collect();
    }
    Ok(ruleset)
}

/// Draws networks; the value is true for a negated one.
fn entries(
    rng: &mut fastrand::Rng,
    kind: Entries,
    six: bool,
    count: usize,
) -> HashMap<IpNet, bool> {
    let mut entries = HashMap::new();
    while entries.len() < count {
        let address = anywhere(rng, six);
        let whole = if six { 128 } else { 32 };
        let length = match kind {
            Entries::Hosts => whole,
            Entries::Mixed if !entries.len().is_multiple_of(3) => whole,
            Entries::Mixed => {
                if six {
                    48
                } else {
                    24
                }
            }
            Entries::Nested => rng.u8(8..=whole),
        };
        let net = IpNet::new(address, length).map(|net| net.trunc());
        let negated = kind == Entries::Nested && rng.u8(..5) == 0;
        if let Ok(net) = net {
            entries.insert(net, negated);
        }
    }
    entries
}

/// Draws an address from the range of global addresses.
fn anywhere(rng: &mut fastrand::Rng, six: bool) -> IpAddr {
    match six {
        false => Ipv4Addr::from(rng.u32(0x0100_0000..0xe000_0000)).into(),
        // several hosts share a site
        true => {
            let site = (0x2001_0db8_u128 << 96) | (u128::from(rng.u32(..)) << 72);
            Ipv6Addr::from(site | u128::from(rng.u64(..))).into()
        }
    }
}

fn within(rng: &mut fastrand::Rng, net: &IpNet) -> IpAddr {
    match net {
        IpNet::V4(net) => {
            Ipv4Addr::from(u32::from(net.addr()) | (rng.u32(..) & u32::from(net.hostmask()))).into()
        }
        IpNet::V6(net) => {
            Ipv6Addr::from(u128::from(net.addr()) | (rng.u128(..) & u128::from(net.hostmask())))
                .into()
        }
    }
}

/// Returns true if the longest entry that contains the address is not negated.
fn holds(entries: &HashMap<IpNet, bool>, address: IpAddr) -> bool {
    let whole = if address.is_ipv4() { 32 } else { 128 };
    let lengths = (0..=whole).rev();
    let mut around = lengths.filter_map(|length| {
        let net = IpNet::new(address, length).ok()?.trunc();
        entries.get(&net)
    });
    around.next().is_some_and(|negated| !negated)
}
