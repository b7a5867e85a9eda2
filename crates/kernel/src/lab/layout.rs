//! The structs of bpf/lab/lab.h.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// First word of a tag, in the machine's byte order.
pub const MAGIC: u16 = 0x5046;
/// Bytes of a tag: magic, serial number, time.
pub const TAG_BYTES: usize = 18;
/// Position of the trial's number in a serial number, in bits.
pub const TRIAL_SHIFT: u32 = 48;
/// Bytes of headers in a template: Ethernet, IPv6, 40 bytes of extension headers and TCP header,
/// rounded up.
pub const HEADER_BYTES: usize = 120;
/// Largest number of templates.
pub const TEMPLATES: usize = 8;
/// Largest length of a pattern; an order repeats its pattern.
pub const PATTERN: usize = 64;
/// Number of fields that may vary: source, destination, source port, destination port.
pub const PLACES: usize = 4;
/// Number of values of all lists together.
pub const VALUES: u32 = 1_048_576;
/// Number of buckets in an octave.
pub const LINEAR: usize = 16;
/// Number of buckets in a histogram.
pub const BUCKETS: usize = 64 * LINEAR;

/// Headers of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum FrameKind {
    /// UDP over IPv4
    Udp4,
    /// TCP over IPv4
    Tcp4,
    /// UDP over IPv6
    Udp6,
    /// TCP over IPv6
    Tcp6,
}

/// Rule by which a field varies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum Variation {
    /// the value of the template
    Fixed,
    /// `first + serial / every % count`
    Counted,
    /// `first` plus a random number below `count`
    Drawn,
    /// the list's value at the index that `Counted` gives
    Listed,
    /// the list's value at the index that `Drawn` gives
    ListedDrawn,
}

/// A field that varies; of an address, the last 32 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Field {
    how: u32,
    first: u32,
    count: u32,
    every: u32,
}

impl Field {
    /// A field that keeps the value of the template.
    pub const FIXED: Field = Field { how: Variation::Fixed as u32, first: 0, count: 1, every: 1 };

    /// Makes a field that takes `count` values from `first` on, and the next value after `every`
    /// frames.
    pub fn new(how: Variation, first: u32, count: u32, every: u32) -> Field {
        Field { how: how as u32, first, count: count.max(1), every: every.max(1) }
    }

    /// Returns the number of values that the field takes.
    pub fn values(&self) -> u64 {
        self.count.into()
    }
}

impl Field {
    /// Returns the value for frame `serial`, computed as the program in the kernel does.
    pub fn value(&self, fixed: u32, serial: u64, random: &mut u64, values: &[u32]) -> u32 {
        if self.how == Variation::Fixed as u32 {
            return fixed;
        }
        let is_drawn =
            self.how == Variation::Drawn as u32 || self.how == Variation::ListedDrawn as u32;
        let offset = match is_drawn {
            true => draw(random, self.count),
            false => serial as u32 / self.every % self.count,
        };
        let place = self.first.wrapping_add(offset);
        if self.how == Variation::Counted as u32 || self.how == Variation::Drawn as u32 {
            return place;
        }
        values.get(place as usize).copied().unwrap_or(fixed)
    }
}

/// Returns a random number below `count` (xorshift64*).
fn draw(random: &mut u64, count: u32) -> u32 {
    let mut x = *random;
    x ^= x >> 12;
    x ^= x << 25;
    x ^= x >> 27;
    *random = x;
    let high = x.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 32;
    ((high * u64::from(count)) >> 32) as u32
}

