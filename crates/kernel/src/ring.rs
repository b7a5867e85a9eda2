//! Rings from the programs to skipstepd: log records and flow records, in the order in which the
//! programs wrote them.

use std::cell::RefCell;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::rc::Rc;
use std::time::Duration;

use libbpf_rs::{MapCore, MapHandle, RingBuffer, RingBufferBuilder};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use skipstep_abi::{FlowRecord, LogRecord};
use zerocopy::FromBytes;

use crate::error::{Context, Result};
use crate::instance::Instance;

/// Largest number of records that a reader takes from a ring before it hands them over. Programs
/// may add records as fast as the reader takes them, and without this bound the reader would fill
/// the memory.
pub const RECORDS_A_TURN: usize = 256;

/// Reads a ring. Only one reader should read a ring at a time, because each record goes to one
/// reader.
pub struct RingReader<R> {
    ring: RingBuffer<'static>,
    records: Rc<RefCell<Vec<R>>>,
}

/// Reads the log records of an instance.
pub type LogReader = RingReader<LogRecord>;

/// Reads the flow records of an instance: ended states that rules report.
pub type FlowReader = RingReader<FlowRecord>;

impl LogReader {
    /// Opens the ring of log records of `instance`.
    ///
    /// # Errors
    /// Fails if the ring cannot be mapped.
    pub fn open(instance: &Instance) -> Result<Self> {
        Self::from_map(&instance.maps.log_ring)
    }
}

impl FlowReader {
    /// Opens the ring of flow records of `instance`.
    ///
    /// # Errors
    /// Fails if the ring cannot be mapped.
    pub fn open(instance: &Instance) -> Result<Self> {
        Self::from_map(&instance.maps.flow_ring)
    }
}

impl Instance {
    /// Returns the kernel's id of the ring of log records.
    ///
    /// # Errors
    /// Fails if the kernel does not describe the map.
    pub fn log_ring(&self) -> Result<u32> {
        id(&self.maps.log_ring)
    }

    /// Returns the kernel's id of the ring of flow records.
    ///
    /// # Errors
    /// Fails if the kernel does not describe the map.
    pub fn flow_ring(&self) -> Result<u32> {
        id(&self.maps.flow_ring)
    }
}

pub(crate) fn id(ring: &MapHandle) -> Result<u32> {
    Ok(ring.info().context(|| "ring: look at".to_owned())?.info.id)
}

impl<R: FromBytes + 'static> RingReader<R> {
    /// Opens the ring with a kernel id. This needs root; the reader needs no rights afterwards.
    ///
    /// # Errors
    /// Fails if the process is not root, if there is no such map, or if the ring cannot be mapped.
    pub fn by_id(id: u32) -> Result<Self> {
        let ring = MapHandle::from_map_id(id).context(|| format!("ring {id}: open"))?;
        Self::from_map(&ring)
    }

    /// Opens a ring.
    ///
    /// # Errors
    /// Fails if the ring cannot be mapped.
    pub fn from_map(map: &MapHandle) -> Result<Self> {
        Self::with_parser(map, |bytes| Some(R::read_from_prefix(bytes).ok()?.0))
    }
}

impl<R: 'static> RingReader<R> {
    /// Makes a reader that converts records by `read`, and skips those for which `read` returns
    /// `None`.
    pub(crate) fn with_parser(
        map: &MapHandle,
        read: impl Fn(&[u8]) -> Option<R> + 'static,
    ) -> Result<Self> {
        let records = Rc::new(RefCell::new(Vec::new()));
        let sink = Rc::clone(&records);
        let mut builder = RingBufferBuilder::new();
        builder
            .add(map, move |bytes| {
                sink.borrow_mut().extend(read(bytes));
                0
            })
            .context(|| "ring: open".to_owned())?;
        let ring = builder.build().context(|| "ring: open".to_owned())?;
        Ok(RingReader { ring, records })
    }

    /// Waits at most `timeout` for records, and hands over at most [`RECORDS_A_TURN`] of them.
    /// Returns their number.
    ///
    /// # Errors
    /// Fails if poll(2) or the ring fails.
    pub fn poll(&mut self, timeout: Duration, mut take: impl FnMut(&R)) -> Result<usize> {
        self.wait(timeout)?;
        let taken = self.ring.consume_raw_n(RECORDS_A_TURN);
        if taken < 0 {
            return Err(io::Error::from_raw_os_error(-taken)).context(|| "ring: read".to_owned());
        }
        Ok(self.hand_over(&mut take))
    }

    /// Waits until there is a record or a signal, at most `timeout`.
    fn wait(&self, timeout: Duration) -> Result<()> {
        let timeout = PollTimeout::try_from(timeout).unwrap_or(PollTimeout::MAX);
        match poll(&mut [PollFd::new(self.as_fd(), PollFlags::POLLIN)], timeout) {
            Ok(_) | Err(Errno::EINTR) => Ok(()),
            Err(error) => Err(io::Error::from(error)).context(|| "ring: wait".to_owned()),
        }
    }

    /// Hands over all records in the ring without waiting. Returns their number.
    ///
    /// # Errors
    /// Fails if the ring cannot be read.
    pub fn drain(&mut self, mut take: impl FnMut(&R)) -> Result<usize> {
        self.ring.consume().context(|| "ring: read".to_owned())?;
        Ok(self.hand_over(&mut take))
    }

    fn hand_over(&mut self, take: &mut impl FnMut(&R)) -> usize {
        let records = self.records.take();
        records.iter().for_each(take);
        records.len()
    }
}

/// Becomes readable when the ring has records.
impl<R> AsFd for RingReader<R> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        // SAFETY: the descriptor belongs to the ring, which lives as long as this borrow of the
        // reader
        unsafe { BorrowedFd::borrow_raw(self.ring.epoll_fd()) }
    }
}
