//! Array maps in this process's memory. The process reads and writes single words while the data
//! plane changes others. A write of the whole element would undo the data plane's changes.

use std::num::NonZeroUsize;
use std::os::fd::AsFd;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use nix::sys::mman::{MapFlags, ProtFlags, mmap, munmap};

use crate::error::{Context, Result};
use crate::map::{Map, Plain};

/// The first bytes of an array, mapped into memory.
pub(crate) struct Mapping {
    base: NonNull<std::ffi::c_void>,
    length: NonZeroUsize,
}

impl Mapping {
    /// Maps the first `bytes` bytes of an array, which must have been made with `BPF_F_MMAPABLE`.
    ///
    /// # Errors
    /// Fails if mmap fails.
    pub fn new(map: impl AsFd, bytes: usize) -> Result<Self> {
        let length = NonZeroUsize::new(bytes.next_multiple_of(4096)).unwrap_or(NonZeroUsize::MIN);
        let (access, flags) = (ProtFlags::PROT_READ | ProtFlags::PROT_WRITE, MapFlags::MAP_SHARED);
        // SAFETY: a new mapping at an address that the kernel chooses
        let base = unsafe { mmap(None, length, access, flags, map, 0) };
        Ok(Mapping { base: base.context(|| "map into memory".to_owned())?, length })
    }

    /// Returns the address of the first byte.
    pub fn base(&self) -> NonNull<std::ffi::c_void> {
        self.base
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping belongs to `self`, and no reference into it outlives `self`
        let _ = unsafe { munmap(self.base, self.length.get()) };
    }
}

/// Writes the first elements of an array that no packet reads, made with `BPF_F_MMAPABLE`. Their
/// size is a multiple of 8 bytes, as the kernel stores them.
pub(crate) fn fill<V: Plain>(map: impl AsFd, elements: &[V]) -> Result<()> {
    const { assert!(size_of::<V>().is_multiple_of(8)) };
    let there = Mapping::new(map, size_of_val(elements))?;
    // SAFETY: the mapping has room for the elements; userland writes here only under the instance's
    // lock, and the kernel does not read them before the generation is in force
    unsafe {
        let elements_there = there.base().cast::<V>();
        elements_there.copy_from_nonoverlapping(NonNull::from(elements).cast(), elements.len());
    }
    Ok(())
}

/// An array map in memory, for access to single words.
pub struct Shared {
    mapping: Mapping,
    bytes: usize,
    stride: usize,
}

impl Shared {
    /// Maps the whole array, which must have been made with `BPF_F_MMAPABLE`.
    ///
    /// # Errors
    /// Fails if the kernel cannot map the array.
    pub fn new<V: Plain>(map: &Map<u32, V>) -> Result<Self> {
        // the kernel rounds elements up to 8 bytes
        let stride = size_of::<V>().next_multiple_of(8);
        let bytes = stride * map.capacity() as usize;
        Ok(Shared { mapping: Mapping::new(map, bytes)?, bytes, stride })
    }

    /// Reads the word at `offset` (see `offset_of!`) of element `index`; 0 if it is out of range.
    pub fn load(&self, index: u32, offset: usize) -> u32 {
        self.word(index, offset).map_or(0, |word| word.load(Ordering::Acquire))
    }

    /// Reads element `index` word by word. If it changes meanwhile, the result may mix both values.
    pub fn element<V: Plain>(&self, index: u32) -> V {
        let mut value = V::new_zeroed();
        for (word, offset) in value.as_mut_bytes().chunks_mut(4).zip((0..).step_by(4)) {
            word.copy_from_slice(&self.load(index, offset).to_ne_bytes()[..word.len()]);
        }
        value
    }

    /// Writes element `index` word by word. No other process or program may use it meanwhile.
    pub fn set_element<V: Plain>(&self, index: u32, value: &V) {
        for (word, offset) in value.as_bytes().chunks_exact(4).zip((0..).step_by(4)) {
            self.store(index, offset, word.try_into().map_or(0, u32::from_ne_bytes));
        }
    }

    /// Writes the word at `offset` of element `index` with one store.
    pub fn store(&self, index: u32, offset: usize, value: u32) {
        if let Some(word) = self.word(index, offset) {
            word.store(value, Ordering::Release);
        }
    }

    /// Replaces the word at `offset` of element `index` by `new`, if it is `old`. Returns true if
    /// it was.
    pub fn replace(&self, index: u32, offset: usize, old: u32, new: u32) -> bool {
        let word = self.word(index, offset);
        word.is_some_and(|word| {
            word.compare_exchange(old, new, Ordering::AcqRel, Ordering::Acquire).is_ok()
        })
    }

    /// Writes the eight bytes at `offset` of element `index` with one store.
    pub fn store_long(&self, index: u32, offset: usize, value: u64) {
        let position = self.stride * index as usize + offset;
        if position + size_of::<u64>() <= self.bytes && position.is_multiple_of(8) {
            // SAFETY: inside the mapping, which lives as long as `self`, and aligned; the kernel
            // and other processes access these bytes only as a whole
            let long =
                unsafe { &*self.mapping.base.as_ptr().byte_add(position).cast::<AtomicU64>() };
            long.store(value, Ordering::Release);
        }
    }

    fn word(&self, index: u32, offset: usize) -> Option<&AtomicU32> {
        let position = self.stride * index as usize + offset;
        let inside = position + size_of::<u32>() <= self.bytes && position.is_multiple_of(4);
        // SAFETY: inside the mapping, which lives as long as `self`, and aligned; the kernel and
        // other processes access the word only as a whole
        inside
            .then(|| unsafe { &*self.mapping.base.as_ptr().byte_add(position).cast::<AtomicU32>() })
    }
}