/// A frame before its fields vary.
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
    /// Makes a template of frames of `length` bytes that begin with `headers`. `extension` bytes of
    /// them (0, 8, 24 or 40) are extension headers of IPv6. `sums` are the sums of the 16-bit
    /// words, in the machine's byte order, that the network and transport checksums cover and that
    /// do not vary.
    pub fn new(
        kind: FrameKind,
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

/// An order for the generator.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Order {
    /// Number of slots: frames to send, and frames that are skipped.
    pub slots: u64,
    /// Time between two slots in 1/1024 ns; 0 for as fast as possible.
    pub gap: u64,
    /// First slot for which `second_gap` holds; `slots` if there is none.
    pub turn: u64,
    /// Time between two slots from `turn` on, in 1/1024 ns.
    pub second_gap: u64,
    /// Nanoseconds after its due time from which a frame counts as late.
    pub grace: u64,
    /// Nanoseconds after its due time from which a frame is skipped.
    pub patience: u64,
    /// Index of the interface to send by, in the network namespace where the generator runs.
    pub ifindex: u32,
    /// Number of the trial; the lowest 16 bits count.
    pub trial: u32,
    /// Number of entries of `pattern` in use.
    pub pattern_length: u32,
    /// Always 0.
    pub pad: u32,
    /// Source, destination, source port, destination port.
    pub fields: [Field; PLACES],
    /// Indexes of templates, used one after the other.
    pub pattern: [u8; PATTERN],
}

impl Order {
    /// Returns the due time of a slot, in nanoseconds after the first slot.
    pub fn due(&self, slot: u64) -> u64 {
        let first = slot.min(self.turn);
        (first * self.gap + (slot - first) * self.second_gap) >> 10
    }
}

/// Progress of an order.
#[derive(Debug, Clone, Copy, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Progress {
    /// Number of the next slot.
    pub slot: u64,
    /// Frames sent.
    pub sent: u64,
    /// Frames sent late.
    pub late: u64,
    /// Slots without a frame, because the generator was too late for them.
    pub skipped: u64,
    /// Runs before the next slot was due.
    pub idle: u64,
    /// Frames that could not be made.
    pub failed: u64,
    /// Due time of the first slot, in nanoseconds of the monotonic clock.
    pub start: u64,
    /// Time of the last frame, in nanoseconds of the monotonic clock.
    pub last: u64,
    /// Largest delay of a frame, in nanoseconds.
    pub worst: u64,
    /// State of the random generator.
    pub random: u64,
}

/// Counters of the sink.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Counts {
    /// Frames of this trial, including duplicates.
    pub frames: u64,
    /// Bytes of these frames.
    pub bytes: u64,
    /// Frames that were received before.
    pub duplicates: u64,
    /// Frames that later frames have overtaken.
    pub reordered: u64,
    /// Reordered frames too old for the window, so they may be duplicates.
    pub ancient: u64,
    /// Frames of other trials.
    pub strays: u64,
    /// Time of the first frame, in nanoseconds of the monotonic clock.
    pub first: u64,
    /// Time of the last frame, in nanoseconds of the monotonic clock.
    pub last: u64,
    /// Sum of all latencies, in nanoseconds.
    pub sum: u64,
    /// Longest latency, in nanoseconds.
    pub longest: u64,
    /// Histogram of latencies; [`Counts::bounds`] gives the limits of a bucket.
    pub buckets: [u64; BUCKETS],
}

impl Counts {
    /// Returns the limits of a bucket in nanoseconds: the first inclusive, the second exclusive.
    pub fn bounds(bucket: usize) -> (u64, u64) {
        let low = |bucket: usize| match bucket / LINEAR {
            0 => bucket as u64,
            octave => ((bucket % LINEAR + LINEAR) as u64) << (octave - 1),
        };
        (low(bucket), low(bucket + 1))
    }

    /// Adds the counters of another CPU.
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
    fn fields_vary_by_their_rule() {
        let mut random = 7;
        let mut all = |field: Field| -> Vec<u32> {
            (0..6).map(|serial| field.value(5, serial, &mut random, &[70, 80, 90])).collect()
        };
        assert_eq!(all(Field::FIXED), [5; 6]);
        assert_eq!(all(Field::new(Variation::Counted, 100, 2, 2)), [100, 100, 101, 101, 100, 100]);
        assert_eq!(all(Field::new(Variation::Listed, 1, 2, 1)), [80, 90, 80, 90, 80, 90]);
        assert!(
            all(Field::new(Variation::Drawn, 10, 3, 1))
                .iter()
                .all(|value| (10..13).contains(value))
        );
        let drawn = all(Field::new(Variation::ListedDrawn, 0, 3, 1));
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
