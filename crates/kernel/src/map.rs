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

/// Largest number of entries in one system call.
const BATCH: usize = 4096;

/// A type of a key or value: fixed size, no padding, all bit patterns valid.
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
    /// Gives a map its types.
    ///
    /// # Errors
    /// Fails if their sizes are not those of the map.
    pub fn new(handle: MapHandle, name: &'static str) -> Result<Self> {
        let (key, value) = (handle.key_size() as usize, handle.value_size() as usize);
        if key != size_of::<K>() || value != size_of::<V>() {
            let cause = format!(
                "keys of {key} and values of {value} bytes, where {} and {} are expected",
                size_of::<K>(),
                size_of::<V>()
            );
            return Err(Error::Bpf { operation: format!("map {name}"), cause });
        }
        Ok(Map { handle, name, types: PhantomData })
    }

    /// Returns the largest number of entries.
    pub fn capacity(&self) -> u32 {
        self.handle.max_entries()
    }

    /// Returns the value of `key`, or `None`.
    ///
    /// # Errors
    /// Fails if the system call fails.
    pub fn get(&self, key: &K) -> Result<Option<V>> {
        let bytes =
            self.handle.lookup(key.as_bytes(), MapFlags::ANY).context(|| self.operation("read"))?;
        Ok(bytes.map(|bytes| value::<V>(&bytes)))
    }

    /// Sets the value of `key`.
    ///
    /// # Errors
    /// Fails if the map is full, or if the system call fails.
    pub fn set(&self, key: &K, value: &V) -> Result<()> {
        match self.handle.update(key.as_bytes(), value.as_bytes(), MapFlags::ANY) {
            Err(error) if is_full(&error) => Err(self.full()),
            other => other.context(|| self.operation("write")),
        }
    }

    /// Removes `key`. Returns true if the map had it.
    ///
    /// # Errors
    /// Fails if the system call fails.
    pub fn remove(&self, key: &K) -> Result<bool> {
        match self.handle.delete(key.as_bytes()) {
            Err(error) if error.kind() == libbpf_rs::ErrorKind::NotFound => Ok(false),
            other => other.map(|()| true).context(|| self.operation("delete")),
        }
    }

    /// Returns all keys, one system call each. Other writers may change the map meanwhile.
    pub fn keys(&self) -> impl Iterator<Item = K> + '_ {
        self.handle.keys().map(|bytes| value::<K>(&bytes))
    }

    /// Returns all keys of a hash map, in as few system calls as possible.
    ///
    /// # Errors
    /// Fails if the system call fails.
    pub fn keys_at_once(&self) -> Result<Vec<K>> {
        let mut all = Vec::new();
        self.for_each(|key, _| all.push(*key))?;
        Ok(all)
    }

    /// Calls `take` for each entry of a hash map or an LPM trie, in as few system calls as
    /// possible. Entries of a trie may come twice if others delete entries meanwhile.
    ///
    /// # Errors
    /// Fails if the system call fails.
    pub fn for_each(&self, mut take: impl FnMut(&K, &V)) -> Result<()> {
        let mut keys = vec![K::new_zeroed(); BATCH];
        let mut values = vec![V::new_zeroed(); BATCH];
        // position of the batch: a number for a hash map, a key for a trie
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
            // SAFETY: keys and values have room for `count` entries, and each position for a number
            // or a key; all pointers are valid until the call returns
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
            // ENOENT comes with the last entries
            let is_end = result == -(Errno::ENOENT as i32);
            // before Linux 6.14, EINTR means that an entry of the trie was deleted during the read
            let is_disturbed = result == -(Errno::EINTR as i32);
            if !is_end && !is_disturbed {
                check(result).context(|| self.operation("read"))?;
            }
            let count = count as usize;
            keys[..count].iter().zip(&values[..count]).for_each(|(key, value)| take(key, value));
            if is_end {
                return Ok(());
            }
            is_first = is_first && count == 0;
        }
    }

    /// Sets many values, in one system call if the kernel has batches for this map.
    ///
    /// # Errors
    /// Fails if the map is full, or if a system call fails.
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
            // LPM tries and old kernels lack this kind of batch
            Err(_) => keys.iter().zip(values).try_for_each(|(key, value)| self.set(key, value)),
        }
    }

    /// Returns the kernel's id of the map.
    pub(crate) fn id(&self) -> Option<u32> {
        self.handle.info().ok().map(|info| info.info.id)
    }

    pub(crate) fn pin(&mut self, directory: &Path) -> Result<()> {
        self.handle.pin(directory.join(self.name)).context(|| self.operation("pin"))
    }

    fn operation(&self, step: &str) -> String {
        format!("map {}: {step}", self.name)
    }

    /// Returns the error for a full map.
    pub(crate) fn full(&self) -> Error {
        Error::MapFull { map: self.name.to_owned(), limit: self.capacity() }
    }
}

