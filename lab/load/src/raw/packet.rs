//! The generator without BPF: it makes the same frames in this program, and sends them through a
//! packet socket. It is slower, but works with any kernel and interface, and with frames longer
//! than a page.

use std::io::ErrorKind;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use anyhow::Context;
use etherparse::checksum::Sum16BitWords;
use fwlab_net::family::Family;
use fwlab_net::transport::Transport;
use nix::libc;
use nix::time::{ClockId, clock_gettime};
use skipstep_kernel::lab::{Order, PACKET_BATCH, PacketSocket, Progress, TRIAL_SHIFT};

use super::frame::Flow;

/// A generator that sends through a packet socket.
pub(super) struct Packets {
    flow: Flow,
    /// The frames before fields vary, with the sums of their fixed bytes.
    frames: Vec<(Vec<u8>, [u32; 2])>,
    values: Vec<u32>,
    work: Mutex<Work>,
    progress: Mutex<Progress>,
    stop: AtomicBool,
}

/// The order of a trial, and the state of the random numbers.
#[derive(Clone, Copy)]
struct Work {
    order: Option<Order>,
    random: u64,
}

impl Packets {
    pub fn new(flow: &Flow, frames: &[Vec<u8>], values: Vec<u32>) -> Packets {
        let mut packets = Packets {
            flow: *flow,
            frames: Vec::new(),
            values,
            work: Mutex::new(Work { order: None, random: 1 }),
            progress: Mutex::new(Progress::default()),
            stop: AtomicBool::new(false),
        };
        packets.set_frames(flow, frames);
        packets
    }

    pub fn set_frames(&mut self, flow: &Flow, frames: &[Vec<u8>]) {
        self.flow = *flow;
        self.frames = frames.iter().map(|frame| (frame.clone(), flow.sums(frame))).collect();
    }

    pub fn begin(&self, order: &Order, seed: u64) {
        *lock(&self.work) = Work { order: Some(*order), random: seed.max(1) };
        *lock(&self.progress) = Progress::default();
        self.stop.store(false, Ordering::Relaxed);
    }

    pub fn progress(&self) -> Progress {
        *lock(&self.progress)
    }

    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Sends the frames of the order, until it is done or [`Packets::stop`] is called.
    ///
    /// # Errors
    /// Fails if there is no order, or if the packet socket fails.
    pub fn run(&self) -> anyhow::Result<()> {
        let Work { order, mut random } = *lock(&self.work);
        let order = order.context("no order")?;
        let socket = PacketSocket::new(order.ifindex)?;
        let mut progress = Progress { start: now()?, ..Progress::default() };
        let mut batch: Vec<Vec<u8>> = Vec::with_capacity(PACKET_BATCH);
        while progress.slot < order.slots && !self.stop.load(Ordering::Relaxed) {
            let time = now()?;
            while batch.len() < PACKET_BATCH
                && progress.slot < order.slots
                && let Some(due) = next_slot(&order, &mut progress, time)
            {
                batch.push(self.frame(&order, progress.sent, due, &mut random));
                progress.slot += 1;
                progress.sent += 1;
            }
            if batch.is_empty() {
                std::hint::spin_loop();
                continue;
            }
            self.send(&socket, &mut batch)?;
            progress.last = time;
            *lock(&self.progress) = progress;
        }
        *lock(&self.progress) = progress;
        Ok(())
    }

