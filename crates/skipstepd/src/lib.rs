//! skipstepd: what the filter cannot do by itself. It attaches interfaces that appear later,
//! follows their addresses, puts fragments together, hands packets to programs, holds those that
//! are delayed, reports flows, and writes the log. If it stops, filtering goes on.

pub mod clock;
pub mod daemon;
pub mod delay;
pub mod divert;
pub mod envelope;
pub mod file;
pub mod flows;
pub mod fragments;
pub mod ipfix;
pub mod log;
pub mod notify;
pub mod options;
pub mod pflog;
