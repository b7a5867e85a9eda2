//! The random numbers of entries that were made from packet vectors, which record them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use skipstep_model::Draw;

use crate::conformance::{convert, printed, vector};

/// Random numbers by id of the entry, for each of its packets.
pub type Draws = BTreeMap<String, Vec<Vec<Draw>>>;

/// Features whose packets depend on random numbers.
const RANDOM: [&str; 3] = ["modulate", "synproxy", "reassemble tcp"];

/// Reads the random numbers of the entries that need them from the vector files.
///
/// # Errors
/// Fails if a vector file cannot be read.
pub fn draws(lines: &[String], vectors: &Path) -> anyhow::Result<Draws> {
    let needed = lines.iter().filter(|line| RANDOM.iter().any(|feature| line.contains(feature)));
    let ids: BTreeSet<&str> = needed.filter_map(|line| id(line)).collect();
    let files: BTreeSet<&str> = ids.iter().filter_map(|id| Some(id.rsplit_once('-')?.0)).collect();
    let mut draws = Draws::new();
    for file in files {
        let path = vectors.join(format!("{file}.jsonl.gz"));
        // entries written for this file have no vector, and vectors that are only printed have no
        // packets
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

/// Returns the id of a vector, the first field in its line.
fn id(line: &str) -> Option<&str> {
    line.strip_prefix("{\"id\":\"")?.split('"').next()
}
