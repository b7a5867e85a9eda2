//! skipstepd: the tasks that the filter cannot do by itself. It attaches new interfaces, follows
//! their addresses, reassembles fragments, delivers diverted packets to programs, and delays
//! packets. It also exports flow records and writes the log. If it stops, filtering goes on.
//!
//! The process that the user starts ([`daemon`]) has root's rights and reads no byte of a packet.
//! It is the guardian ([`mod@guardian`]) of workers ([`mod@worker`]), one for each [`task`].
//! Workers read these bytes and have no rights.

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
