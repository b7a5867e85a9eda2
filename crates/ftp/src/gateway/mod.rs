//! ftp-gw: the application proxy. It ends the client's control connection, begins one of its own to
//! the server, and understands every command before the server hears of it; data it carries itself,
//! so that no packet of either side reaches the other.
//!
//! A session is first in `reception`, where the client says who it is and which server it wants,
//! and then in `relay`, where commands go on to the server and data connections come to be
//! (`data`), whose bytes `shovel` moves. [`config`] is what an administrator wrote, [`policy`] its
//! rules on who may go where.

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

/// The program.
pub const NAME: &str = "ftp-gw";
