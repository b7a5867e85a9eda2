//! ftp-gw, the application proxy. The gateway terminates the client's control connection and opens
//! one to the server. It parses every command before it forwards one. It copies the data itself, so
//! no packet of either side reaches the other.
//!
//! A session starts in `reception`, where the client logs in and names its server. It continues in
//! `relay`, which forwards commands and sets up data connections (`data`). `shovel` copies their
//! bytes. [`config`] reads the configuration; [`policy`] has its rules on clients and servers.

pub mod accounts;
mod address;
pub mod config;
mod control;
mod course;
mod data;
mod destination;
mod expected;
mod held;
mod journal;
mod limits;
pub mod network;
pub mod options;
pub mod policy;
mod ports;
pub mod privileges;
mod reception;
mod relay;
mod replies;
pub mod serve;
mod server;
mod session;
#[cfg(test)]
mod session_tests;
mod shovel;
mod transfer;
mod verbs;

pub use session::{Gateway, Session};

/// The name of the program.
pub const NAME: &str = "ftp-gw";
