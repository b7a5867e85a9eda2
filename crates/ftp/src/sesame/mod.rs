//! ftpsesame: no proxy, it only watches. It reads copies of the packets of control connections that
//! the filter has let pass, and has it let each data connection through that both sides agreed
//! upon: between the two hosts of its control connection, once, for a short time.
//!
//! Packets come by a log of the filter ([`skipstep_kernel::LiveLog`]). What is read of them
//! (`segment`) becomes bytes in order (`stream`), and both directions a dialogue (`connection`), of
//! which there are many (`watch`). A worker without rights does that; the guardian opens the filter
//! (`rules`).

mod connection;
pub mod gate;
pub mod options;
pub mod rules;
pub mod segment;
pub mod stream;
pub mod watch;
pub mod worker;

use std::process::Stdio;

use anyhow::{Result, bail};

use crate::anchor::Anchors;
use crate::endpoint::LOWEST_PORT;
use crate::guardian::{self, Order};
use gate::Request;
use options::Options;

/// The program, and the anchor that rule sets call.
pub const NAME: &str = "ftpsesame";

/// The anchors, and the log whose packets come to the worker.
///
/// # Errors
/// The filter is not there, or another program reads the log.
pub fn open(options: &Options) -> Result<Anchors> {
    let mut anchors = Anchors::open(NAME, &options.instance())?;
    anchors.take_log(options.log)?;
    Ok(anchors)
}

/// Lets the worker watch, and opens the filter for it.
///
/// # Errors
/// Those of the guardian.
pub fn serve(options: &Options, anchors: &mut Anchors) -> Result<()> {
    let served = guardian::run(anchors, Stdio::null(), |anchors, request| match request {
        Request::Open(_, expected) if expected.port < LOWEST_PORT => {
            bail!("no data connection goes to port {}", expected.port)
        }
        Request::Open(id, expected) => Ok(Order::Open(*id, rules::rules(expected, options))),
        Request::Close(id) => Ok(Order::Close(*id)),
        Request::Check if anchors.is_current() => Ok(Order::Nothing),
        Request::Check => bail!("the filter is gone"),
    });
    served.and(anchors.give_log_back())
}
