//! The control connection of FTP, as all three ways through a firewall need it: the application
//! proxy, the helper that rewrites, and the one that only watches.
//!
//! Bytes become lines ([`mod@line`]), lines of a client commands ([`command`]), lines of a server
//! replies ([`reply`]), and both together say which data connection was agreed upon ([`dialogue`]).
//! That much is one for all; [`proxy`] is the helper that rewrites, [`sesame`] the one that
//! watches, [`gateway`] the application proxy.
//!
//! RFC 959 is FTP, RFC 2428 its extension for IPv6 and NAT, RFC 2389 `FEAT`, RFC 1123 section 4.1
//! what hosts must do of it.

pub mod anchor;
pub mod command;
pub mod dialogue;
pub mod endpoint;
pub mod gateway;
pub mod guardian;
pub mod line;
pub mod logging;
pub mod proxy;
pub mod reply;
pub mod sesame;
pub mod socket;

pub use command::{Command, Verb};
pub use dialogue::{Agreement, Dialogue, Mode};
pub use endpoint::Endpoint;
pub use line::{Line, Lines};
pub use reply::Reply;
