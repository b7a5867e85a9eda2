//! Takes records out of the ring and writes them.

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

use crate::complaint::say;
use crate::log::Logs;
use crate::options::Options;
use crate::pflog::Origin;
use crate::task::{Order, Request};
use crate::worker::{Guardian, Work};

/// Bytes of the ring. At its end a worker reads that much at most, as a flood may go on.
const RING: usize = 1 << 20;

/// The ring and the files.
pub struct Writing {
    reader: LogReader,
    logs: Logs,
    debug: bool,
}

impl Writing {
    /// Reads the ring with this number.
    ///
    /// # Errors
    /// The process is not root, or the instance is gone.
    pub fn new(ring: u32, options: &Options) -> Result<Writing> {
        let logs = Logs::new(&options.file, options.snaplen);
        Ok(Writing { reader: LogReader::by_id(ring)?, logs, debug: options.debug })
    }

    /// Writes some records. Returns their number.
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
        self.logs.flush().iter().for_each(|message| say(message));
        if self.debug && records > 0 {
            say(&format!("{records} log records"));
        }
        Ok(records)
    }
}

/// Adds a record to those that are written next. `origins` are the rule sets of this turn: a turn
/// is so short that a rule set loaded meanwhile does not matter.
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
            place.insert(guardian.ask(&request, |order, file| match order {
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

/// Asks for a log file. The inner error is that of the file.
fn open(number: u8, guardian: &Guardian) -> Result<io::Result<File>> {
    guardian.ask(&Request::Open(number), |order, file| match (order, file) {
        (Order::File(None), Some(file)) => Ok(Ok(file.into())),
        (Order::File(error), _) => Ok(Err(io::Error::other(error.unwrap_or_default()))),
        other => Err(other),
    })
}

impl Work for Writing {
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
            bail!("the guardian says nonsense: {order:?}");
        }
        self.logs.reopen();
        if self.debug {
            say("log files are opened anew");
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
