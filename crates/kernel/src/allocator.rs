//! Memory in large pages: a program that goes through lists of many megabytes once, and is gone,
//! spends a fifth of its time on getting a page of 4 kB after the other.
//!
//! Most Linux kernels give large pages to those who ask
//! (`/sys/kernel/mm/transparent_hugepage/enabled`: `madvise`), and the C library asks only where an
//! environment variable says so.

use std::alloc::{GlobalAlloc, Layout, System};
use std::ptr::NonNull;

use nix::sys::mman::{MmapAdvise, madvise};

/// Bytes of a large page, on all machines that have them; where it is another size, less is gained.
const LARGE_PAGE: usize = 2 << 20;

/// The system's allocator, which is asked for large pages where a piece has room for several of
/// them.
pub struct InLargePages;

// SAFETY: all is left to the system's allocator, with the same arguments; advice changes no
// contents
unsafe impl GlobalAlloc for InLargePages {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise
        advised(unsafe { System.alloc(layout) }, layout.size())
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise
        advised(unsafe { System.alloc_zeroed(layout) }, layout.size())
    }

    unsafe fn realloc(&self, piece: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller's promise
        advised(unsafe { System.realloc(piece, layout, size) }, size)
    }

    unsafe fn dealloc(&self, piece: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise
        unsafe { System.dealloc(piece, layout) }
    }
}

/// A piece of so many bytes, for whose whole large pages they are asked for. A kernel without them
/// says no, which is all right.
fn advised(piece: *mut u8, size: usize) -> *mut u8 {
    if size < 2 * LARGE_PAGE {
        return piece;
    }
    let before = piece.align_offset(LARGE_PAGE);
    let whole = size.saturating_sub(before) / LARGE_PAGE * LARGE_PAGE;
    if let Some(first) = NonNull::new(piece)
        && whole > 0
    {
        // SAFETY: these pages are of the piece alone, and are what they were but for their size
        let _ = unsafe { madvise(first.byte_add(before).cast(), whole, MmapAdvise::MADV_HUGEPAGE) };
    }
    piece
}
