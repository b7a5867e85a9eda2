//! The queue of delayed packets (`set delay`), in order of their departure times.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::time::Duration;

use skipstep_abi::delayed::{Delayed, delayed_order};
use skipstep_kernel::DelayCounters;
use zerocopy::{FromBytes, IntoBytes};

/// Length of an Ethernet header.
const ETHERNET: usize = 14;

/// Bytes of buffer for each packet that may wait. Longer packets use the share of others, as
/// OpenBSD's packets share mbuf clusters.
const SHARE: usize = 2048;

/// Bytes of a refused packet that are returned: the kernel needs a plausible IP header.
const TOKEN: usize = 40;

/// A waiting frame, in the form in which it is returned to the device.
struct DelayedFrame {
    due: u64,
    /// Order of arrival: of frames with the same departure time, the first to arrive leaves first.
    order: u64,
    frame: Vec<u8>,
}

impl DelayedFrame {
    fn turn(&self) -> (u64, u64) {
        (self.due, self.order)
    }
}

impl PartialEq for DelayedFrame {
    fn eq(&self, other: &DelayedFrame) -> bool {
        self.turn() == other.turn()
    }
}

impl Eq for DelayedFrame {}

impl PartialOrd for DelayedFrame {
    fn partial_cmp(&self, other: &DelayedFrame) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for DelayedFrame {
    fn cmp(&self, other: &DelayedFrame) -> Ordering {
        self.turn().cmp(&other.turn())
    }
}

/// The waiting packets, and counters.
pub struct Delays {
    held: BinaryHeap<Reverse<DelayedFrame>>,
    bytes: usize,
    limit: usize,
    arrived: u64,
    sent: u64,
    refused: u64,
    nonce: u64,
    foreign: u64,
}

impl Delays {
    /// Makes an empty queue for at most `limit` packets. Frames of the data plane carry `nonce`.
    pub fn new(limit: u32, nonce: u64) -> Self {
        Delays {
            held: BinaryHeap::new(),
            bytes: 0,
            limit: limit as usize,
            arrived: 0,
            sent: 0,
            refused: 0,
            nonce,
            foreign: 0,
        }
    }

    /// Sets another limit. Packets that wait already stay.
    pub fn configure(&mut self, limit: u32) {
        self.limit = limit as usize;
    }

    /// Returns the counters since the start.
    pub fn counters(&self) -> DelayCounters {
        let waiting = self.held.len() as u32;
        let Delays { sent, refused, foreign, .. } = *self;
        DelayCounters { waiting, sent, refused, full: 0, foreign }
    }

    /// Stores a frame from the device. If there is no room, returns a refusal to send back at once.
    /// A frame without the nonce is not the data plane's, so it is only counted.
    // Differs from OpenBSD: linux.md, "Delayed packets"
    pub fn enqueue(&mut self, frame: &[u8]) -> Option<Vec<u8>> {
        let Some((due, frame)) = returned_frame(frame, self.nonce) else {
            self.foreign += 1;
            return None;
        };
        if self.held.len() >= self.limit || self.bytes + frame.len() > self.limit * SHARE {
            self.refused += 1;
            return Some(refusal(frame));
        }
        self.bytes += frame.len();
        self.arrived += 1;
        self.held.push(Reverse(DelayedFrame { due, order: self.arrived, frame }));
        None
    }

    /// Takes the next frame that is due at `now`, in nanoseconds of the boot clock.
    pub fn next(&mut self, now: u64) -> Option<Vec<u8>> {
        self.held.peek().filter(|Reverse(next)| next.due <= now)?;
        let Reverse(next) = self.held.pop()?;
        self.bytes -= next.frame.len();
        self.sent += 1;
        Some(next.frame)
    }

    /// Returns the time until the next frame is due, or `None` if no frame waits.
    pub fn until_next(&self, now: u64) -> Option<Duration> {
        let Reverse(next) = self.held.peek()?;
        Some(Duration::from_nanos(next.due.saturating_sub(now)))
    }
}

/// Converts a frame to the form in which it is returned, with its departure time. Returns `None` if
/// the frame is not the data plane's.
fn returned_frame(frame: &[u8], nonce: u64) -> Option<(u64, Vec<u8>)> {
    let (label, rest) = Delayed::read_from_prefix(frame).ok()?;
    let (link, packet) = rest.split_at_checked(label.link_header.into())?;
    if label.nonce != nonce {
        return None;
    }
    let mut header = [0; ETHERNET];
    match link.len() {
        ETHERNET => header.copy_from_slice(link),
        0 => header[ETHERNET - 2..].copy_from_slice(&ethertype(packet)?),
        _ => return None,
    }
    let label = Delayed { order: delayed_order::SEND, ..label };
    Some((label.due, [&header, label.as_bytes(), packet].concat()))
}

/// Returns the EtherType of an IP packet, in network byte order.
fn ethertype(packet: &[u8]) -> Option<[u8; 2]> {
    match packet.first()? >> 4 {
        4 => Some([0x08, 0x00]),
        6 => Some([0x86, 0xdd]),
        _ => None,
    }
}

/// Makes the refusal that is returned in place of a dropped frame.
fn refusal(mut frame: Vec<u8>) -> Vec<u8> {
    let order = ETHERNET + std::mem::offset_of!(Delayed, order);
    frame[order] = delayed_order::REFUSED;
    frame.truncate(ETHERNET + size_of::<Delayed>() + TOKEN);
    frame
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINK: [u8; ETHERNET] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 8, 0];

