//! The log ring: records come out in the order in which packets made them.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use libbpf_rs::{MapHandle, RingBuffer, RingBufferBuilder};
use skipstep_abi::LogRecord;
use zerocopy::FromBytes;

use crate::error::{Context, Result};
use crate::instance::Instance;

/// Reads the log of an instance. One reader at a time: records go to whoever asks first.
pub struct LogReader {
    ring: RingBuffer<'static>,
    records: Rc<RefCell<Vec<LogRecord>>>,
}

impl LogReader {
    /// Opens the log of `instance`.
    pub fn open(instance: &Instance) -> Result<Self> {
        Self::of(&instance.maps.log_ring)
    }

    pub(crate) fn of(map: &MapHandle) -> Result<Self> {
        let records = Rc::new(RefCell::new(Vec::new()));
        let sink = Rc::clone(&records);
        let mut builder = RingBufferBuilder::new();
        builder
            .add(map, move |bytes| {
                if let Ok((record, _)) = LogRecord::read_from_prefix(bytes) {
                    sink.borrow_mut().push(record);
                }
                0
            })
            .context(|| "log ring: open".to_owned())?;
        let ring = builder.build().context(|| "log ring: open".to_owned())?;
        Ok(LogReader { ring, records })
    }

    /// Waits for records at most `timeout` and hands over those that came; how many there were.
    pub fn poll(&mut self, timeout: Duration, mut take: impl FnMut(&LogRecord)) -> Result<usize> {
        match self.ring.poll(timeout) {
            Err(error) if error.kind() == libbpf_rs::ErrorKind::Interrupted => {}
            other => other.context(|| "log ring: wait".to_owned())?,
        }
        Ok(self.hand_over(&mut take))
    }

    /// Hands over what is there without waiting.
    pub fn drain(&mut self, mut take: impl FnMut(&LogRecord)) -> Result<usize> {
        self.ring.consume().context(|| "log ring: read".to_owned())?;
        Ok(self.hand_over(&mut take))
    }

    fn hand_over(&mut self, take: &mut impl FnMut(&LogRecord)) -> usize {
        let records = self.records.take();
        records.iter().for_each(take);
        records.len()
    }
}
