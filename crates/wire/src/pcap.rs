//! Headers of pcap files, in either byte order, with microseconds or nanoseconds.
//! <https://www.tcpdump.org/manpages/pcap-savefile.5.txt>

use std::time::Duration;

const MICROSECONDS: u32 = 0xa1b2_c3d4;
const NANOSECONDS: u32 = 0xa1b2_3c4d;
/// First bytes of a pcapng file, which is another format.
pub const PCAPNG: [u8; 4] = [0x0a, 0x0d, 0x0d, 0x0a];

/// Link type of pf's log (`LINKTYPE_PFLOG`).
pub const PFLOG: u32 = 117;
/// Bytes of the pflog header, which precedes each packet of pf's log.
pub const PFLOG_HEADER: usize = 100;
/// Most bytes of a record without its header: libpcap's `MAXIMUM_SNAPLEN`.
pub const MAX_CAPTURED: usize = 262_144;

/// The header of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileHeader {
    /// True if numbers are big-endian.
    pub is_big_endian: bool,
    /// True if times have nanoseconds instead of microseconds.
    pub has_nanoseconds: bool,
    /// Most bytes of a record without its header.
    pub snaplen: u32,
    /// Link type (`LINKTYPE_…`). The upper half may have the length of the frame check sequence.
    pub link: u32,
}

impl FileHeader {
    /// Bytes of the header.
    pub const BYTES: usize = 24;

    /// Returns the header of a file that [`RecordHeader::to_bytes`] continues: little-endian, with
    /// microseconds.
    pub fn new(link: u32, snaplen: u32) -> Self {
        FileHeader { is_big_endian: false, has_nanoseconds: false, snaplen, link }
    }

    /// Parses the first bytes of a file. Returns `None` if they are too few, or of another format.
    pub fn parse(file: &[u8]) -> Option<Self> {
        let magic = u32::from_le_bytes(*file.first_chunk()?);
        let is_known = |magic| [MICROSECONDS, NANOSECONDS].contains(&magic);
        let is_big_endian = !is_known(magic);
        let magic = if is_big_endian { magic.swap_bytes() } else { magic };
        if !is_known(magic) {
            return None;
        }
        Some(FileHeader {
            is_big_endian,
            has_nanoseconds: magic == NANOSECONDS,
            snaplen: number(file, 16, is_big_endian)?,
            link: number(file, 20, is_big_endian)?,
        })
    }

    /// Returns the bytes of the header, little-endian, with microseconds in UTC, version 2.4.
    pub fn to_bytes(&self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[..4].copy_from_slice(&MICROSECONDS.to_le_bytes());
        bytes[4] = 2;
        bytes[6] = 4;
        bytes[16..20].copy_from_slice(&self.snaplen.to_le_bytes());
        bytes[20..].copy_from_slice(&self.link.to_le_bytes());
        bytes
    }

    /// Parses the header of the record at the beginning of `bytes`. Returns `None` if the bytes are
    /// too few.
    pub fn record(&self, bytes: &[u8]) -> Option<RecordHeader> {
        let number = |at| number(bytes, at, self.is_big_endian);
        let fraction = u64::from(number(4)?) * if self.has_nanoseconds { 1 } else { 1000 };
        Some(RecordHeader {
            time: Duration::from_secs(number(0)?.into()) + Duration::from_nanos(fraction),
            captured: number(8)?,
            length: number(12)?,
        })
    }
}

/// The header of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordHeader {
    /// Time of capture since 1970.
    pub time: Duration,
    /// Bytes that follow in the file.
    pub captured: u32,
    /// Bytes that the packet had.
    pub length: u32,
}

impl RecordHeader {
    /// Bytes of the header.
    pub const BYTES: usize = 16;

    /// Returns the bytes of the header for a file of [`FileHeader::new`]. Seconds beyond the year
    /// 2106 wrap.
    pub fn to_bytes(&self) -> [u8; Self::BYTES] {
        let seconds = self.time.as_secs() as u32;
        let words = [seconds, self.time.subsec_micros(), self.captured, self.length];
        let mut bytes = [0; Self::BYTES];
        for (place, word) in bytes.chunks_exact_mut(4).zip(words) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }
}

fn number(bytes: &[u8], at: usize, is_big_endian: bool) -> Option<u32> {
    let four = *bytes.get(at..)?.first_chunk()?;
    Some(if is_big_endian { u32::from_be_bytes(four) } else { u32::from_le_bytes(four) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_read_as_they_were_written() {
        let file = FileHeader::new(PFLOG, 260);
        assert_eq!(FileHeader::parse(&file.to_bytes()), Some(file));
        let time = Duration::new(1_700_000_000, 5_000);
        let record = RecordHeader { time, captured: 160, length: 1500 };
        assert_eq!(file.record(&record.to_bytes()), Some(record));
        assert_eq!(file.record(&record.to_bytes()[..15]), None);
    }

    #[test]
    fn both_byte_orders_and_fractions_are_read() {
        let mut bytes = FileHeader::new(1, 96).to_bytes();
        bytes[..4].copy_from_slice(&NANOSECONDS.to_be_bytes());
        bytes[16..].copy_from_slice(&[0, 0, 0, 96, 0, 0, 0, 1]);
        let file = FileHeader::parse(&bytes).unwrap();
        assert_eq!((file.is_big_endian, file.snaplen, file.link), (true, 96, 1));
        let record = [0, 0, 0, 1, 0, 0, 0, 7, 0, 0, 0, 2, 0, 0, 0, 3];
        let record = file.record(&record).unwrap();
        assert_eq!((record.time, record.captured, record.length), (Duration::new(1, 7), 2, 3));
    }

    #[test]
    fn other_formats_are_no_pcap() {
        for bytes in [&b""[..], b"a letter to a friend, longer than 24 bytes", &PCAPNG] {
            assert_eq!(FileHeader::parse(bytes), None);
        }
    }
}
