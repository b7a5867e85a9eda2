//! The tests that need several modules of the crate: one program, so that the verifier checks the
//! engines of [`common::shared_engine`] once, and all processors have work to the end.

mod abi;
mod anchors;
mod bounds;
mod common;
mod drops;
mod engine;
mod handoff;
mod instance;
mod key_table;
mod live_log;
mod loaders;
mod table_index;
