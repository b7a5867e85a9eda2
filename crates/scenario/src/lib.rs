//! Scenarios: rules, packets and their expected fates, for every evaluator.
//!
//! [`parse`] reads a scenario file (docs/howto/scenarios.md) to [`case`]s, and [`run`] plays them
//! on an [`Engine`]. Conformance vectors and the differential test are converted to the same cases.
//! So all tests share one comparison ([`expect`]), and every difference can be saved as a file that
//! reproduces it (`Display` of [`case::File`]).

pub mod case;
mod differences;
mod engine;
pub mod expect;
pub mod host;
pub mod host_change;
pub mod junit;
pub mod kill;
pub mod limiter;
mod line;
pub mod look;
mod model;
mod names;
pub mod observe;
pub mod packet;
pub mod parse;
mod print;
pub mod resolve;
pub mod run;
pub mod source;
pub mod traffic;
mod write;

pub use engine::Engine;
pub use model::Model;
pub use names::{OTHER_STATES, TCP_STATES};
