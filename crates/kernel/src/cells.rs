//! Nodes of trees (`Cell`) in the kernel: for each generation a list, stored in chunks of one size
//! (`bpf/search.h`).

use std::collections::BTreeMap;
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd};

use skipstep_abi::Cell;
use skipstep_abi::forest::{CHUNK_CELLS, CHUNKS};

use crate::error::{Error, Result};
use crate::map;
use crate::object::Maps;
use crate::shared::{self, Mapping};

/// Writes the trees, into as many chunks as they fill. Superfluous chunks are replaced by the first
/// chunk in one batch, which frees all of them. Deleting each chunk in a call of its own would wait
/// for readers each time.
pub(crate) fn write(maps: &Maps, generation: u32, cells: &[Cell]) -> Result<()> {
    // the first cell belongs to no tree, so a list of this cell alone needs no chunk
    let cells = if cells.len() > 1 { cells } else { &[] };
    ensure_room(cells.len())?;
    let chunks: Vec<&[Cell]> = cells.chunks(CHUNK_CELLS).collect();
    let places = places(generation);
    let standing = standing(maps, generation)?;
    let mut changed = BTreeMap::new();
    let mut homes = Vec::new();
    for (index, cells) in chunks.iter().enumerate() {
        let home = match standing.get(index) {
            Some(id) => by_id(*id)?,
            None => map::new_array("cells", 1, map::MMAPABLE)?,
        };
        shared::fill(&home, cells)?;
        if index >= standing.len() {
            changed.insert(places.start + index as u32, descriptor(&home));
        }
        homes.push(home);
    }
    let kept = chunks.len().max(1);
    if standing.len() > kept {
        let first = by_id(standing[0])?;
        let idle = places.skip(kept).take(standing.len() - kept);
        changed.extend(idle.map(|place| (place, descriptor(&first))));
        homes.push(first);
    }
    let (places, homes): (Vec<u32>, Vec<u32>) = changed.into_iter().unzip();
    maps.forests.set_many(&places, &homes)
}

/// Checks that a generation has room for `cells` cells.
fn ensure_room(cells: usize) -> Result<()> {
    let limit = CHUNKS * CHUNK_CELLS as u32;
    if cells > limit as usize {
        return Err(Error::Trees { cells, limit });
    }
    Ok(())
}

/// Returns the first `count` cells of a generation, or all if there are fewer.
pub(crate) fn read(maps: &Maps, generation: u32, count: usize) -> Result<Vec<Cell>> {
    let mut cells = Vec::with_capacity(count);
    for id in standing(maps, generation)? {
        let wanted = (count - cells.len()).min(CHUNK_CELLS);
        if wanted == 0 {
            break;
        }
        extend(&mut cells, &by_id(id)?, wanted)?;
    }
    Ok(cells)
}

/// Returns the indexes of the chunks of a generation, in the map of chunks.
fn places(generation: u32) -> Range<u32> {
    (generation & 1) * CHUNKS..((generation & 1) + 1) * CHUNKS
}

/// Returns the map ids of the chunks that a generation has.
fn standing(maps: &Maps, generation: u32) -> Result<Vec<u32>> {
    let mut standing = Vec::new();
    for place in places(generation) {
        match maps.forests.get(&place)? {
            Some(id) if standing.first() != Some(&id) => standing.push(id),
            _ => break,
        }
    }
    Ok(standing)
}

/// An array map with one value, which has all cells of a chunk.
type Chunk = map::Map<u32, [Cell; CHUNK_CELLS]>;

fn by_id(id: u32) -> Result<Chunk> {
    map::by_id("cells", id)
}

/// Returns the file descriptor of a chunk, which is the value that a map of maps takes.
fn descriptor(chunk: &Chunk) -> u32 {
    chunk.as_fd().as_raw_fd() as u32
}

/// Appends the first `count` cells of a chunk to `cells`.
fn extend(cells: &mut Vec<Cell>, chunk: &Chunk, count: usize) -> Result<()> {
    let there = Mapping::new(chunk, count * size_of::<Cell>())?;
    // SAFETY: the mapping has `count` cells, and no process writes cells of a generation in force
    cells.extend_from_slice(unsafe {
        std::slice::from_raw_parts(there.base().cast::<Cell>().as_ptr(), count)
    });
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trees_that_are_too_large_are_refused_with_what_to_write() {
        assert!(ensure_room(4_194_304).is_ok());
        let refused = ensure_room(4_194_305).unwrap_err().to_string();
        assert!(refused.contains("4194305 cells, there is room for 4194304"), "{refused}");
        assert!(refused.contains("`set evaluator skip-steps`"), "{refused}");
    }
}