impl<V: Plain> Map<u32, V> {
    /// Returns the value at `index` of an array.
    ///
    /// # Errors
    /// Fails if `index` is out of range, or if the system call fails.
    pub fn at(&self, index: u32) -> Result<V> {
        self.get(&index)?.ok_or_else(|| Error::Bpf {
            operation: self.operation("read"),
            cause: format!("index {index} is beyond its {} places", self.capacity()),
        })
    }

    /// Returns the first `count` values of an array, in as few system calls as possible.
    ///
    /// # Errors
    /// Fails if the first batch cannot be read. If a later batch cannot be read, the values end
    /// there.
    pub fn first(&self, count: u32) -> Result<impl Iterator<Item = V>> {
        let count = count.min(self.capacity());
        let mut values = self.batch(0, count)?.into_iter();
        let mut read = values.len() as u32;
        Ok(std::iter::from_fn(move || {
            if values.len() == 0 && read < count {
                // an error of a later batch ends the values
                values = self.batch(read, count).unwrap_or_default().into_iter();
                read += values.len() as u32;
            }
            values.next()
        }))
    }

    /// Returns the values from `first` on and before `end`, as many as one system call reads.
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
        // SAFETY: keys and values have room for `count` entries, side by side as the kernel writes
        // them; all pointers are valid until the call returns
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
        check(result).context(|| self.operation("read"))?;
        values.truncate(count as usize);
        Ok(values)
    }
}

impl<K: Plain, V: Plain> PerCpuMap<K, V> {
    pub(crate) fn new(handle: MapHandle, name: &'static str) -> Result<Self> {
        Map::new(handle, name).map(PerCpuMap)
    }

    /// Returns the largest number of entries.
    pub fn capacity(&self) -> u32 {
        self.0.capacity()
    }

    /// Returns the values of all CPUs; empty if the map lacks the key.
    ///
    /// # Errors
    /// Fails if the system call fails.
    pub fn get(&self, key: &K) -> Result<Vec<V>> {
        let map = &self.0;
        let values = map
            .handle
            .lookup_percpu(key.as_bytes(), MapFlags::ANY)
            .context(|| map.operation("read"))?;
        Ok(values.into_iter().flatten().map(|bytes| value::<V>(&bytes)).collect())
    }

    /// Sets the same value on all CPUs.
    ///
    /// # Errors
    /// Fails if the number of CPUs is unknown, or if the map cannot be written.
    pub fn set(&self, key: &K, value: &V) -> Result<()> {
        self.set_each(key, &vec![*value; cpus()?])
    }

    /// Sets a value on each CPU; CPUs without one in `values` get zeros.
    ///
    /// # Errors
    /// Fails if the number of CPUs is unknown, or if the map cannot be written.
    pub fn set_each(&self, key: &K, values: &[V]) -> Result<()> {
        let map = &self.0;
        let mut bytes: Vec<_> = values.iter().map(|value| value.as_bytes().to_vec()).collect();
        bytes.resize(cpus()?, vec![0; size_of::<V>()]);
        map.handle
            .update_percpu(key.as_bytes(), &bytes, MapFlags::ANY)
            .context(|| map.operation("write"))
    }