    const NONCE: u64 = 0x0706_0504_0302_0100;

    fn label(due: u64, order: u8) -> Delayed {
        Delayed { nonce: NONCE, ifindex: 3, due, order, link_header: 14, ..Delayed::default() }
    }

    /// Returns a frame as the device delivers it. All bytes of its packet are `byte`.
    fn frame(due: u64, byte: u8) -> Vec<u8> {
        [label(due, delayed_order::HOLD).as_bytes(), &LINK, &[byte; 100]].concat()
    }

    fn back(due: u64, byte: u8) -> Vec<u8> {
        [&LINK, label(due, delayed_order::SEND).as_bytes(), &[byte; 100]].concat()
    }

    #[test]
    fn frames_leave_by_due_time_and_then_by_arrival() {
        let mut delays = Delays::new(10, NONCE);
        for (due, byte) in [(30, 1), (20, 2), (30, 3), (10, 4), (20, 5)] {
            assert_eq!(delays.enqueue(&frame(due, byte)), None);
        }
        assert_eq!(delays.until_next(4), Some(Duration::from_nanos(6)));
        assert_eq!(delays.next(9), None);
        let left: Vec<_> = std::iter::from_fn(|| delays.next(29)).collect();
        assert_eq!(left, [back(10, 4), back(20, 2), back(20, 5)]);
        assert_eq!(delays.counters(), DelayCounters { waiting: 2, sent: 3, ..Default::default() });
        let left: Vec<_> = std::iter::from_fn(|| delays.next(30)).collect();
        assert_eq!(left, [back(30, 1), back(30, 3)]);
        assert_eq!(delays.until_next(30), None);
    }

    #[test]
    fn frames_beyond_the_limit_are_refused() {
        let mut delays = Delays::new(2, NONCE);
        assert_eq!(delays.enqueue(&frame(1, 1)), None);
        assert_eq!(delays.enqueue(&frame(1, 2)), None);
        let refused = delays.enqueue(&frame(1, 3)).unwrap();
        let word = [&LINK, label(1, delayed_order::REFUSED).as_bytes(), &[3; TOKEN]].concat();
        assert_eq!(refused, word);
        assert_eq!(delays.next(1), Some(back(1, 1)));
        assert_eq!(delays.enqueue(&frame(1, 4)), None);
        assert_eq!(
            delays.counters(),
            DelayCounters { waiting: 2, sent: 1, refused: 1, ..Default::default() }
        );
        delays.configure(3);
        let long = [label(1, delayed_order::HOLD).as_bytes(), &LINK, &[0; 3 * SHARE]].concat();
        assert!(delays.enqueue(&long).is_some(), "bytes");
        assert_eq!(delays.enqueue(&frame(1, 5)), None);
    }

    #[test]
    fn a_packet_without_a_link_header_gets_one() {
        let mut delays = Delays::new(1, NONCE);
        let bare = Delayed { link_header: 0, ..label(1, delayed_order::HOLD) };
        assert_eq!(delays.enqueue(&[bare.as_bytes(), &[0x60; 40]].concat()), None);
        let header = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x86, 0xdd];
        let label = Delayed { order: delayed_order::SEND, ..bare };
        assert_eq!(delays.next(1), Some([&header, label.as_bytes(), &[0x60; 40]].concat()));
    }

    #[test]
    fn frames_without_the_nonce_are_counted_and_do_nothing() {
        let mut delays = Delays::new(1, NONCE);
        let sound = frame(1, 1);
        for length in 0..size_of::<Delayed>() + ETHERNET {
            assert_eq!(delays.enqueue(&sound[..length]), None, "{length} bytes");
        }
        // flip one bit in each byte of the nonce
        for byte in 0..size_of::<u64>() {
            let mut other = sound.clone();
            other[byte] ^= 1 << byte;
            assert_eq!(delays.enqueue(&other), None);
        }
        let foreign = (size_of::<Delayed>() + ETHERNET + 8) as u64;
        assert_eq!(delays.counters(), DelayCounters { foreign, ..Default::default() });
        delays.enqueue(&sound);
        assert_eq!(delays.counters().waiting, 1);
    }
}
