//! skipstepd: the work that the filter cannot do by itself. It attaches interfaces that appear
//! later, follows their addresses, puts fragments together, hands packets to programs, holds those
//! that are delayed, reports flows, and writes the log. If it stops, filtering goes on.
//!
//! The process that the user starts ([`daemon`]) has root's rights and reads no byte of a packet.
//! It is the guardian ([`mod@guardian`]) of workers ([`mod@worker`]), one for each [`task`], which
//! read those bytes and have no rights.

pub mod clock;
pub mod complaint;
pub mod daemon;
pub mod delay;
pub mod divert;
pub mod envelope;
pub mod file;
pub mod flows;
pub mod fragments;
pub mod guardian;
pub mod ipfix;
pub mod log;
pub mod notify;
pub mod options;
pub mod pflog;
pub mod task;
pub mod worker;
