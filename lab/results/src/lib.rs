//! Results of the laboratory: files that hold a measurement, with all that is needed to judge and
//! to repeat it. The crates that measure fill a [`Run`]; this crate itself measures nothing.
//!
//! [`stats`] and [`summary`] evaluate the samples of a run, and [`compare`] compares two runs.
//! [`ratio`] compares two settings in rounds of other programs, and [`report`] writes a page of
//! tables and charts.

pub mod compare;
mod environment;
#[cfg(any(test, feature = "example"))]
pub mod example;
mod file;
mod latency;
mod layout;
pub mod ratio;
pub mod report;
mod run;
mod schema;
pub mod stats;
pub mod summary;

pub use environment::{Cpu, Environment, Watch};
pub use file::{ReadError, now};
pub use latency::{Bucket, Latency};
pub use run::{
    Agent, Better, Counts, Dimension, Finding, Load, Mode, Paper, Point, Quantity, Repeat, Role,
    Run, SCHEMA_VERSION, Sample, Series, System, Table, Topology, Verdict, sha256,
};
pub use schema::schema;
