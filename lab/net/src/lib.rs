//! Networks of the laboratory: hosts in network namespaces, the cables between them, and the system
//! under test in the middle. The crates above send load through a network; this crate sends none.
//!
//! [`topology`] builds a network of [`host`]s, and [`system`] has a file for each system with its
//! configuration. [`rules`] and [`traffic`] say what a system filters and forwards. [`placement`]
//! and [`napi`] distribute the work over CPUs, [`cycles`] counts, and [`environment`] describes the
//! machine. [`bad_network`] is a cable that impairs frames.

pub mod bad_network;
pub mod cycles;
pub mod environment;
pub mod family;
pub mod host;
pub mod interrupt;
pub mod link;
pub mod napi;
mod pins;
pub mod placement;
mod process;
pub mod program;
pub mod rules;
pub mod system;
pub mod topology;
pub mod traffic;
pub mod transport;
