//! The FTP control connection, and three ways to take FTP through a firewall.
//!
//! [`mod@line`] splits bytes into lines. [`command`] parses lines of a client, and [`reply`] lines
//! of a server. [`dialogue`] combines both and reports the data connection that they agree upon.
//! Three programs use these modules:
//!
//! - [`proxy`]: ftp-proxy, which rewrites addresses in the control connection.
//! - [`sesame`]: ftpsesame, which only watches the control connection.
//! - [`gateway`]: ftp-gw, the application proxy.
//!
//! Sources: RFC 959 (FTP), RFC 2428 (extensions for IPv6 and NAT), RFC 2389 (`FEAT`), RFC 1123
//! section 4.1 (requirements for hosts).

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
