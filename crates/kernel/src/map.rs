//! Typed access to BPF maps: keys and values are the structs of `skipstep_abi`.

use std::marker::PhantomData;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::path::Path;

use libbpf_rs::libbpf_sys;
use libbpf_rs::{MapCore, MapFlags, MapHandle, MapType};
use nix::errno::Errno;
use zerocopy::{FromBytes, Immutable, IntoBytes};

use crate::error::{Context, Error, Result, last_cause};
use crate::program::check;

/// Entries in one system call.
const BATCH: usize = 4096;

/// What a key or value must be.
pub trait Plain: FromBytes + IntoBytes + Immutable + Copy {}
impl<T: FromBytes + IntoBytes + Immutable + Copy> Plain for T {}

/// A map from `K` to `V`.
pub struct Map<K, V> {
    handle: MapHandle,
    name: &'static str,
    types: PhantomData<(K, V)>,
}

/// A map with a value for each CPU.
pub struct PerCpuMap<K, V>(Map<K, V>);

impl<K: Plain, V: Plain> Map<K, V> {
    /// Gives types to a map; the sizes must agree.
    pub(crate) fn new(handle: MapHandle, name: &'static str) -> Result<Self> {
        let (key, value) = (handle.key_size() as usize, handle.value_size() as usize);
        if key != size_of::<K>() || value != size_of::<V>() {
            let cause = format!(
                "keys of {key} and values of {value} bytes, where {} and {} are expected",
                size_of::<K>(),
                size_of::<V>()
            );
            return Err(Error::Bpf { what: format!("map {name}"), cause });
        }
        Ok(Map { handle, name, types: PhantomData })
    }

    /// How many entries there may be.
    pub fn capacity(&self) -> u32 {
        self.handle.max_entries()
    }

    /// The value of `key`.
    pub fn get(&self, key: &K) -> Result<Option<V>> {
        let bytes =
            self.handle.lookup(key.as_bytes(), MapFlags::ANY).context(|| self.what("read"))?;
        Ok(bytes.map(|bytes| value::<V>(&bytes)))
    }

    /// Sets the value of `key`.
    pub fn set(&self, key: &K, value: &V) -> Result<()> {
        match self.handle.update(key.as_bytes(), value.as_bytes(), MapFlags::ANY) {
            Err(error) if is_full(&error) => Err(self.full()),
            other => other.context(|| self.what("write")),
        }
    }

    /// Removes `key`; whether it was there.
    pub fn remove(&self, key: &K) -> Result<bool> {
        match self.handle.delete(key.as_bytes()) {
            Err(error) if error.kind() == libbpf_rs::ErrorKind::NotFound => Ok(false),
            other => other.map(|()| true).context(|| self.what("delete")),
        }
    }

    /// All keys, as they are found while others may write.
    pub fn keys(&self) -> impl Iterator<Item = K> + '_ {
        self.handle.keys().map(|bytes| value::<K>(&bytes))
    }

    /// All keys of a hash, in as few system calls as may be.
    pub fn keys_at_once(&self) -> Result<Vec<K>> {
        let mut all = Vec::new();
        self.for_each(|key, _| all.push(*key))?;
        Ok(all)
    }

    /// Takes what is in a hash or an LPM trie, in as few system calls as may be. Of a trie from
    /// which others delete, entries may come twice.
    pub fn for_each(&self, mut take: impl FnMut(&K, &V)) -> Result<()> {
        let mut keys = vec![K::new_zeroed(); BATCH];
        let mut values = vec![V::new_zeroed(); BATCH];
        // where it was: to a hash a number, to a trie a key
        let mut place = vec![0u8; size_of::<K>().max(size_of::<u32>())];
        let mut is_first = true;
        let options = libbpf_sys::bpf_map_batch_opts {
            sz: size_of::<libbpf_sys::bpf_map_batch_opts>() as _,
            ..Default::default()
        };
        loop {
            let mut count = BATCH as u32;
            let mut after = place.clone();
            let before = if is_first { std::ptr::null_mut() } else { after.as_mut_ptr() };
            // SAFETY: keys and values have room for as many as `count` says, both places for a
            // number and for a key; all that is pointed to lives until the call returns
            let result = unsafe {
                libbpf_sys::bpf_map_lookup_batch(
                    self.as_fd().as_raw_fd(),
                    before.cast(),
                    place.as_mut_ptr().cast(),
                    keys.as_mut_ptr().cast(),
                    values.as_mut_ptr().cast(),
                    &raw mut count,
                    &raw const options,
                )
            };
            // the last of them come with this
            let is_end = result == -(Errno::ENOENT as i32);
            // kernels before 6.14 say so where an entry of a trie goes while they are about to read
            // it
            let is_disturbed = result == -(Errno::EINTR as i32);
            if !is_end && !is_disturbed {
                check(result).context(|| self.what("read"))?;
            }
            let count = count as usize;
            keys[..count].iter().zip(&values[..count]).for_each(|(key, value)| take(key, value));
            if is_end {
                return Ok(());
            }
            is_first = is_first && count == 0;
        }
    }

    /// Sets many values; one system call where the kernel can.
    pub fn set_many(&self, keys: &[K], values: &[V]) -> Result<()> {
        if keys.is_empty() {
            return Ok(());
        }
        let written = self.handle.update_batch(
            keys.as_bytes(),
            values.as_bytes(),
            keys.len() as u32,
            MapFlags::ANY,
            MapFlags::ANY,
        );
        match written {
            Ok(()) => Ok(()),
            Err(error) if is_full(&error) => Err(self.full()),
            // LPM tries and old kernels have batches of their own kind or none
            Err(_) => keys.iter().zip(values).try_for_each(|(key, value)| self.set(key, value)),
        }
    }

    /// The kernel's number of the map.
    pub(crate) fn id(&self) -> Option<u32> {
        self.handle.info().ok().map(|info| info.info.id)
    }

    pub(crate) fn pin(&mut self, directory: &Path) -> Result<()> {
        self.handle.pin(directory.join(self.name)).context(|| self.what("pin"))
    }

    fn what(&self, step: &str) -> String {
        format!("map {}: {step}", self.name)
    }

    /// What to say of more values than there is room for.
    pub(crate) fn full(&self) -> Error {
        Error::MapFull { map: self.name.to_owned(), limit: self.capacity() }
    }
}

