//! The compiler from a rule set to the flat image that the data plane evaluates.
//!
//! Compilation replaces names by numbers. [`Names`] numbers interfaces, groups and tags; it grows,
//! and lives as long as the instance. Tables and rules have slots, which the loader assigns.
//!
//! A load takes three steps: [`fn@tables`] lists the tables and their contents, the loader assigns
//! a slot to each, and [`compile`] makes the [`Image`]. This crate does not need the kernel.

pub mod address;
pub mod cover;
pub mod dynamic;
pub mod error;
mod fast_path;
mod fingerprint;
pub mod image;
pub mod interfaces;
pub mod limiter;
mod metadata;
pub mod names;
mod packets;
mod planner;
pub mod pool;
mod rects;
pub mod route_label;
pub mod rule;
mod slots;
mod superblock;
pub mod table_expansion;
mod table_index;
pub mod tables;
pub mod tree;
mod unchanged;
mod walk;

pub use error::Error;
pub use image::{Image, compile};
pub use interfaces::{SkipLists, groups, interfaces};
pub use names::{Names, Registry};
pub use planner::Planner;
pub use slots::Slots;
pub use table_index::table_index;
pub use tables::{TableUse, tables};
pub use unchanged::{CompiledSet, Unchanged};
pub use walk::LONG_WALK;
