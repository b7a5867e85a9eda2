//! The worker that writes log records from the ring to files.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use anyhow::{Result, bail};
use nix::libc;
use skipstep_abi::LogRecord;
use skipstep_kernel::{LogReader, RECORDS_A_TURN};
use skipstep_worker::privileges::Call;

use crate::complaint::print_message;
use crate::log::Logs;
use crate::options::Options;
use crate::pflog::Origin;
use crate::task::{Order, Request};
use crate::worker::{Guardian, Work};

/// Size of the ring in bytes. A finishing worker reads at most as much, because a flood may go on.
const RING: usize = 1 << 20;

/// The ring and the log files.
pub struct LogWorker {
    reader: LogReader,
    logs: Logs,
    debug: bool,
}

impl LogWorker {
    /// Opens the ring with the kernel's id `ring`.
    ///
    /// # Errors
    /// Fails if the process is not root, or if the ring no longer exists.
    pub fn new(ring: u32, options: &Options) -> Result<LogWorker> {
        let logs = Logs::new(&options.file, options.snaplen);
        Ok(LogWorker { reader: LogReader::by_id(ring)?, logs, debug: options.debug })
    }

    /// Writes records from the ring, [`RECORDS_A_TURN`] at most, and returns their number.
    fn write(&mut self, guardian: &Guardian) -> Result<usize> {
        let (logs, mut failed) = (&mut self.logs, None);
        let mut origins = BTreeMap::new();
        let records = self.reader.poll(Duration::ZERO, |record| {
            match add(logs, record, &mut origins, guardian) {
                Ok(()) => {}
                Err(error) => failed = Some(error),
            }
        })?;
        if let Some(error) = failed {
            return Err(error);
        }
        self.logs.flush().iter().for_each(|message| print_message(message));
        if self.debug && records > 0 {
            print_message(&format!("{records} log records"));
        }
        Ok(records)
    }
}

/// Adds a record to the waiting ones. `origins` caches rule sets for this batch only: a rule set
/// that is loaded during the batch does not matter.
fn add(
    logs: &mut Logs,
    record: &LogRecord,
    origins: &mut BTreeMap<u32, Origin>,
    guardian: &Guardian,
) -> Result<()> {
    let origin = match origins.entry(record.anchor) {
        Entry::Occupied(known) => known.into_mut(),
        Entry::Vacant(place) => {
            let request = Request::Origin(record.anchor);
            place.insert(guardian.request(&request, |order, file| match order {
                Order::Origin(origin) => Ok(origin),
                other => Err((other, file)),
            })?)
        }
    };
    let mut gone = None;
    logs.add(record, origin, |number| match open(number, guardian) {
        Ok(file) => file,
        Err(error) => {
            gone = Some(error);
            Err(io::Error::other("the guardian is gone"))
        }
    });
    gone.map_or(Ok(()), Err)
}

/// Asks the guardian for a log file. The outer error means that the guardian is gone, the inner one
/// that the file cannot be opened.
fn open(number: u8, guardian: &Guardian) -> Result<io::Result<File>> {
    guardian.request(&Request::Open(number), |order, file| match (order, file) {
        (Order::File(None), Some(file)) => Ok(Ok(file.into())),
        (Order::File(error), _) => Ok(Err(io::Error::other(error.unwrap_or_default()))),
        other => Err(other),
    })
}

impl Work for LogWorker {
    const CALLS: &'static [Call] = &[
        Call::any(libc::SYS_ftruncate),
        Call::any(libc::SYS_lseek),
        Call::any(libc::SYS_statx),
        Call::any(libc::SYS_fstat),
        Call::any(libc::SYS_newfstatat),
    ];

    fn sources(&self) -> Vec<BorrowedFd<'_>> {
        vec![self.reader.as_fd()]
    }

    fn order(&mut self, order: Order, _: Option<OwnedFd>, _: &Guardian) -> Result<()> {
        if order != Order::Reopen {
            bail!("invalid order from the guardian: {order:?}");
        }
        self.logs.reopen();
        if self.debug {
            print_message("reopening log files");
        }
        Ok(())
    }

    fn turn(&mut self, guardian: &Guardian) -> Result<()> {
        self.write(guardian).map(drop)
    }

    fn report(&mut self) -> Request {
        Request::Log(self.logs.lost())
    }

    fn finish(&mut self, guardian: &Guardian) -> Result<()> {
        for _ in 0..=RING / size_of::<LogRecord>() / RECORDS_A_TURN {
            if self.write(guardian)? < RECORDS_A_TURN {
                break;
            }
        }
        Ok(())
    }
}
