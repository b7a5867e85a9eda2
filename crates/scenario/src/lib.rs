//! Scenarios: rules, packets and the fate they must have; run on every evaluator.
//!
//! A scenario file (docs/scenarios.md) is read by [`parse`] into [`case`]s, which [`run`] plays on
//! an [`Engine`]. Conformance vectors and the differential test become the same cases, so there is
//! one comparison ([`expect`]) and every difference can be written down as a file that reruns
//! (`Display` of [`File`]).

pub mod case;
pub mod engine;
pub mod expect;
pub mod host;
pub mod host_change;
pub mod junit;
pub mod kill;
pub mod limiter;
pub mod look;
pub mod model;
mod names;
pub mod observe;
pub mod packet;
pub mod parse;
mod print;
pub mod resolve;
pub mod run;
pub mod source;
pub mod traffic;

pub use case::{Case, File};
pub use engine::Engine;
pub use model::Model;
pub use names::{OTHER_STATES, TCP_STATES};
