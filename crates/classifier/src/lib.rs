//! The compiler from a rule set to the flat image that the data plane evaluates.
//!
//! Compilation replaces names by numbers. [`Names`] numbers interfaces, groups and tags; it grows,
//! and lives as long as the instance. Tables and rules have slots, which the loader assigns.
//!
//! A load takes three steps: [`fn@tables`] lists the tables and their contents, the loader assigns
//! a slot to each, and [`compile`] makes the [`Image`]. This crate does not need the kernel.

pub mod address;
mod asked;
mod boxes;
pub mod cover;
pub mod dynamic;
pub mod error;
mod fingerprint;
pub mod image;
pub mod interfaces;
pub mod limiter;
pub mod names;
mod packets;
mod plain;
mod planner;
pub mod pool;
pub mod route_label;
pub mod rule;
pub mod sample;
mod segment;
mod slots;
pub mod spread;
mod standing;
mod table_index;
pub mod tables;
pub mod tree;
mod walk;

pub use error::Error;
pub use image::{Image, compile};
pub use interfaces::{groups, interfaces};
pub use names::{Names, Registry};
pub use planner::Planner;
pub use slots::Slots;
pub use standing::{Planted, Standing};
pub use table_index::table_index;
pub use tables::{TableUse, tables};
pub use walk::LONG_WALK;