    /// Sets the values of many keys to zero on all CPUs.
    ///
    /// # Errors
    /// Fails if the number of CPUs is unknown, or if the map cannot be written.
    pub fn clear_many(&self, keys: &[K]) -> Result<()> {
        let map = &self.0;
        let options = libbpf_sys::bpf_map_batch_opts {
            sz: size_of::<libbpf_sys::bpf_map_batch_opts>() as _,
            ..Default::default()
        };
        for chunk in keys.chunks(BATCH) {
            let mut count = chunk.len() as u32;
            // the kernel stores the values of an entry side by side, each rounded up to 8 bytes
            let zeros = vec![0u8; chunk.len() * cpus()? * size_of::<V>().next_multiple_of(8)];
            // SAFETY: there are `count` keys and values, and they live until the call returns
            let result = unsafe {
                libbpf_sys::bpf_map_update_batch(
                    map.as_fd().as_raw_fd(),
                    chunk.as_bytes().as_ptr().cast(),
                    zeros.as_ptr().cast(),
                    &raw mut count,
                    &raw const options,
                )
            };
            check(result).context(|| map.operation("clear"))?;
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

/// Flag of arrays that begin at a page, so that a node is one cache line.
pub(crate) const MMAPABLE: u32 = libbpf_sys::BPF_F_MMAPABLE;
/// Flags of inner maps of different sizes, which need `BPF_F_INNER_MAP`, too.
pub(crate) const INNER_MAP: u32 = libbpf_sys::BPF_F_INNER_MAP | MMAPABLE;

/// Makes an array that is not pinned: the inner map of a rule set or a table.
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

/// Returns the id of the map pinned at `path`.
pub(crate) fn pinned_id(path: &Path) -> Option<u32> {
    let handle = MapHandle::from_pinned_path(path).ok()?;
    handle.info().ok().map(|info| info.info.id)
}

/// Opens the array with this id; a map of maps stores such ids.
///
/// # Errors
/// Fails if there is no such map, or if the sizes of its keys and values are others.
pub fn by_id<V: Plain>(name: &'static str, id: u32) -> Result<Map<u32, V>> {
    let handle = MapHandle::from_map_id(id).context(|| format!("map {name}: open by id {id}"))?;
    Map::new(handle, name)
}

/// Reads the values of key 0 of a per-CPU map, side by side, into `values`.
pub(crate) fn read_per_cpu(map: &MapHandle, values: &mut Vec<u8>) -> Result<()> {
    let bytes = cpus()? * (map.value_size() as usize).next_multiple_of(8);
    values.resize(bytes, 0);
    let key = 0u32;
    // SAFETY: the kernel writes a value for each possible CPU, rounded up to 8 bytes, and `values`
    // has this size; key and values live until the call returns
    let result = unsafe {
        libbpf_sys::bpf_map_lookup_elem(
            map.as_fd().as_raw_fd(),
            (&raw const key).cast(),
            values.as_mut_ptr().cast(),
        )
    };
    check(result).context(|| "map with values for each CPU: read".to_owned())
}

/// Returns the number of possible CPUs, which is the number of values of a per-CPU entry.
pub(crate) fn cpus() -> Result<usize> {
    libbpf_rs::num_possible_cpus().context(|| "possible CPUs".to_owned())
}

/// True if a map is full. Hash maps then return E2BIG, LPM tries ENOSPC.
fn is_full(error: &libbpf_rs::Error) -> bool {
    error.kind() == libbpf_rs::ErrorKind::TooBig || last_cause(error).contains("os error 28")
}

fn value<T: Plain>(bytes: &[u8]) -> T {
    T::read_from_prefix(bytes).map_or_else(|_| T::new_zeroed(), |(value, _)| value)
}
