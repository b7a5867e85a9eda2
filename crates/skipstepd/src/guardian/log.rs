//! Opens log files, and knows the rule sets that records name.

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

/// Rule sets by the number that records have of them.
type Origins = BTreeMap<u32, (String, Load)>;

/// The log of an instance.
pub struct Writing<'i> {
    instance: &'i Instance,
    signals: &'i Signals,
    /// Path of the files, without their number.
    prefix: &'i Path,
    /// Those of this generation.
    origins: Option<(u32, Origins)>,
    /// Records that are in no file.
    lost: &'i mut u64,
}

impl<'i> Writing<'i> {
    /// Opens files for the worker; `lost` is the number of records that could not be written.
    pub fn new(
        instance: &'i Instance,
        signals: &'i Signals,
        prefix: &'i Path,
        lost: &'i mut u64,
    ) -> Self {
        Writing { instance, signals, prefix, origins: None, lost }
    }

    /// Returns the rule set that a record names.
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

impl Function for Writing<'_> {
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
                *self.lost = lost;
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
