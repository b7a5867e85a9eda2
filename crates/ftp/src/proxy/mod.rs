//! ftp-proxy: the helper that rewrites what client and server tell each other, and opens the filter
//! for the data connections that they agree upon.
//!
//! The control connection comes by `divert-to`; the address that the client wanted is that of the
//! socket. Two processes share the work: a `worker` without rights speaks with the world, a
//! guardian changes the filter for it. What a data connection needs is in `rules`.

pub mod gate;
pub mod options;
pub mod rules;
mod session;
pub mod worker;

use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::process::Stdio;

use anyhow::{Result, bail};
use nix::unistd::geteuid;

use crate::anchor::Anchors;
use crate::endpoint::LOWEST_PORT;
use crate::guardian::{self, Order};
use crate::socket;
use gate::Request;
use options::Options;

/// The program, and the anchor that rule sets call.
pub const NAME: &str = "ftp-proxy";

/// Where the proxy listens, before it does anything else.
///
/// # Errors
/// It has no permission, the options contradict each other, or the address is taken.
pub fn listen(options: &Options) -> Result<TcpListener> {
    if let Some(mistake) = options.mistake() {
        bail!("{mistake}");
    }
    if !geteuid().is_root() {
        bail!("needs root");
    }
    socket::transparent(options.listen())
}

/// Lets the worker serve those who come to `listener`, and opens the filter for it.
///
/// # Errors
/// Those of the guardian.
pub fn serve(options: &Options, anchors: &mut Anchors, listener: TcpListener) -> Result<()> {
    let input = Stdio::from(OwnedFd::from(listener));
    guardian::run(anchors, input, |_, request| match request {
        Request::Open(_, _, expected) if expected.port < LOWEST_PORT => {
            bail!("no data connection goes to port {}", expected.port)
        }
        Request::Open(id, hosts, expected) => {
            Ok(Order::Open(*id, rules::rules(hosts, expected, options)))
        }
        Request::Close(id) => Ok(Order::Close(*id)),
    })
}
