//! The random numbers of entries that were made from packet vectors, which tell them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use skipstep_scenario::engine::Draw;

use crate::conformance::{convert, printed, vector};

/// By id of the entry, for each of its packets.
pub type Draws = BTreeMap<String, Vec<Vec<Draw>>>;

/// The features whose packets depend on them.
const RANDOM: [&str; 3] = ["modulate", "synproxy", "reassemble tcp"];

/// Looks up the vectors of the entries that need them.
pub fn draws(lines: &[String], vectors: &Path) -> anyhow::Result<Draws> {
    let needed = lines.iter().filter(|line| RANDOM.iter().any(|feature| line.contains(feature)));
    let ids: BTreeSet<&str> = needed.filter_map(|line| id(line)).collect();
    let files: BTreeSet<&str> = ids.iter().filter_map(|id| Some(id.rsplit_once('-')?.0)).collect();
    let mut draws = Draws::new();
    for file in files {
        let path = vectors.join(format!("{file}.jsonl.gz"));
        // what was written for this file has no vector, and what is only printed no packets
        if [super::FILE, printed::FILE].contains(&file) || !path.exists() {
            continue;
        }
        for line in
            vector::lines(&path)?.iter().filter(|line| id(line).is_some_and(|id| ids.contains(id)))
        {
            let vector: vector::Vector = serde_json::from_str(line)?;
            draws.insert(vector.id.clone(), convert::all_draws(&vector));
        }
    }
    Ok(draws)
}

/// The id of a vector, which stands first in its line.
fn id(line: &str) -> Option<&str> {
    line.strip_prefix("{\"id\":\"")?.split('"').next()
}