impl<V: Plain> Map<u32, V> {
    /// The value at `index` of an array, where every index has one.
    pub fn at(&self, index: u32) -> Result<V> {
        self.get(&index)?.ok_or_else(|| Error::Bpf {
            what: self.what("read"),
            cause: format!("index {index} is beyond its {} places", self.capacity()),
        })
    }

    /// The first `count` values of an array, in as few system calls as may be.
    pub fn first(&self, count: u32) -> Result<impl Iterator<Item = V>> {
        let count = count.min(self.capacity());
        let mut values = self.batch(0, count)?.into_iter();
        let mut read = values.len() as u32;
        Ok(std::iter::from_fn(move || {
            if values.len() == 0 && read < count {
                // what cannot be read any more is not there any more
                values = self.batch(read, count).unwrap_or_default().into_iter();
                read += values.len() as u32;
            }
            values.next()
        }))
    }

    /// The values from `first` on and before `end`, as many as one system call reads.
    fn batch(&self, first: u32, end: u32) -> Result<Vec<V>> {
        let mut count = (end - first).min(BATCH as u32);
        let mut values = vec![V::new_zeroed(); count as usize];
        if count == 0 {
            return Ok(values);
        }
        let mut keys = vec![0u32; count as usize];
        let (mut before, mut reached) = (first.wrapping_sub(1), 0u32);
        let after = if first == 0 { std::ptr::null_mut() } else { &raw mut before };
        let options = libbpf_sys::bpf_map_batch_opts {
            sz: size_of::<libbpf_sys::bpf_map_batch_opts>() as _,
            ..Default::default()
        };
        // SAFETY: keys and values have room for as many as `count` says, one behind the other as
        // the kernel has them; all that is pointed to lives until the call returns
        let result = unsafe {
            libbpf_sys::bpf_map_lookup_batch(
                self.as_fd().as_raw_fd(),
                after.cast(),
                (&raw mut reached).cast(),
                keys.as_mut_ptr().cast(),
                values.as_mut_ptr().cast(),
                &raw mut count,
                &raw const options,
            )
        };
        check(result).context(|| self.what("read"))?;
        values.truncate(count as usize);
        Ok(values)
    }
}

impl<K: Plain, V: Plain> PerCpuMap<K, V> {
    pub(crate) fn new(handle: MapHandle, name: &'static str) -> Result<Self> {
        Map::new(handle, name).map(PerCpuMap)
    }

    /// How many entries there may be.
    pub fn capacity(&self) -> u32 {
        self.0.capacity()
    }

    /// The values of all CPUs; none if the key is not there.
    pub fn get(&self, key: &K) -> Result<Vec<V>> {
        let map = &self.0;
        let values =
            map.handle.lookup_percpu(key.as_bytes(), MapFlags::ANY).context(|| map.what("read"))?;
        Ok(values.into_iter().flatten().map(|bytes| value::<V>(&bytes)).collect())
    }

    /// Gives all CPUs the same value.
    pub fn set(&self, key: &K, value: &V) -> Result<()> {
        self.set_each(key, &vec![*value; cpus()?])
    }

    /// Gives the CPUs values of their own; those that are missing get zeros.
    pub fn set_each(&self, key: &K, values: &[V]) -> Result<()> {
        let map = &self.0;
        let mut bytes: Vec<_> = values.iter().map(|value| value.as_bytes().to_vec()).collect();
        bytes.resize(cpus()?, vec![0; size_of::<V>()]);
        map.handle
            .update_percpu(key.as_bytes(), &bytes, MapFlags::ANY)
            .context(|| map.what("write"))
    }

