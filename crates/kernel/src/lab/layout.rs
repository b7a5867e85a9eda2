//! The structs of bpf/lab/lab.h.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// What a tag begins with, in the machine's own byte order.
pub const MAGIC: u16 = 0x5046;
/// Magic, serial number, time.
pub const TAG_BYTES: usize = 18;
/// Where the number of the trial stands in a serial number.
pub const TRIAL_SHIFT: u32 = 48;
/// Ethernet, IPv6, 40 bytes of extension headers and TCP header, rounded up.
pub const HEADER_BYTES: usize = 120;
/// Templates there may be.
pub const TEMPLATES: usize = 8;
/// Frames after which their order begins again.
pub const PATTERN: usize = 64;
/// Fields that may vary: source, destination, their ports.
pub const PLACES: usize = 4;
/// Values that lists have together.
pub const VALUES: u32 = 1_048_576;
/// Buckets an octave.
pub const LINEAR: usize = 16;
/// Buckets of a histogram.
pub const BUCKETS: usize = 64 * LINEAR;

/// Which headers a frame has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum Kind {
    /// UDP over IPv4
    Udp4,
    /// TCP over IPv4
    Tcp4,
    /// UDP over IPv6
    Udp6,
    /// TCP over IPv6
    Tcp6,
}

/// How a field varies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum How {
    /// as in the template
    Fixed,
    /// `first + serial / every % count`
    Counted,
    /// `first` and something random below `count`
    Drawn,
    /// the value at such a place of the list
    Listed,
    /// one of the list at random
    ListedDrawn,
}

/// A field that varies; of an address the last 32 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Field {
    how: u32,
    first: u32,
    count: u32,
    every: u32,
}

impl Field {
    /// As in the template.
    pub const FIXED: Field = Field { how: How::Fixed as u32, first: 0, count: 1, every: 1 };

    /// One that takes `count` values from `first` on, the next after `every` frames.
    pub fn new(how: How, first: u32, count: u32, every: u32) -> Field {
        Field { how: how as u32, first, count: count.max(1), every: every.max(1) }
    }

    /// How many values it takes.
    pub fn values(&self) -> u64 {
        self.count.into()
    }
}

impl Field {
    /// The value of frame `serial`, as the program in the kernel finds it.
    pub fn value(&self, fixed: u32, serial: u64, random: &mut u64, values: &[u32]) -> u32 {
        if self.how == How::Fixed as u32 {
            return fixed;
        }
        let is_drawn = self.how == How::Drawn as u32 || self.how == How::ListedDrawn as u32;
        let offset = match is_drawn {
            true => draw(random, self.count),
            false => serial as u32 / self.every % self.count,
        };
        let place = self.first.wrapping_add(offset);
        if self.how == How::Counted as u32 || self.how == How::Drawn as u32 {
            return place;
        }
        values.get(place as usize).copied().unwrap_or(fixed)
    }
}

/// xorshift64*, and what of it is below `count`.
fn draw(random: &mut u64, count: u32) -> u32 {
    let mut x = *random;
    x ^= x >> 12;
    x ^= x << 25;
    x ^= x >> 27;
    *random = x;
    let high = x.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 32;
    ((high * u64::from(count)) >> 32) as u32
}

/// A frame as it is before its fields vary.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Template {
    kind: u32,
    length: u32,
    extension: u32,
    pad: u32,
    network_sum: u32,
    transport_sum: u32,
    headers: [u8; HEADER_BYTES],
}

impl Template {
    /// A template of frames of `length` bytes that begin with `headers`, `extension` bytes of which
    /// (0, 8, 24 or 40) are extension headers of IPv6. The sums are those of the 16-bit words, as
    /// the machine reads them, that checksums cover and that do not vary.
    pub fn new(
        kind: Kind,
        length: u32,
        extension: u32,
        headers: &[u8],
        sums: [u32; 2],
    ) -> Template {
        let mut bytes = [0; HEADER_BYTES];
        let known = headers.len().min(HEADER_BYTES);
        bytes[..known].copy_from_slice(&headers[..known]);
        let [network_sum, transport_sum] = sums;
        let kind = kind as u32;
        Template { kind, length, extension, pad: 0, network_sum, transport_sum, headers: bytes }
    }
}

