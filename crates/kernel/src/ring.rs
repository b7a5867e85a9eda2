//! What the programs put in rings for skipstepd: records of the log and of flows. They come out in
//! the order in which they were made.

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

/// Records that a reader takes out of a ring at most before it hands them over. While programs add
/// records as fast as the reader takes them, a turn without a bound does not end, and fills the
/// memory.
pub const RECORDS_A_TURN: usize = 256;

/// Reads a ring. One reader at a time: records go to whoever asks first.
pub struct RingReader<R> {
    ring: RingBuffer<'static>,
    records: Rc<RefCell<Vec<R>>>,
}

/// Reads the log of an instance.
pub type LogReader = RingReader<LogRecord>;

/// Reads the states of an instance that have ended and are to be reported.
pub type FlowReader = RingReader<FlowRecord>;

impl LogReader {
    /// Opens the log of `instance`.
    pub fn open(instance: &Instance) -> Result<Self> {
        Self::of(&instance.maps.log_ring)
    }
}

impl FlowReader {
    /// Opens the flows of `instance`.
    pub fn open(instance: &Instance) -> Result<Self> {
        Self::of(&instance.maps.flow_ring)
    }
}

impl Instance {
    /// The kernel's number of the ring of log records.
    pub fn log_ring(&self) -> Result<u32> {
        id(&self.maps.log_ring)
    }

    /// The kernel's number of the ring of flows.
    pub fn flow_ring(&self) -> Result<u32> {
        id(&self.maps.flow_ring)
    }
}

fn id(ring: &MapHandle) -> Result<u32> {
    Ok(ring.info().context(|| "ring: look at".to_owned())?.info.id)
}

impl<R: FromBytes + 'static> RingReader<R> {
    /// Opens the ring that the kernel knows by a number, for which the process has to be root. The
    /// reader needs no rights from then on.
    pub fn by_id(id: u32) -> Result<Self> {
        let ring = MapHandle::from_map_id(id).context(|| format!("ring {id}: open"))?;
        Self::of(&ring)
    }

    pub(crate) fn of(map: &MapHandle) -> Result<Self> {
        Self::reading(map, |bytes| Some(R::read_from_prefix(bytes).ok()?.0))
    }
}

impl<R: 'static> RingReader<R> {
    /// A reader for whose records `read` finds a value, or nothing.
    pub(crate) fn reading(
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

    /// Waits for records for `timeout` at most, and hands over those that came, but no more than
    /// [`RECORDS_A_TURN`]. Returns their number.
    ///
    /// # Errors
    /// Those of the system.
    pub fn poll(&mut self, timeout: Duration, mut take: impl FnMut(&R)) -> Result<usize> {
        self.wait(timeout)?;
        let taken = self.ring.consume_raw_n(RECORDS_A_TURN);
        if taken < 0 {
            return Err(io::Error::from_raw_os_error(-taken)).context(|| "ring: read".to_owned());
        }
        Ok(self.hand_over(&mut take))
    }

    /// Waits until there is a record, or a signal comes.
    fn wait(&self, timeout: Duration) -> Result<()> {
        let timeout = PollTimeout::try_from(timeout).unwrap_or(PollTimeout::MAX);
        match poll(&mut [PollFd::new(self.as_fd(), PollFlags::POLLIN)], timeout) {
            Ok(_) | Err(Errno::EINTR) => Ok(()),
            Err(error) => Err(io::Error::from(error)).context(|| "ring: wait".to_owned()),
        }
    }

    /// Hands over what is there without waiting.
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

/// Can be read when the ring has records.
impl<R> AsFd for RingReader<R> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        // SAFETY: the descriptor is the ring's, which lives as long as this borrow of the reader
        unsafe { BorrowedFd::borrow_raw(self.ring.epoll_fd()) }
    }
}
