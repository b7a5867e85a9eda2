//! A log that a program reads itself, as the packets come: pflogN with N of its own. While it does,
//! their records are not skipstepd's, which would write them to a file, and bring the packet as a
//! whole.

use std::os::fd::{AsFd, AsRawFd};
use std::time::Duration;

use libbpf_rs::libbpf_sys;
use libbpf_rs::{MapHandle, MapType};
use skipstep_abi::{LogRecord, verdict};
use zerocopy::FromBytes;

use crate::error::{Context, Error, Result};
use crate::instance::Instance;
use crate::owner::Owner;
use crate::ring::RingReader;

/// Bytes of records that wait to be read.
const RING: u32 = 4 << 20;

/// A packet that a rule has logged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoggedPacket {
    /// Whether it passed.
    pub passed: bool,
    /// From the IP header on, as it was before translation.
    pub data: Vec<u8>,
    /// How long it was.
    pub length: u32,
}

/// Reads the packets of a log.
pub struct LiveLog(RingReader<LoggedPacket>);

impl LiveLog {
    /// Reads what an owner has made the ring for.
    pub fn open(instance: &Instance, log: u8) -> Result<LiveLog> {
        let id = instance.maps.log_readers.get(&u32::from(log))?;
        let what = || format!("pflog{log}: open");
        let id =
            id.ok_or_else(|| Error::Bpf { what: what(), cause: "nobody reads it".to_owned() })?;
        let ring = MapHandle::from_map_id(id).context(what)?;
        Ok(LiveLog(RingReader::reading(&ring, packet)?))
    }

    /// Waits for packets at most `timeout` and hands over those that came; how many there were.
    pub fn poll(&mut self, timeout: Duration, take: impl FnMut(&LoggedPacket)) -> Result<usize> {
        self.0.poll(timeout, take)
    }
}

fn packet(record: &[u8]) -> Option<LoggedPacket> {
    let (head, _) = LogRecord::read_from_prefix(record).ok()?;
    let data = record.get(std::mem::offset_of!(LogRecord, data)..)?;
    let data = data.get(..usize::from(head.caplen))?.to_vec();
    let passed = head.action == verdict::action::PASS;
    Some(LoggedPacket { passed, data, length: head.wirelen })
}

impl Instance {
    /// Has the packets of `log` come to a ring, which goes with its owner.
    pub fn take_log(&self, owner: &mut Owner, log: u8) -> Result<()> {
        let what = || format!("pflog{log}");
        let _lock = self.run.lock()?;
        if self.maps.log_readers.get(&u32::from(log))?.is_some() {
            let cause = "another program reads it".to_owned();
            return Err(Error::Bpf { what: what(), cause });
        }
        let options = libbpf_sys::bpf_map_create_opts {
            sz: size_of::<libbpf_sys::bpf_map_create_opts>() as _,
            ..Default::default()
        };
        let ring = MapHandle::create(MapType::RingBuf, Some("log_reader"), 0, 0, RING, &options);
        let ring = ring.context(what)?;
        owner.set_log(Some(log))?;
        self.maps.log_readers.set(&u32::from(log), &(ring.as_fd().as_raw_fd() as u32))
    }

    /// Gives the log of an owner back.
    pub fn give_log_back(&self, owner: &mut Owner) -> Result<()> {
        match owner.log() {
            Some(log) => {
                self.free_log(log)?;
                owner.set_log(None)
            }
            None => Ok(()),
        }
    }

    /// Leaves the records of a log to skipstepd.
    pub(crate) fn free_log(&self, log: u8) -> Result<()> {
        self.maps.log_readers.remove(&u32::from(log)).map(drop)
    }
}
