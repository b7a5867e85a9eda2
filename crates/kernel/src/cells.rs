//! Cells of trees in the kernel: a list for each generation, in chunks of one size (`bpf/search.h`).

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd};
use std::ptr::NonNull;

use libbpf_rs::libbpf_sys;
use libbpf_rs::{MapCore, MapHandle, MapType};
use nix::sys::mman::{MapFlags, ProtFlags, mmap, munmap};
use skipstep_abi::Cell;
use skipstep_abi::forest::{CHUNK_CELLS, CHUNKS};

use crate::error::{Context, Error, Result};
use crate::map;
use crate::object::Maps;

/// Writes the trees, into as many chunks as they fill. In place of those that are too many the first one is put again, for
/// that gives all of them back in one call; a call for each would wait for packets each time.
pub(crate) fn write(maps: &Maps, generation: u32, cells: &[Cell]) -> Result<()> {
    // the first cell belongs to none: alone it is not worth a chunk
    let cells = if cells.len() > 1 { cells } else { &[] };
    let chunks: Vec<&[Cell]> = cells.chunks(CHUNK_CELLS).collect();
    if chunks.len() > CHUNKS as usize {
        let limit = CHUNKS * CHUNK_CELLS as u32;
        return Err(Error::MapFull { map: "forests".to_owned(), limit });
    }
    let places = places(generation);
    let standing = standing(maps, generation)?;
    let mut changed = BTreeMap::new();
    let mut homes = Vec::new();
    for (index, cells) in chunks.iter().enumerate() {
        let home = match standing.get(index) {
            Some(id) => Chunk::by_id(*id)?,
            None => Chunk::new()?,
        };
        home.write(cells)?;
        if index >= standing.len() {
            changed.insert(places.start + index as u32, home.descriptor());
        }
        homes.push(home);
    }
    let kept = chunks.len().max(1);
    if standing.len() > kept {
        let first = Chunk::by_id(standing[0])?;
        let idle = places.skip(kept).take(standing.len() - kept);
        changed.extend(idle.map(|place| (place, first.descriptor())));
        homes.push(first);
    }
    let (places, homes): (Vec<u32>, Vec<u32>) = changed.into_iter().unzip();
    maps.forests.set_many(&places, &homes)
}

/// The first cells of a generation; fewer, if it has not so many.
pub(crate) fn read(maps: &Maps, generation: u32, count: usize) -> Result<Vec<Cell>> {
    let mut cells = Vec::with_capacity(count);
    for id in standing(maps, generation)? {
        let wanted = (count - cells.len()).min(CHUNK_CELLS);
        if wanted == 0 {
            break;
        }
        Chunk::by_id(id)?.read(wanted, &mut cells)?;
    }
    Ok(cells)
}

/// Where the chunks of a generation have their places.
fn places(generation: u32) -> Range<u32> {
    (generation & 1) * CHUNKS..((generation & 1) + 1) * CHUNKS
}

/// Ids of the chunks that a generation has.
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

/// An array with one value, which is all cells of a chunk.
struct Chunk(MapHandle);

impl Chunk {
    fn new() -> Result<Chunk> {
        let options = libbpf_sys::bpf_map_create_opts {
            sz: size_of::<libbpf_sys::bpf_map_create_opts>() as _,
            map_flags: map::MMAPABLE,
            ..Default::default()
        };
        let bytes = (CHUNK_CELLS * size_of::<Cell>()) as u32;
        let key = size_of::<u32>() as u32;
        let map = MapHandle::create(MapType::Array, Some("cells"), key, bytes, 1, &options);
        map.map(Chunk).context(|| format!("map cells: create with {bytes} bytes"))
    }

    fn by_id(id: u32) -> Result<Chunk> {
        let map = MapHandle::from_map_id(id).context(|| format!("map cells: open by id {id}"))?;
        let (bytes, wanted) = (map.value_size() as usize, CHUNK_CELLS * size_of::<Cell>());
        if bytes != wanted {
            let cause = format!("values of {bytes} bytes, where {wanted} are expected");
            return Err(Error::Bpf { what: "map cells".to_owned(), cause });
        }
        Ok(Chunk(map))
    }

    /// By what a map of maps is told of it.
    fn descriptor(&self) -> u32 {
        self.0.as_fd().as_raw_fd() as u32
    }

    /// Writes its first cells. No packet looks at it.
    fn write(&self, cells: &[Cell]) -> Result<()> {
        let there = Mapped::new(&self.0, cells.len())?;
        // SAFETY: the mapping has room for so many cells; userland writes here under the instance's lock alone, and the
        // kernel reads none of it before the generation is in force
        unsafe {
            there
                .base
                .cast::<Cell>()
                .copy_from_nonoverlapping(NonNull::from(cells).cast(), cells.len())
        };
        Ok(())
    }

    /// Reads its first cells.
    fn read(&self, count: usize, into: &mut Vec<Cell>) -> Result<()> {
        let there = Mapped::new(&self.0, count)?;
        // SAFETY: the mapping has so many cells, and nobody writes to those of a generation in force
        into.extend_from_slice(unsafe {
            std::slice::from_raw_parts(there.base.cast::<Cell>().as_ptr(), count)
        });
        Ok(())
    }
}

/// The beginning of a chunk in our memory.
struct Mapped {
    base: NonNull<std::ffi::c_void>,
    bytes: usize,
}

impl Mapped {
    fn new(map: &MapHandle, cells: usize) -> Result<Mapped> {
        let bytes = (cells * size_of::<Cell>()).next_multiple_of(4096).max(4096);
        let length = NonZeroUsize::new(bytes).unwrap_or(NonZeroUsize::MIN);
        let (access, flags) = (ProtFlags::PROT_READ | ProtFlags::PROT_WRITE, MapFlags::MAP_SHARED);
        // SAFETY: a new mapping of our own at an address of the kernel's choice
        let base = unsafe { mmap(None, length, access, flags, map, 0) };
        let base = base.context(|| "map cells: map into memory".to_owned())?;
        Ok(Mapped { base, bytes })
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and no reference into it outlives `self`
        let _ = unsafe { munmap(self.base, self.bytes) };
    }
}
