//! Nodes of trees (`Node`) in the kernel: for each generation a list, stored in chunks of one size
//! (`bpf/search.h`).

use std::collections::BTreeMap;
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd};

use skipstep_abi::Node;
use skipstep_abi::limits::copy_of;
use skipstep_abi::tree_set::{CHUNK_NODES, CHUNKS};

use crate::error::{Error, Result};
use crate::map;
use crate::object::Maps;
use crate::shared::{self, Mapping};

/// Writes the trees, into as many chunks as they fill. Superfluous chunks are replaced by the first
/// chunk in one batch, which frees all of them. Deleting each chunk in a call of its own would wait
/// for readers each time.
pub(crate) fn write(maps: &Maps, generation: u32, nodes: &[Node]) -> Result<()> {
    // the first node belongs to no tree, so a list of this node alone needs no chunk
    let nodes = if nodes.len() > 1 { nodes } else { &[] };
    ensure_room(nodes.len())?;
    let chunks: Vec<&[Node]> = nodes.chunks(CHUNK_NODES).collect();
    let places = places(generation);
    let unchanged = unchanged(maps, generation)?;
    let mut changed = BTreeMap::new();
    let mut homes = Vec::new();
    for (index, nodes) in chunks.iter().enumerate() {
        let home = match unchanged.get(index) {
            Some(id) => by_id(*id)?,
            None => map::new_array("nodes", 1, map::MMAPABLE)?,
        };
        shared::fill(&home, nodes)?;
        if index >= unchanged.len() {
            changed.insert(places.start + index as u32, descriptor(&home));
        }
        homes.push(home);
    }
    let kept = chunks.len().max(1);
    if unchanged.len() > kept {
        let first = by_id(unchanged[0])?;
        let idle = places.skip(kept).take(unchanged.len() - kept);
        changed.extend(idle.map(|place| (place, descriptor(&first))));
        homes.push(first);
    }
    let (places, homes): (Vec<u32>, Vec<u32>) = changed.into_iter().unzip();
    maps.tree_sets.set_many(&places, &homes)
}

/// Checks that a generation has room for `nodes` nodes.
fn ensure_room(nodes: usize) -> Result<()> {
    let limit = CHUNKS * CHUNK_NODES as u32;
    if nodes > limit as usize {
        return Err(Error::Trees { nodes, limit });
    }
    Ok(())
}

/// Returns the first `count` nodes of a generation, or all if there are fewer.
pub(crate) fn read(maps: &Maps, generation: u32, count: usize) -> Result<Vec<Node>> {
    let mut nodes = Vec::with_capacity(count);
    for id in unchanged(maps, generation)? {
        let wanted = (count - nodes.len()).min(CHUNK_NODES);
        if wanted == 0 {
            break;
        }
        extend(&mut nodes, &by_id(id)?, wanted)?;
    }
    Ok(nodes)
}

/// Returns the indexes of the chunks of a generation, in the map of chunks.
fn places(generation: u32) -> Range<u32> {
    copy_of(generation) * CHUNKS..(copy_of(generation) + 1) * CHUNKS
}

/// Returns the map ids of the chunks that a generation has.
fn unchanged(maps: &Maps, generation: u32) -> Result<Vec<u32>> {
    let mut unchanged = Vec::new();
    for place in places(generation) {
        match maps.tree_sets.get(&place)? {
            Some(id) if unchanged.first() != Some(&id) => unchanged.push(id),
            _ => break,
        }
    }
    Ok(unchanged)
}

/// An array map with one value, which has all nodes of a chunk.
type Chunk = map::Map<u32, [Node; CHUNK_NODES]>;

fn by_id(id: u32) -> Result<Chunk> {
    map::by_id("nodes", id)
}

/// Returns the file descriptor of a chunk, which is the value that a map of maps takes.
fn descriptor(chunk: &Chunk) -> u32 {
    chunk.as_fd().as_raw_fd() as u32
}

/// Appends the first `count` nodes of a chunk to `nodes`.
fn extend(nodes: &mut Vec<Node>, chunk: &Chunk, count: usize) -> Result<()> {
    let there = Mapping::new(chunk, count * size_of::<Node>())?;
    // SAFETY: the mapping has `count` nodes, and no process writes nodes of a generation in force
    nodes.extend_from_slice(unsafe {
        std::slice::from_raw_parts(there.base().cast::<Node>().as_ptr(), count)
    });
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_large_trees_are_refused_with_a_remedy() {
        assert!(ensure_room(4_194_304).is_ok());
        let refused = ensure_room(4_194_305).unwrap_err().to_string();
        assert!(refused.contains("4194305 nodes, there is room for 4194304"), "{refused}");
        assert!(refused.contains("`set evaluator skip-steps`"), "{refused}");
    }
}
