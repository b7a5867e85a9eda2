//! The output of `pfctl log`: lines, JSON or pcap.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::OpenOptionsExt;

use anyhow::{Context, Result};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use skipstep_wire::pcap::{FileHeader, MAX_CAPTURED, PFLOG, RecordHeader};

use super::record::Record;
use super::rule_sets::RuleSets;
use crate::output::print;
use crate::request::Args;

/// The name that `-w` gives standard output.
const STDOUT: &str = "-";

/// The place and the form of the output.
pub enum Output<'a> {
    /// A line for each packet, on standard output.
    Lines,
    /// An object for each packet, on standard output.
    Json(Box<RuleSets<'a>>),
    /// `-w`: pcap in a file, a named pipe or standard output.
    Pcap(File),
}

impl<'a> Output<'a> {
    /// Opens the output that the arguments ask for. A pcap output gets its header at once, because
    /// tcpdump and Wireshark wait for it.
    ///
    /// # Errors
    /// Fails if the file of `-w` or standard output cannot be written.
    pub fn new(args: &'a Args) -> Result<Self> {
        // the logs that are followed may have different lengths of packets
        let header = FileHeader::new(PFLOG, MAX_CAPTURED as u32).to_bytes();
        match args.pcap.as_deref() {
            None if args.json => Ok(Output::Json(Box::new(RuleSets::new(args)))),
            None => Ok(Output::Lines),
            Some(path) => {
                let mut file = open(path).with_context(|| path.to_owned())?;
                file.write_all(&header).with_context(|| path.to_owned())?;
                Ok(Output::Pcap(file))
            }
        }
    }

    /// Writes a record. Nothing of it stays in a buffer.
    ///
    /// # Errors
    /// Fails if the output cannot be written, for instance because the pipe is closed.
    pub fn write(&mut self, record: &Record, header: &RecordHeader, bytes: &[u8]) -> Result<()> {
        match self {
            Output::Lines => print(&(record.line(&chrono::Local) + "\n")),
            Output::Json(rule_sets) => {
                let rule_id = rule_sets.identity(record);
                print(&format!("{}\n", record.json(rule_id.as_deref())))
            }
            Output::Pcap(file) => Ok(file.write_all(&[&header.to_bytes()[..], bytes].concat())?),
        }
    }

    /// False if the output is a pipe or a socket that its reader has closed. Otherwise this program
    /// would notice only at the next record.
    pub fn has_reader(&self) -> bool {
        let stdout = io::stdout();
        let fd = match self {
            Output::Pcap(file) => file.as_fd(),
            Output::Lines | Output::Json(_) => stdout.as_fd(),
        };
        let mut watched = [PollFd::new(fd, PollFlags::empty())];
        let polled = poll(&mut watched, PollTimeout::ZERO);
        let closed = PollFlags::POLLERR | PollFlags::POLLHUP;
        let is_closed = watched[0].revents().is_some_and(|events| events.intersects(closed));
        polled.is_err() || !is_closed
    }
}

/// Opens the output of `-w`. Only this user may read a new file.
fn open(path: &str) -> io::Result<File> {
    if path == STDOUT {
        return Ok(io::stdout().as_fd().try_clone_to_owned()?.into());
    }
    OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)
}
