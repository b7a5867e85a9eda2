//! What finding a rule among many costs: the trees of `skipstep_classifier::tree`, walked by this process.
//!
//! The unit is a lookup in a hash map of the kernel's kind; what the programs make of the same trees is measured where
//! they run.

use std::fs;
use std::hint::black_box;
use std::path::Path;

use anyhow::Context as _;
use skipstep_classifier::sample::{self, Kind};
use skipstep_classifier::tree::{Covering, Forest, INET, INET6, Region, Space};

use super::rule_sets::processor_seconds;

const COUNTS: [usize; 3] = [1_000, 10_000, 100_000];
const PACKETS: usize = 65_536;

/// Measures samples of every kind in both families, and the lists in a folder of ClassBench's.
pub fn run(lists: Option<&Path>) -> anyhow::Result<()> {
    println!(
        "{:<24}{:>6}{:>9}{:>9}{:>10}{:>9}{:>9}",
        "rules", "trees", "MB", "longest", "left over", "plant s", "ns"
    );
    for kind in Kind::ALL {
        for count in COUNTS {
            let name = format!("{} {count}", kind.name());
            let rules = sample::rules(kind, count, 1);
            measure(&name, &INET, &rules, &sample::packets(&rules, PACKETS, 2))?;
            let rules = sample::rules6(kind, count, 1);
            measure(&format!("{name} IPv6"), &INET6, &rules, &sample::packets(&rules, PACKETS, 2))?;
        }
    }
    let Some(folder) = lists else { return Ok(()) };
    let mut files: Vec<_> = fs::read_dir(folder)?.collect::<Result<_, _>>()?;
    files.sort_by_key(fs::DirEntry::path);
    for path in files.iter().map(fs::DirEntry::path) {
        if path.to_string_lossy().contains("trace") || !path.is_file() {
            continue;
        }
        let rules = read(&path).with_context(|| path.display().to_string())?;
        if rules.is_empty() {
            continue;
        }
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        measure(&name, &INET, &rules, &sample::packets(&rules, PACKETS, 2))?;
    }
    Ok(())
}

fn measure<const N: usize>(
    name: &str,
    space: &'static Space<N>,
    rules: &[Covering<N>],
    packets: &[[u32; N]],
) -> anyhow::Result<()> {
    let begin = processor_seconds()?;
    let forest = Forest::plant(space, rules);
    let planted = processor_seconds()?;
    let mut found = 0;
    for packet in packets {
        found += black_box(forest.find(packet, |_| true)).map_or(0, u64::from);
    }
    let seconds = processor_seconds()? - planted;
    black_box(found);
    let size = forest.size();
    println!(
        "{name:<24}{:>6}{:>9.2}{:>9}{:>10}{:>9.2}{:>9.0}",
        size.trees,
        size.cells as f64 * 64.0 / 1e6,
        size.longest,
        size.left_over,
        planted - begin,
        seconds / packets.len() as f64 * 1e9
    );
    Ok(())
}

/// A list as ClassBench writes it: `@source/bits destination/bits low : high low : high protocol/mask …`.
fn read(path: &Path) -> anyhow::Result<Vec<Covering<6>>> {
    let bytes = fs::read(path)?;
    let text = if path.extension().is_some_and(|extension| extension == "gz") {
        let mut text = String::new();
        std::io::Read::read_to_string(&mut flate2::read::GzDecoder::new(&bytes[..]), &mut text)?;
        text
    } else {
        String::from_utf8(bytes)?
    };
    let lines = text.lines().filter_map(|line| line.strip_prefix('@'));
    let rules =
        lines.zip(0..).map(|(line, order)| rule(line, order).with_context(|| line.to_owned()));
    rules.collect()
}

fn rule(line: &str, order: u32) -> anyhow::Result<Covering<6>> {
    let words: Vec<&str> = line.split_whitespace().filter(|word| *word != ":").collect();
    let network = |word: &str| -> anyhow::Result<(u32, u32)> {
        let net: ipnet::Ipv4Net = word.parse()?;
        Ok((net.network().to_bits(), net.broadcast().to_bits()))
    };
    let word = |place: usize| words.get(place).context("too short");
    let ports = |place: usize| anyhow::Ok((word(place)?.parse()?, word(place + 1)?.parse()?));
    let protocol = match word(6)?.split_once("/0x").context("no mask")? {
        (_, "00") => (0, 0xff),
        (protocol, _) => {
            let protocol = u32::from_str_radix(protocol.trim_start_matches("0x"), 16)?;
            (protocol, protocol)
        }
    };
    let fields =
        [network(word(0)?)?, network(word(1)?)?, ports(2)?, ports(4)?, protocol, (0, 0xff)];
    let region = Region { low: fields.map(|(low, _)| low), high: fields.map(|(_, high)| high) };
    Ok(Covering { region, whole: true, order })
}