    /// Sends all frames of a batch. Retries while the interface's queue is full.
    fn send(&self, socket: &PacketSocket, batch: &mut Vec<Vec<u8>>) -> anyhow::Result<()> {
        while !batch.is_empty() && !self.stop.load(Ordering::Relaxed) {
            match socket.send(batch) {
                Ok(sent) => {
                    batch.drain(..sent);
                }
                Err(error) if error.raw_os_error() == Some(libc::ENOBUFS) => {}
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error).context("packet socket: send"),
            }
        }
        batch.clear();
        Ok(())
    }

    /// Returns frame number `serial`, as the program in the kernel makes it.
    fn frame(&self, order: &Order, serial: u64, due: u64, random: &mut u64) -> Vec<u8> {
        let turn = (serial % u64::from(order.pattern_length.max(1))) as usize;
        let (template, [network_sum, transport_sum]) =
            &self.frames[usize::from(order.pattern[turn])];
        let mut frame = template.clone();
        let (transport, tag) = self.flow.offsets();
        let is_v4 = self.flow.family() == Family::V4;
        let [source, destination] = if is_v4 { [26, 30] } else { [34, 50] };
        let word = |at: usize| {
            u32::from_be_bytes([template[at], template[at + 1], template[at + 2], template[at + 3]])
        };
        let [from, to] = [source, destination].map(word);
        let ports = word(transport);
        let mut value =
            |place: usize, fixed| order.fields[place].value(fixed, serial, random, &self.values);
        let from = value(0, from).to_be_bytes();
        let to = value(1, to).to_be_bytes();
        let ports = (value(2, ports >> 16) << 16 | value(3, ports & 0xffff) & 0xffff).to_be_bytes();
        let serial = (serial | u64::from(order.trial) << TRIAL_SHIFT).to_ne_bytes();
        frame[source..source + 4].copy_from_slice(&from);
        frame[destination..destination + 4].copy_from_slice(&to);
        frame[transport..transport + 4].copy_from_slice(&ports);
        frame[tag + 2..tag + 10].copy_from_slice(&serial);
        frame[tag + 10..tag + 18].copy_from_slice(&due.to_ne_bytes());

        let mut addresses = Sum16BitWords::new().add_4bytes(from).add_4bytes(to);
        if is_v4 {
            let checksum = addresses.add_4bytes(network_sum.to_ne_bytes()).ones_complement();
            frame[24..26].copy_from_slice(&checksum.to_ne_bytes());
        }
        let sum = addresses
            .add_4bytes(transport_sum.to_ne_bytes())
            .add_4bytes(ports)
            .add_8bytes(serial)
            .add_8bytes(due.to_ne_bytes());
        let (at, checksum) = match self.flow.transport {
            Transport::Udp => (transport + 6, sum.to_ones_complement_with_no_zero()),
            Transport::Tcp => (transport + 16, sum.ones_complement()),
        };
        frame[at..at + 2].copy_from_slice(&checksum.to_ne_bytes());
        frame
    }
}

/// Returns the time at which the next frame is due, after it has skipped frames that are too late.
/// None if the next frame is not due yet, or if no frame is left. The program in the kernel does
/// the same.
fn next_slot(order: &Order, progress: &mut Progress, now: u64) -> Option<u64> {
    if order.gap == 0 {
        return Some(now);
    }
    let mut due = progress.start + order.due(progress.slot);
    let mut behind = now.checked_sub(due)?;
    if behind > order.patience {
        // skips no slot beyond the change of the rate, because slots after it have another length
        let (gap, end) = match progress.slot < order.turn {
            true => (order.gap, order.turn),
            false => (order.second_gap, order.slots),
        };
        let missed = ((behind << 10) / gap).min(end - progress.slot);
        progress.skipped += missed;
        progress.slot += missed;
        if progress.slot >= order.slots || (missed > 0 && progress.slot == order.turn) {
            return None;
        }
        due = progress.start + order.due(progress.slot);
        behind = now.saturating_sub(due);
    }
    progress.late += u64::from(behind > order.grace);
    progress.worst = progress.worst.max(behind);
    Some(due)
}

/// Returns the time of the sink's clock, `CLOCK_MONOTONIC`, in nanoseconds.
fn now() -> anyhow::Result<u64> {
    let time = clock_gettime(ClockId::CLOCK_MONOTONIC).context("monotonic clock")?;
    Ok(time.tv_sec() as u64 * 1_000_000_000 + time.tv_nsec() as u64)
}

