//! One direction of a TCP connection: each byte once and in order. Ambiguous bytes are not read. If
//! two segments have different bytes for one sequence number, the stream ends, because only the
//! receiver knows which of them it took.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Number of past bytes that are kept to compare them with retransmissions.
const RECENT: usize = 4096;

/// Distance from the next byte within which later bytes are kept.
const AHEAD: usize = 8192;

/// Time that bytes may be missing. TCP has retransmitted them several times by then.
const GAP: Duration = Duration::from_secs(20);

/// The reason to stop reading a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// Two segments have different bytes for one sequence number.
    #[error("two segments disagree")]
    Disagreement,
    /// Bytes were not seen for too long, or later bytes are too far ahead.
    #[error("bytes are missing")]
    Missing,
}

/// One direction of a connection.
#[derive(Debug)]
pub struct Stream {
    /// Sequence number of the next byte.
    next: u32,
    /// The bytes before `next`, at most [`RECENT`].
    recent: VecDeque<u8>,
    /// The bytes from `next` on; `None` for a byte not seen yet. The first is never present after a
    /// push.
    ahead: VecDeque<Option<u8>>,
    /// Time since which later bytes wait for missing ones.
    gap: Option<Instant>,
}

impl Stream {
    /// Creates a stream whose first byte has the sequence number `first`.
    pub fn new(first: u32) -> Stream {
        Stream { next: first, recent: VecDeque::new(), ahead: VecDeque::new(), gap: None }
    }

    /// Takes the bytes of a segment at `sequence`, and returns the bytes that are now in order.
    ///
    /// # Errors
    /// Fails if the segment disagrees with another one, or if bytes are missing for too long.
    pub fn push(&mut self, sequence: u32, bytes: &[u8], now: Instant) -> Result<Vec<u8>, Fault> {
        // a signed distance is unambiguous, because windows are smaller than half of all numbers
        let distance = sequence.wrapping_sub(self.next).cast_signed();
        let ahead = usize::try_from(distance).unwrap_or(0);
        let behind = (distance.min(0).unsigned_abs() as usize).min(bytes.len());
        self.compare(distance, &bytes[..behind])?;
        self.keep(ahead, &bytes[behind..])?;
        let read = self.read();
        self.gap = match self.ahead.is_empty() {
            true => None,
            // the segment filled a gap, but a later gap remains
            false if !read.is_empty() => Some(now),
            false => self.gap.or(Some(now)),
        };
        match self.gap {
            Some(since) if now.saturating_duration_since(since) > GAP => Err(Fault::Missing),
            _ => Ok(read),
        }
    }

    /// Compares bytes that begin `distance` before the next one with the kept bytes. Older bytes
    /// are not kept, so they are not compared.
    fn compare(&self, distance: i32, bytes: &[u8]) -> Result<(), Fault> {
        let Some(start) = self.recent.len().checked_add_signed(distance as isize) else {
            let unknown = distance.unsigned_abs() as usize - self.recent.len();
            return match bytes.get(unknown..) {
                Some(known) => self.compare_from(0, known),
                None => Ok(()),
            };
        };
        self.compare_from(start, bytes)
    }

    fn compare_from(&self, start: usize, bytes: &[u8]) -> Result<(), Fault> {
        let same = self.recent.iter().skip(start).zip(bytes).all(|(old, new)| old == new);
        if same { Ok(()) } else { Err(Fault::Disagreement) }
    }

    /// Stores bytes that begin `start` behind the next one.
    fn keep(&mut self, start: usize, bytes: &[u8]) -> Result<(), Fault> {
        if bytes.is_empty() {
            return Ok(());
        }
        if start > 0 && start + bytes.len() > AHEAD {
            return Err(Fault::Missing);
        }
        let end = start + bytes.len();
        if self.ahead.len() < end {
            self.ahead.resize(end, None);
        }
        for (place, byte) in self.ahead.iter_mut().skip(start).zip(bytes) {
            if *place.get_or_insert(*byte) != *byte {
                return Err(Fault::Disagreement);
            }
        }
        Ok(())
    }