/// What the generator is to do.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Order {
    /// Frames to send, those that are skipped among them.
    pub slots: u64,
    /// From one to the next in 1/1024 ns; 0 is as fast as it goes.
    pub gap: u64,
    /// The slot from which on the next gap holds; `slots` if none.
    pub turn: u64,
    /// That gap.
    pub second_gap: u64,
    /// Nanoseconds after its time from which a frame is late.
    pub grace: u64,
    /// Nanoseconds after its time from which it is not sent any more.
    pub patience: u64,
    /// Interface to send by, in the network namespace the generator runs in.
    pub ifindex: u32,
    /// Number of the trial, of which 16 bits count.
    pub trial: u32,
    /// How much of the pattern is used.
    pub pattern_length: u32,
    /// Always 0.
    pub pad: u32,
    /// Source, destination, source port, destination port.
    pub fields: [Field; PLACES],
    /// Numbers of templates, in turn.
    pub pattern: [u8; PATTERN],
}

impl Order {
    /// When a slot is due, in nanoseconds after the first one.
    pub fn due(&self, slot: u64) -> u64 {
        let first = slot.min(self.turn);
        (first * self.gap + (slot - first) * self.second_gap) >> 10
    }
}

/// What the generator did.
#[derive(Debug, Clone, Copy, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Progress {
    /// The next slot.
    pub slot: u64,
    /// Frames sent.
    pub sent: u64,
    /// Those that were late.
    pub late: u64,
    /// Slots without a frame, because there was no catching up.
    pub skipped: u64,
    /// Runs in which it was not time.
    pub idle: u64,
    /// Frames that could not be made.
    pub failed: u64,
    /// When the first slot was due, by the monotonic clock.
    pub start: u64,
    /// When the last frame went.
    pub last: u64,
    /// How late the worst was, in nanoseconds.
    pub worst: u64,
    /// What the next random value is made of.
    pub random: u64,
}

/// What the sink counted.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Counts {
    /// Frames of this trial, duplicates among them.
    pub frames: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Frames that had come before.
    pub duplicates: u64,
    /// Frames that others had overtaken.
    pub reordered: u64,
    /// Those of them so late that nobody knows whether they are duplicates.
    pub ancient: u64,
    /// Frames of other trials.
    pub strays: u64,
    /// When the first came, by the monotonic clock.
    pub first: u64,
    /// When the last came.
    pub last: u64,
    /// Sum of all latencies, in nanoseconds.
    pub sum: u64,
    /// The longest of them.
    pub longest: u64,
    /// Histogram; see [`Counts::bounds`].
    pub buckets: [u64; BUCKETS],
}

impl Counts {
    /// What a bucket counts: from the first value to before the second.
    pub fn bounds(bucket: usize) -> (u64, u64) {
        let low = |bucket: usize| match bucket / LINEAR {
            0 => bucket as u64,
            octave => ((bucket % LINEAR + LINEAR) as u64) << (octave - 1),
        };
        (low(bucket), low(bucket + 1))
    }

    /// Adds what another CPU counted.
    pub(super) fn add(&mut self, other: &Counts) {
        if other.frames > 0 {
            self.first = if self.frames == 0 { other.first } else { self.first.min(other.first) };
        }
        self.last = self.last.max(other.last);
        self.longest = self.longest.max(other.longest);
        self.frames += other.frames;
        self.bytes += other.bytes;
        self.duplicates += other.duplicates;
        self.reordered += other.reordered;
        self.ancient += other.ancient;
        self.strays += other.strays;
        self.sum += other.sum;
        for (sum, count) in self.buckets.iter_mut().zip(&other.buckets) {
            *sum += count;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_vary_as_they_are_told() {
        let mut random = 7;
        let mut all = |field: Field| -> Vec<u32> {
            (0..6).map(|serial| field.value(5, serial, &mut random, &[70, 80, 90])).collect()
        };
        assert_eq!(all(Field::FIXED), [5; 6]);
        assert_eq!(all(Field::new(How::Counted, 100, 2, 2)), [100, 100, 101, 101, 100, 100]);
        assert_eq!(all(Field::new(How::Listed, 1, 2, 1)), [80, 90, 80, 90, 80, 90]);
        assert!(all(Field::new(How::Drawn, 10, 3, 1)).iter().all(|value| (10..13).contains(value)));
        let drawn = all(Field::new(How::ListedDrawn, 0, 3, 1));
        assert!(drawn.iter().all(|value| [70, 80, 90].contains(value)));
    }

    #[test]
    fn buckets_follow_one_another() {
        assert_eq!(Counts::bounds(0), (0, 1));
        assert_eq!(Counts::bounds(15), (15, 16));
        assert_eq!(Counts::bounds(16), (16, 17));
        assert_eq!(Counts::bounds(31), (31, 32));
        assert_eq!(Counts::bounds(32), (32, 34));
        for bucket in 0..900 {
            let (low, high) = Counts::bounds(bucket);
            assert!(low < high);
            assert_eq!(Counts::bounds(bucket + 1).0, high);
            assert!((high - low) * LINEAR as u64 <= low.max(16));
        }
    }
}
