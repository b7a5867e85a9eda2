//! The guardian of the worker that writes the log: it opens the log files, and looks up the rule
//! sets of records.

use std::collections::BTreeMap;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use skipstep_kernel::record::Load;
use skipstep_kernel::{Error, Instance};

use crate::daemon::Signals;
use crate::file;
use crate::guardian::{Function, Worker};
use crate::log;
use crate::pflog::Origin;
use crate::task::{Order, Request, Task};

/// Anchor path and load of each rule set, by the number that log records have.
type Origins = BTreeMap<u32, (String, Load)>;

/// The log of an instance.
pub struct LogGuardian<'i> {
    instance: &'i Instance,
    signals: &'i Signals,
    /// Path of the log files without the number at the end.
    prefix: &'i Path,
    /// Generation for which the rule sets were read, and the rule sets.
    origins: Option<(u32, Origins)>,
    /// Number of records that are in no file.
    lost: &'i mut u64,
    /// Number of records that earlier workers have lost.
    lost_before: u64,
}

impl<'i> LogGuardian<'i> {
    /// Makes the guardian's part of the log. `lost` counts the records that could not be written.
    pub fn new(
        instance: &'i Instance,
        signals: &'i Signals,
        prefix: &'i Path,
        lost: &'i mut u64,
    ) -> Self {
        let lost_before = *lost;
        LogGuardian { instance, signals, prefix, origins: None, lost, lost_before }
    }

    /// Looks up the rule set of a record; unknown numbers give the main rule set.
    fn origin(&mut self, number: u32) -> Origin {
        let generation = self.instance.generation();
        let origins = match self.origins.take() {
            Some((known, origins)) if known == generation => origins,
            _ => self.instance.origins().unwrap_or_default(),
        };
        let (anchor, load) = origins.get(&number).cloned().unwrap_or_default();
        self.origins = Some((generation, origins));
        Origin { anchor, uid: load.uid, pid: load.pid }
    }
}

impl Function for LogGuardian<'_> {
    const TASK: Task = Task::Log;

    fn begin(&mut self, worker: &Worker) -> Result<(), Error> {
        worker.order(&Order::WriteLog(self.instance.log_ring()?), None)
    }

    fn request(
        &mut self,
        worker: &Worker,
        request: Request,
        _: Option<OwnedFd>,
    ) -> Result<(), Error> {
        match request {
            Request::Log(lost) => {
                *self.lost = self.lost_before.saturating_add(lost);
                Ok(())
            }
            Request::Origin(number) => worker.order(&Order::Origin(self.origin(number)), None),
            Request::Open(number) => match file::open(&log::path(self.prefix, number)) {
                Ok(file) => worker.order(&Order::File(None), Some(file.as_fd())),
                Err(error) => worker.order(&Order::File(Some(error.to_string())), None),
            },
            request => Err(worker.nonsense(&request)),
        }
    }

    fn follow(&mut self, worker: &Worker) -> Result<(), Error> {
        match self.signals.reopen() {
            true => worker.order(&Order::Reopen, None),
            false => Ok(()),
        }
    }
}
