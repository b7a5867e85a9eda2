//! Methods of the laboratory: which trials a measurement has, and in which order. The crates below
//! do a trial; this crate repeats trials until the figures can be trusted.
//!
//! [`measure`] compares systems in [`rounds`], each system in a [`testbed`] by a [`plan`], and
//! [`ceiling`] rejects figures of the generator. [`progress`] shows the progress of a measurement.
//! [`search`] looks for the limits of one system by the methods of the RFCs about benchmarking.

pub mod ceiling;
pub mod measure;
pub mod plan;
pub mod progress;
pub mod rounds;
pub mod search;
pub mod testbed;
