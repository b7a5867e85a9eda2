//! From a rule set to the flat image that the kernel walks.
//!
//! Names become numbers on the way: interfaces, groups and tags through [`Names`], which grows and
//! is kept as long as the instance lives; tables and rules through slots that the loader hands out.
//! Loading a rule set takes three steps: [`fn@tables`] says which tables it needs and what is in
//! them, the loader gives each a slot, and [`compile`] makes the [`Image`]. Nothing here needs the
//! kernel.

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