/// Locks a mutex. No thread panics while it holds one of these.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use fwlab_net::topology::End;

    use super::*;
    use crate::raw::extension::Extension;
    use proptest::prelude::*;
    use skipstep_kernel::lab::{Field, PATTERN, Variation};
    use skipstep_wire::checksum;

    fn flow(transport: Transport, family: Family) -> Flow {
        Flow {
            transport,
            extension: if family == Family::V6 { Extension::Chain } else { Extension::None },
            links: [[2; 6]; 2],
            addresses: [End::Client, End::Server].map(|end| end.address(family)),
            ports: [1024, 9],
        }
    }

    /// Makes a single frame, and returns it with the checksum of its transport header.
    fn made(flow: &Flow, size: usize, serial: u64, due: u64, ports: [u32; 2]) -> (Vec<u8>, u16) {
        let packets = Packets::new(flow, &[flow.frame(size).unwrap()], Vec::new());
        let mut order = order(1, 0);
        for (place, first) in ports.into_iter().enumerate() {
            order.fields[2 + place] = Field::new(Variation::Counted, first, 1, 1);
        }
        let frame = packets.frame(&order, serial, due, &mut 1);
        let at = flow.offsets().0 + if flow.transport == Transport::Udp { 6 } else { 16 };
        let checksum = u16::from_be_bytes([frame[at], frame[at + 1]]);
        (frame, checksum)
    }

    /// Returns what a receiver computes from the frame itself: zero if the checksum is correct.
    fn received(flow: &Flow, frame: &[u8]) -> u16 {
        let [source, destination] = flow.addresses;
        let protocol = if flow.transport == Transport::Udp { 17 } else { 6 };
        checksum::transport(source, destination, protocol, &frame[flow.offsets().0..])
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn checksums_are_right(
            serial in 0u64..1 << 48,
            due: u64,
            ports in [1u32..65_536, 1u32..65_536],
            longer in 0usize..1400,
        ) {
            for transport in [Transport::Udp, Transport::Tcp] {
                for family in [Family::V4, Family::V6] {
                    let flow = flow(transport, family);
                    let size = flow.smallest() + longer;
                    let (frame, _) = made(&flow, size, serial, due, ports);
                    prop_assert_eq!(received(&flow, &frame), 0);
                    // fills the time so that the sum is all ones without a checksum
                    let even = due & !0xffff;
                    let (_, missing) = made(&flow, size, serial, even, ports);
                    let fill = u64::from(u16::from_be(missing));
                    let (frame, none) = made(&flow, size, serial, even | fill, ports);
                    prop_assert_eq!(received(&flow, &frame), 0);
                    prop_assert_eq!(none, if transport == Transport::Udp { 0xffff } else { 0 });
                }
            }
        }
    }

    fn order(slots: u64, gap: u64) -> Order {
        Order {
            slots,
            gap,
            turn: slots,
            second_gap: gap,
            grace: 10,
            patience: 1000,
            ifindex: 1,
            trial: 1,
            pattern_length: 1,
            pad: 0,
            fields: [Field::FIXED; 4],
            pattern: [0; PATTERN],
        }
    }

    #[test]
    fn slots_have_their_time_and_what_cannot_be_caught_up_with_is_skipped() {
        let order = order(100, 100 << 10);
        let mut progress = Progress { start: 5000, ..Progress::default() };
        assert_eq!(next_slot(&order, &mut progress, 4999), None);
        assert_eq!(next_slot(&order, &mut progress, 5005), Some(5000));
        assert_eq!((progress.late, progress.worst), (0, 5));
        progress.slot = 1;
        assert_eq!(next_slot(&order, &mut progress, 5000), None);
        assert_eq!(next_slot(&order, &mut progress, 5600), Some(5100), "late, but caught up with");
        assert_eq!((progress.late, progress.worst, progress.skipped), (1, 500, 0));
        assert_eq!(next_slot(&order, &mut progress, 7150), Some(7100));
        assert_eq!((progress.slot, progress.skipped), (21, 20));
        assert_eq!(next_slot(&order, &mut progress, 99_000), None);
        assert_eq!((progress.slot, progress.skipped), (100, 99));
    }

    #[test]
    fn the_rate_changes_at_its_slot_and_nothing_is_skipped_across_it() {
        let order = Order { turn: 10, second_gap: 400 << 10, ..order(20, 100 << 10) };
        assert_eq!([9, 10, 11, 19].map(|slot| order.due(slot)), [900, 1000, 1400, 4600]);
        let mut progress = Progress { start: 5000, slot: 5, ..Progress::default() };
        // ten slots late by the first gap, with five left; the slots after them have another length
        assert_eq!(next_slot(&order, &mut progress, 6600), None);
        assert_eq!((progress.slot, progress.skipped), (10, 5));
        assert_eq!(next_slot(&order, &mut progress, 6600), Some(6000), "patience is 1000");
        assert_eq!(next_slot(&order, &mut progress, 7300), Some(7200));
        assert_eq!((progress.slot, progress.skipped), (13, 8));
        assert_eq!(next_slot(&order, &mut progress, 7300), Some(7200));
    }
}
