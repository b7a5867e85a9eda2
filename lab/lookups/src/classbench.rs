//! Rule lists and traces in ClassBench's format.

use std::fs;
use std::path::Path;

use anyhow::Context as _;
use skipstep_classifier::tree::{Covering, Rect};

/// Reads the lists in a folder, gzipped or not, with the names of their files. Traces and empty
/// lists are skipped.
///
/// # Errors
/// Fails if the folder or a list cannot be read, or if a line is malformed.
pub fn lists(folder: &Path) -> anyhow::Result<Vec<(String, Vec<Covering<6>>)>> {
    let mut files: Vec<_> = fs::read_dir(folder)
        .with_context(|| folder.display().to_string())?
        .collect::<Result<_, _>>()?;
    files.sort_by_key(fs::DirEntry::path);
    let mut lists = Vec::new();
    for path in files.iter().map(fs::DirEntry::path) {
        if path.to_string_lossy().contains("trace") || !path.is_file() {
            continue;
        }
        let rules = read(&path).with_context(|| path.display().to_string())?;
        if !rules.is_empty() {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            lists.push((name.trim_end_matches(".gz").to_owned(), rules));
        }
    }
    Ok(lists)
}

/// Returns true if a list has the nominal size `count`. ClassBench's lists have somewhat fewer
/// rules than their nominal size.
pub fn has_about(rules: &[Covering<6>], count: usize) -> bool {
    (count / 2..=count).contains(&rules.len())
}

/// Reads the packets that ClassBench drew for a list, or returns None if there is no trace beside
/// the list. A packet has source and destination addresses and ports, the protocol, and interface
/// number 1.
///
/// # Errors
/// Fails if the trace cannot be read, or if a line is malformed.
pub fn trace(folder: &Path, list: &str) -> anyhow::Result<Option<Vec<[u32; 6]>>> {
    let files = ["", ".gz"].map(|end| folder.join(format!("{list}_trace{end}")));
    let Some(path) = files.into_iter().find(|path| path.is_file()) else { return Ok(None) };
    let packet = |line: &str| {
        let words: Vec<u32> =
            line.split_whitespace().map(str::parse).collect::<Result<_, _>>().ok()?;
        Some([*words.first()?, *words.get(1)?, *words.get(2)?, *words.get(3)?, *words.get(4)?, 1])
    };
    let text = text(&path).with_context(|| path.display().to_string())?;
    let packets = text.lines().map(|line| packet(line).with_context(|| line.to_owned()));
    packets.collect::<anyhow::Result<_>>().map(Some)
}

/// Reads a list in ClassBench's format: `@source/bits destination/bits low : high low : high
/// protocol/mask …`.
fn read(path: &Path) -> anyhow::Result<Vec<Covering<6>>> {
    let text = text(path)?;
    let lines = text.lines().filter_map(|line| line.strip_prefix('@'));
    let rules =
        lines.zip(0..).map(|(line, order)| rule(line, order).with_context(|| line.to_owned()));
    rules.collect()
}

fn text(path: &Path) -> anyhow::Result<String> {
    let bytes = fs::read(path)?;
    if path.extension().is_none_or(|extension| extension != "gz") {
        return Ok(String::from_utf8(bytes)?);
    }
    let mut text = String::new();
    std::io::Read::read_to_string(&mut flate2::read::GzDecoder::new(&bytes[..]), &mut text)?;
    Ok(text)
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
    let rect = Rect { low: fields.map(|(low, _)| low), high: fields.map(|(_, high)| high) };
    Ok(Covering { rect, whole: true, hides: true, order })
}
