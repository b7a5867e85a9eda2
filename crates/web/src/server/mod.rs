//! The web server: pages, sessions, and the requests of the page.
//!
//! The server runs without privileges. It parses the bytes of strangers, checks that a user has
//! logged in, and passes the user's requests on to the broker.

mod access;
mod api;
mod broker;
mod history;
mod options;
mod pages;
mod serve;
mod sessions;
mod states;
mod streams;

pub use options::Options;
pub use serve::run;
