//! An allocator that requests large pages for large allocations. A program that walks lists of many
//! megabytes once and then exits spends a fifth of its time in page faults of 4 kB.
//!
//! Most Linux kernels give large pages only on request (`madvise` in
//! `/sys/kernel/mm/transparent_hugepage/enabled`). The C library requests them only if an
//! environment variable is set.

use std::alloc::{GlobalAlloc, Layout, System};
use std::ptr::NonNull;

use nix::sys::mman::{MmapAdvise, madvise};

/// Bytes of a large page, on all machines that have large pages. Where their size differs, the gain
/// is smaller.
const LARGE_PAGE: usize = 2 << 20;

/// The system's allocator, which requests large pages for an allocation with room for several of
/// them.
pub struct InLargePages;

// SAFETY: the system's allocator does all the work, with the same arguments; madvise changes no
// contents
unsafe impl GlobalAlloc for InLargePages {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller fulfils the contract of GlobalAlloc
        advised(unsafe { System.alloc(layout) }, layout.size())
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller fulfils the contract of GlobalAlloc
        advised(unsafe { System.alloc_zeroed(layout) }, layout.size())
    }

    unsafe fn realloc(&self, piece: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller fulfils the contract of GlobalAlloc
        advised(unsafe { System.realloc(piece, layout, size) }, size)
    }

    unsafe fn dealloc(&self, piece: *mut u8, layout: Layout) {
        // SAFETY: the caller fulfils the contract of GlobalAlloc
        unsafe { System.dealloc(piece, layout) }
    }
}

/// Requests large pages for the aligned part of an allocation of `size` bytes, and returns the
/// allocation. A kernel without large pages refuses, and the allocation keeps its small pages.
fn advised(piece: *mut u8, size: usize) -> *mut u8 {
    if size < 2 * LARGE_PAGE {
        return piece;
    }
    let before = piece.align_offset(LARGE_PAGE);
    let whole = size.saturating_sub(before) / LARGE_PAGE * LARGE_PAGE;
    if let Some(first) = NonNull::new(piece)
        && whole > 0
    {
        // SAFETY: these pages belong to this allocation alone, and the advice keeps their contents
        let _ = unsafe { madvise(first.byte_add(before).cast(), whole, MmapAdvise::MADV_HUGEPAGE) };
    }
    piece
}
