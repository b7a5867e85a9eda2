//! Dropped packets, as a program reads them while they come: all packets that the filter drops,
//! whether a rule logs them or not. Up to [`DROP_READERS`] programs read at once, each in a ring of
//! its own. Nothing is written if no program reads.

use std::mem::offset_of;
use std::os::fd::{AsFd, AsRawFd};
use std::time::Duration;

use skipstep_abi as abi;
use skipstep_abi::LogRecord;
use skipstep_abi::limits::{DROP_READERS, LOGS};

use crate::counters;
use crate::error::{Error, Result};
use crate::instance::Instance;
use crate::live_log;
use crate::object::Maps;
use crate::owner::Owner;
use crate::ring::RingReader;

/// A packet that the filter has dropped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DroppedPacket {
    /// The record of the packet. Its field `data` has only the first bytes.
    pub record: LogRecord,
    /// The packet from the IP header on. If the record has no family, the frame from its link
    /// header on.
    pub data: Vec<u8>,
}

impl DroppedPacket {
    fn parse(record: &[u8]) -> Option<DroppedPacket> {
        let (record, data) = live_log::parse(record)?;
        Some(DroppedPacket { record, data: data.to_vec() })
    }
}

/// Reads the dropped packets of an instance until it is dropped.
///
/// The filter writes nothing more to a program that has neither called [`Drops::poll`] nor
/// [`Drops::renew`] for four to eight seconds, because a program that was killed must not cost
/// anything.
pub struct Drops<'i> {
    instance: &'i Instance,
    owner: Owner,
    /// Number of the reader, below [`DROP_READERS`].
    number: u32,
    ring: RingReader<DroppedPacket>,
    /// Value of the counters of lost packets at the beginning.
    lost_before: u64,
    was_silent: bool,
}

impl Drops<'_> {
    /// Waits at most `timeout` for packets, and calls `take` for each. Returns their number. The
    /// timeout should be below a second.
    ///
    /// # Errors
    /// Fails if the ring cannot be polled.
    pub fn poll(&mut self, timeout: Duration, take: impl FnMut(&DroppedPacket)) -> Result<usize> {
        self.renew();
        self.ring.poll(timeout, take)
    }

    /// Tells the filter that this program still reads.
    pub fn renew(&mut self) {
        self.was_silent |= !set_reader(&self.instance.maps, self.number, true);
    }

    /// True if the filter wrote nothing to this program for some time before the last call of
    /// [`Drops::poll`] or [`Drops::renew`], because the program did not read. True once for each
    /// such time.
    pub fn was_silent(&mut self) -> bool {
        std::mem::take(&mut self.was_silent)
    }

    /// Returns the number of dropped packets since the beginning that this program did not get,
    /// because its ring was full or because there were too many in a second.
    ///
    /// # Errors
    /// Fails if the counters cannot be read.
    pub fn lost(&self) -> Result<u64> {
        // `pfctl -F info` clears the counters
        Ok(lost(&self.instance.maps, self.number)?.saturating_sub(self.lost_before))
    }
}

fn lost(maps: &Maps, number: u32) -> Result<u64> {
    let counters = counters::totals(maps)?;
    Ok(counters.drops_lost[number as usize] + counters.drops_unreported)
}

impl Drop for Drops<'_> {
    fn drop(&mut self) {
        // after a failure, the next reader or skipstepd removes the ring
        let _ = self.instance.give_ring_back(&mut self.owner);
    }
}

impl Instance {
    /// Begins to read dropped packets.
    ///
    /// # Errors
    /// Fails if [`DROP_READERS`] programs read already, if the lock cannot be taken, or if the ring
    /// cannot be made.
    pub fn read_drops(&self) -> Result<Drops<'_>> {
        let _lock = self.run.lock()?;
        // without skipstepd, nobody else removes the ring of a killed reader
        self.free_dead_drop_readers()?;
        let Some(number) = self.free_drop_reader()? else {
            return Err(Error::DropReaders { most: DROP_READERS });
        };
        // each reader of a process has a file of its own
        let mut owner = self.own_anchors(&format!("drops-{number}"))?;
        let ring = self.make_ring(&mut owner, LOGS + number)?;
        let ring = RingReader::with_parser(&ring, DroppedPacket::parse)?;
        let lost_before = lost(&self.maps, number)?;
        set_reader(&self.maps, number, true);
        Ok(Drops { instance: self, owner, number, ring, lost_before, was_silent: false })
    }

    /// Returns the number of a reader whose place is free.
    fn free_drop_reader(&self) -> Result<Option<u32>> {
        for number in 0..DROP_READERS {
            if self.maps.log_readers.get(&(LOGS + number))?.is_none() {
                return Ok(Some(number));
            }
        }
        Ok(None)
    }

    /// Returns the bit mask of the programs that read dropped packets now.
    pub fn drop_readers(&self) -> u32 {
        self.maps.shared_status.load(0, offset_of!(abi::Status, drop_readers))
    }
}

/// Tells the data plane that a reader reads, or that it does not any more. Returns true if the data
/// plane knew.
pub fn set_reader(maps: &Maps, number: u32, reads: bool) -> bool {
    // the timer keeps the bits of `drop_readers` that are set here
    set_bit(maps, offset_of!(abi::Status, drop_readers_alive), number, reads);
    set_bit(maps, offset_of!(abi::Status, drop_readers), number, reads)
}

/// Sets or clears a bit of a word of the status. Returns true if the bit had the value. A word that
/// need not change is not written, because packets read its cache line.
fn set_bit(maps: &Maps, at: usize, number: u32, value: bool) -> bool {
    let bit = 1u32.checked_shl(number).unwrap_or_default();
    loop {
        let old = maps.shared_status.load(0, at);
        let new = if value { old | bit } else { old & !bit };
        if old == new || maps.shared_status.replace(0, at, old, new) {
            return old == new;
        }
    }
}

/// Makes the ring of reader 0 for a test, whose maps belong to no instance. [`set_reader`] begins
/// to fill the ring.
///
/// # Errors
/// Fails if the ring cannot be made, or if the map of readers cannot be written.
pub fn test_ring(maps: &Maps) -> Result<RingReader<DroppedPacket>> {
    let ring = live_log::new_ring()?;
    maps.log_readers.set(&LOGS, &(ring.as_fd().as_raw_fd() as u32))?;
    RingReader::with_parser(&ring, DroppedPacket::parse)
}
