//! The transfer of packets from the guardian, which reads the log, to the worker. Each packet is
//! its length in four bytes, least significant first, and its bytes.

use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use skipstep_kernel::{Instance, LiveLog};

use crate::guardian::lock;
use crate::sesame::options::Options;
use crate::sesame::segment::Segment;
use crate::sesame::sessions::Sessions;

/// Interval at which both processes expire connections when no packets arrive.
pub const TICK: Duration = Duration::from_secs(1);

/// Number of bytes in one read.
const BLOCK: usize = 1 << 16;

/// Number of bytes of a packet at most. No log record is longer.
const LONGEST: usize = 1 << 17;

/// Reads the log, records its connections, and sends the packets until the worker ends.
///
/// # Errors
/// Fails if the log cannot be opened or read.
pub fn send_packets(
    mut worker: &UnixStream,
    sessions: &Mutex<Sessions>,
    options: &Options,
) -> Result<()> {
    let mut log = LiveLog::open(&Instance::open(&options.instance())?, options.log)?;
    let mut bytes = Vec::new();
    loop {
        log.poll(TICK, |packet| {
            if let Some(segment) = Segment::parse(&packet.data).filter(|_| packet.passed) {
                lock(sessions).segment(&segment, Instant::now());
                push(&mut bytes, &packet.data);
            }
        })?;
        lock(sessions).expire(Instant::now());
        if worker.write_all(&bytes).is_err() {
            return Ok(());
        }
        bytes.clear();
    }
}

fn push(bytes: &mut Vec<u8>, packet: &[u8]) {
    bytes.extend_from_slice(&(packet.len() as u32).to_le_bytes());
    bytes.extend_from_slice(packet);
}

/// The worker's end of the stream.
pub struct Packets {
    guardian: UnixStream,
    bytes: Vec<u8>,
}

impl Packets {
    /// Takes the end that the guardian has passed as standard input.
    ///
    /// # Errors
    /// Fails if standard input is not a socket.
    pub fn inherited() -> Result<Packets> {
        Packets::new(UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?))
    }

    fn new(guardian: UnixStream) -> Result<Packets> {
        guardian.set_read_timeout(Some(TICK)).context("guardian")?;
        Ok(Packets { guardian, bytes: Vec::new() })
    }

    /// Waits for packets, for [`TICK`] at most, and calls `take` with each packet that has arrived.
    ///
    /// # Errors
    /// Fails if the guardian has ended, or if a packet is too long.
    pub fn poll(&mut self, mut take: impl FnMut(&[u8])) -> Result<()> {
        let mut block = [0; BLOCK];
        match self.guardian.read(&mut block) {
            Ok(0) => bail!("the guardian is gone"),
            Ok(length) => self.bytes.extend_from_slice(&block[..length]),
            Err(error)
                if [ErrorKind::WouldBlock, ErrorKind::Interrupted].contains(&error.kind()) => {}
            Err(error) => return Err(error).context("guardian"),
        }
        let mut rest = &self.bytes[..];
        while let Some((length, behind)) = rest.split_first_chunk() {
            let length = u32::from_le_bytes(*length) as usize;
            if length > LONGEST {
                bail!("guardian: a packet of {length} bytes");
            }
            let Some((packet, behind)) = behind.split_at_checked(length) else { break };
            take(packet);
            rest = behind;
        }
        let taken = self.bytes.len() - rest.len();
        self.bytes.drain(..taken);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_come_whole_however_they_are_cut() {
        let (mut ours, theirs) = UnixStream::pair().unwrap();
        let mut packets = Packets::new(theirs).unwrap();
        let mut bytes = Vec::new();
        for packet in [&b"first"[..], b"", b"the last"] {
            push(&mut bytes, packet);
        }
        let mut got = Vec::new();
        for piece in bytes.chunks(3) {
            ours.write_all(piece).unwrap();
            packets.poll(|packet| got.push(packet.to_vec())).unwrap();
        }
        assert_eq!(got, [&b"first"[..], b"", b"the last"]);
        drop(ours);
        assert!(packets.poll(|_| {}).is_err());
    }
}