    /// Removes and returns the bytes that are in order.
    fn read(&mut self) -> Vec<u8> {
        let length = self.ahead.iter().take_while(|byte| byte.is_some()).count();
        let read: Vec<u8> = self.ahead.drain(..length).flatten().collect();
        if self.ahead.is_empty() {
            // free the buffer of a long segment, because the connection may be silent for hours
            self.ahead = VecDeque::new();
        }
        self.next = self.next.wrapping_add(read.len() as u32);
        self.recent.extend(&read[read.len().saturating_sub(RECENT)..]);
        self.recent.drain(..self.recent.len().saturating_sub(RECENT));
        read
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const FIRST: u32 = u32::MAX - 3;

    /// Pushes segments at offsets, and returns the bytes read, or the fault.
    fn read(segments: &[(i32, &str)]) -> Result<String, Fault> {
        let mut stream = Stream::new(FIRST);
        let now = Instant::now();
        let mut all = Vec::new();
        for (offset, bytes) in segments {
            let sequence = FIRST.wrapping_add_signed(*offset);
            all.extend(stream.push(sequence, bytes.as_bytes(), now)?);
        }
        Ok(String::from_utf8(all).unwrap())
    }

    #[test]
    fn bytes_come_once_and_in_order() {
        assert_eq!(read(&[(0, "USER"), (4, " a\r\n")]).unwrap(), "USER a\r\n");
        assert_eq!(read(&[(4, " a\r\n"), (0, "USER")]).unwrap(), "USER a\r\n");
        assert_eq!(read(&[(0, "USER"), (0, "USER"), (2, "ER a")]).unwrap(), "USER a");
        assert_eq!(read(&[(6, "x"), (2, "ER"), (0, "US"), (4, " a")]).unwrap(), "USER ax");
    }

    #[test]
    fn contradicting_segments_end_the_stream() {
        for segments in [
            &[(0, "PORT 1"), (5, "2")][..],
            // here the later bytes arrive before the earlier ones
            &[(5, "1"), (0, "PORT 2")],
            &[(5, "1"), (5, "2")],
            &[(0, "PORT 1"), (-1, "xPORT 2")],
        ] {
            assert_eq!(read(segments), Err(Fault::Disagreement), "{segments:?}");
        }
        // bytes before the first are unknown; a keepalive probe has one
        assert_eq!(read(&[(0, "PORT 1"), (-1, "x")]).unwrap(), "PORT 1");
    }

    #[test]
    fn missing_bytes_end_the_stream_in_time() {
        let mut stream = Stream::new(0);
        let begin = Instant::now();
        assert_eq!(stream.push(4, b"x", begin), Ok(vec![]));
        assert_eq!(stream.push(4, b"x", begin + GAP), Ok(vec![]));
        let late = begin + GAP + Duration::from_secs(1);
        assert_eq!(stream.push(5, b"y", late), Err(Fault::Missing));
    }

    #[test]
    fn buffers_are_bounded() {
        let mut stream = Stream::new(0);
        let now = Instant::now();
        assert_eq!(stream.push(AHEAD as u32, b"x", now), Err(Fault::Missing));
        assert_eq!(stream.push(AHEAD as u32 - 1, b"x", now), Ok(vec![]));
        assert_eq!(stream.push(1 << 31, b"", now), Ok(vec![]));
        // a long segment that is in order does not count as waiting
        let mut stream = Stream::new(0);
        assert_eq!(stream.push(0, &[b'x'; 60_000], now).map(|read| read.len()), Ok(60_000));
        assert_eq!((stream.recent.len(), stream.ahead.capacity()), (RECENT, 0));
    }

    proptest! {
        /// Any cutting, repeating and reordering of the pieces yields the original text.
        #[test]
        fn a_text_is_read_however_it_comes(
            text in proptest::collection::vec(any::<u8>(), 1..300),
            pieces in proptest::collection::vec((any::<u16>(), 1_usize..40), 0..60),
            first: u32,
        ) {
            let mut stream = Stream::new(first);
            let now = Instant::now();
            let mut read = Vec::new();
            let all = std::iter::once((0, text.len()));
            let pieces = pieces.into_iter().map(|(at, length)| (usize::from(at) % text.len(), length));
            for (at, length) in pieces.chain(all) {
                let end = (at + length).min(text.len());
                read.extend(stream.push(first.wrapping_add(at as u32), &text[at..end], now).unwrap());
            }
            prop_assert_eq!(read, text);
        }
    }
}