    /// Sets many values to zero on all CPUs.
    pub fn clear_many(&self, keys: &[K]) -> Result<()> {
        let map = &self.0;
        let options = libbpf_sys::bpf_map_batch_opts {
            sz: size_of::<libbpf_sys::bpf_map_batch_opts>() as _,
            ..Default::default()
        };
        for chunk in keys.chunks(BATCH) {
            let mut count = chunk.len() as u32;
            // the kernel keeps the values of an entry side by side, each rounded up to 8 bytes
            let zeros = vec![0u8; chunk.len() * cpus()? * size_of::<V>().next_multiple_of(8)];
            // SAFETY: keys and values are as many as `count` says and live until the call returns
            let result = unsafe {
                libbpf_sys::bpf_map_update_batch(
                    map.as_fd().as_raw_fd(),
                    chunk.as_bytes().as_ptr().cast(),
                    zeros.as_ptr().cast(),
                    &raw mut count,
                    &raw const options,
                )
            };
            check(result).context(|| map.what("clear"))?;
        }
        Ok(())
    }

    pub(crate) fn pin(&mut self, directory: &Path) -> Result<()> {
        self.0.pin(directory)
    }
}

impl<K, V> AsFd for Map<K, V> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.handle.as_fd()
    }
}

/// Arrays that begin with a page, so that a cell is one cache line.
pub(crate) const MMAPABLE: u32 = libbpf_sys::BPF_F_MMAPABLE;
/// Inner maps of different sizes need `BPF_F_INNER_MAP` besides.
pub(crate) const INNER_MAP: u32 = libbpf_sys::BPF_F_INNER_MAP | MMAPABLE;

/// A new array that is not pinned: the inner map of a rule set or a table.
pub(crate) fn new_array<V: Plain>(
    name: &'static str,
    entries: u32,
    flags: u32,
) -> Result<Map<u32, V>> {
    let options = libbpf_sys::bpf_map_create_opts {
        sz: size_of::<libbpf_sys::bpf_map_create_opts>() as _,
        map_flags: flags,
        ..Default::default()
    };
    let handle = MapHandle::create(
        MapType::Array,
        Some(name),
        size_of::<u32>() as u32,
        size_of::<V>() as u32,
        entries.max(1),
        &options,
    )
    .context(|| format!("map {name}: create with {entries} entries"))?;
    Map::new(handle, name)
}

/// Id of the map pinned at `path`.
pub(crate) fn pinned_id(path: &Path) -> Option<u32> {
    let handle = MapHandle::from_pinned_path(path).ok()?;
    handle.info().ok().map(|info| info.info.id)
}

/// The array with this id: how a map of maps names those in it.
pub(crate) fn by_id<V: Plain>(name: &'static str, id: u32) -> Result<Map<u32, V>> {
    let handle = MapHandle::from_map_id(id).context(|| format!("map {name}: open by id {id}"))?;
    Map::new(handle, name)
}

/// The first values of a map with one for each CPU, side by side in `values`.
pub(crate) fn read_per_cpu(map: &MapHandle, values: &mut Vec<u8>) -> Result<()> {
    let bytes = cpus()? * (map.value_size() as usize).next_multiple_of(8);
    values.resize(bytes, 0);
    let key = 0u32;
    // SAFETY: the kernel writes a value for each possible CPU, rounded up to 8 bytes, for which
    // there is room; key and values live until the call returns
    let result = unsafe {
        libbpf_sys::bpf_map_lookup_elem(
            map.as_fd().as_raw_fd(),
            (&raw const key).cast(),
            values.as_mut_ptr().cast(),
        )
    };
    check(result).context(|| "map with values for each CPU: read".to_owned())
}

/// Sets all values of a map with those of each CPU to zeros.
pub(crate) fn clear_per_cpu(map: &MapHandle) -> Result<()> {
    let zeros = vec![vec![0; map.value_size() as usize]; cpus()?];
    (0..map.max_entries()).try_for_each(|key| {
        map.update_percpu(&key.to_ne_bytes(), &zeros, MapFlags::ANY)
            .context(|| "map with values for each CPU: clear".to_owned())
    })
}

/// Possible CPUs: how many values a per-CPU entry has.
pub(crate) fn cpus() -> Result<usize> {
    libbpf_rs::num_possible_cpus().context(|| "possible CPUs".to_owned())
}

/// Hashes say E2BIG when they are full, LPM tries ENOSPC.
fn is_full(error: &libbpf_rs::Error) -> bool {
    error.kind() == libbpf_rs::ErrorKind::TooBig || last_cause(error).contains("os error 28")
}

fn value<T: Plain>(bytes: &[u8]) -> T {
    T::read_from_prefix(bytes).map_or_else(|_| T::new_zeroed(), |(value, _)| value)
}
