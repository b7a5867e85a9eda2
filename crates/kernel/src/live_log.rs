//! A log that a program reads while the packets come: a pflogN of its own. Meanwhile skipstepd does
//! not get the log's records and writes no file. The records have whole packets.

use std::os::fd::{AsFd, AsRawFd};
use std::time::Duration;

use libbpf_rs::libbpf_sys;
use libbpf_rs::{MapHandle, MapType};
use skipstep_abi::limits::LOGS;
use skipstep_abi::{LogRecord, verdict};
use zerocopy::FromBytes;

use crate::drops;
use crate::error::{Context, Error, Result};
use crate::instance::Instance;
use crate::owner::{Owner, Ring};
use crate::ring::{self, RingReader};

/// Size of the ring, in bytes.
const RING: u32 = 4 << 20;

/// A packet that a rule has logged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoggedPacket {
    /// True if the packet passed.
    pub passed: bool,
    /// The packet from the IP header on, before translation.
    pub data: Vec<u8>,
    /// Length of the whole packet in bytes; `data` may be shorter.
    pub length: u32,
}

/// Reads the packets of a log.
pub struct LiveLog(RingReader<LoggedPacket>);

impl LiveLog {
    /// Opens the ring that the owner of pflog`log` has made.
    ///
    /// # Errors
    /// Fails if no program has taken the log, or if the ring cannot be opened.
    pub fn open(instance: &Instance, log: u8) -> Result<LiveLog> {
        let id = instance.maps.log_readers.get(&u32::from(log))?;
        let operation = || format!("pflog{log}: open");
        let id = id.ok_or_else(|| Error::Bpf {
            operation: operation(),
            cause: "no program reads it".to_owned(),
        })?;
        let ring = MapHandle::from_map_id(id).context(operation)?;
        Ok(LiveLog(RingReader::with_parser(&ring, packet)?))
    }

    /// Waits at most `timeout` for packets, and calls `take` for each. Returns their number.
    ///
    /// # Errors
    /// Fails if the ring cannot be polled.
    pub fn poll(&mut self, timeout: Duration, take: impl FnMut(&LoggedPacket)) -> Result<usize> {
        self.0.poll(timeout, take)
    }
}

fn packet(record: &[u8]) -> Option<LoggedPacket> {
    let (head, data) = parse(record)?;
    let passed = head.action == verdict::action::PASS;
    Some(LoggedPacket { passed, data: data.to_vec(), length: head.wirelen })
}

/// Parses a record of a reader's ring. Returns the record, which has the first bytes of the packet
/// only, and all bytes of the packet.
pub(crate) fn parse(record: &[u8]) -> Option<(LogRecord, &[u8])> {
    let (head, _) = LogRecord::read_from_prefix(record).ok()?;
    let data = record.get(std::mem::offset_of!(LogRecord, data)..)?;
    Some((head, data.get(..usize::from(head.caplen))?))
}

/// Makes a ring that has no place in the map of readers yet.
pub(crate) fn new_ring() -> Result<MapHandle> {
    let options = libbpf_sys::bpf_map_create_opts {
        sz: size_of::<libbpf_sys::bpf_map_create_opts>() as _,
        ..Default::default()
    };
    let ring = MapHandle::create(MapType::RingBuf, Some("log_reader"), 0, 0, RING, &options);
    ring.context(|| "ring: make".to_owned())
}

impl Instance {
    /// Sends the records of `log` to a new ring, which ends with its owner.
    ///
    /// # Errors
    /// Fails if another program reads the log, if the lock cannot be taken, or if the ring or its
    /// record cannot be written.
    pub fn take_log(&self, owner: &mut Owner, log: u8) -> Result<()> {
        let _lock = self.run.lock()?;
        if self.maps.log_readers.get(&u32::from(log))?.is_some() {
            let (operation, cause) = (format!("pflog{log}"), "another program reads it".to_owned());
            return Err(Error::Bpf { operation, cause });
        }
        self.make_ring(owner, u32::from(log)).map(drop)
    }

    /// Removes the ring of an owner, if it has one. The records of a log go to skipstepd again.
    ///
    /// # Errors
    /// Fails if the map or the owner's file cannot be written.
    pub fn give_ring_back(&self, owner: &mut Owner) -> Result<()> {
        match owner.ring() {
            Some(ring) => {
                self.free_ring(ring)?;
                owner.set_ring(None)
            }
            None => Ok(()),
        }
    }

    /// Makes a ring at a place of the map of readers, and records it with its owner.
    pub(crate) fn make_ring(&self, owner: &mut Owner, place: u32) -> Result<MapHandle> {
        let ring = new_ring()?;
        owner.set_ring(Some(Ring { place, id: ring::id(&ring)? }))?;
        self.maps.log_readers.set(&place, &(ring.as_fd().as_raw_fd() as u32))?;
        Ok(ring)
    }

    /// Removes a ring from the map of readers, unless its place has another ring.
    pub(crate) fn free_ring(&self, ring: Ring) -> Result<()> {
        if self.maps.log_readers.get(&ring.place)? != Some(ring.id) {
            return Ok(());
        }
        if let Some(number) = ring.place.checked_sub(LOGS) {
            drops::set_reader(&self.maps, number, false);
        }
        self.maps.log_readers.remove(&ring.place).map(drop)
    }
}
