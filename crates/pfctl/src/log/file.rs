//! A pcap file that another process appends to, truncates and replaces (rotates).

use std::fs::File;
use std::io::{self, ErrorKind, Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// pcap's magic number for microseconds, read as little-endian, the order that skipstepd writes.
const MAGIC: u32 = 0xa1b2_c3d4;
/// Link type of pflog in the file header (`LINKTYPE_PFLOG`).
const LINK_TYPE: u32 = 117;
const FILE_HEADER: u64 = 24;
/// Bytes of a record's pcap header: seconds, microseconds, captured length, original length.
pub const RECORD_HEADER: usize = 16;
/// Bytes of the largest valid record, its header included. A larger record means that the file is
/// no log.
const LONGEST: usize = 1 << 18;

/// A reader that waits for records at the end of a log.
pub struct Follower {
    path: PathBuf,
    file: File,
    /// Offset of the next record in bytes; 0 before the file header was read.
    at: u64,
}

impl Follower {
    /// Opens a log at its beginning or behind its last record.
    ///
    /// # Errors
    /// Fails if the file cannot be read. Without `from_beginning`, also fails if it is no pflog
    /// file.
    pub fn open(path: &Path, from_beginning: bool) -> io::Result<Follower> {
        let mut follower = Follower { path: path.into(), file: File::open(path)?, at: 0 };
        if !from_beginning {
            while follower.here()?.is_some() {}
        }
        Ok(follower)
    }

    /// Returns the next record with its pcap header, or `None` if it is not complete yet. If the
    /// file was replaced or truncated, the next record is the first record of the new contents.
    ///
    /// # Errors
    /// Fails if the file cannot be read or is no pflog file.
    pub fn next(&mut self) -> io::Result<Option<Vec<u8>>> {
        if let Some(record) = self.here()? {
            return Ok(Some(record));
        }
        let there = match std::fs::metadata(&self.path) {
            // a rotation has moved the file, and the next file does not exist yet
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            there => there?,
        };
        let own = self.file.metadata()?;
        if (there.dev(), there.ino()) == (own.dev(), own.ino()) && there.len() >= self.at {
            return Ok(None);
        }
        *self = Follower::open(&self.path, true)?;
        self.here()
    }

    /// Returns the next record of the open file, if it is complete.
    fn here(&mut self) -> io::Result<Option<Vec<u8>>> {
        if self.at == 0 {
            let Some(header) = self.bytes(0, FILE_HEADER as usize)? else { return Ok(None) };
            if (number(&header, 0), number(&header, 20)) != (MAGIC, LINK_TYPE) {
                return Err(not_a_log());
            }
            self.at = FILE_HEADER;
        }
        let Some(header) = self.bytes(self.at, RECORD_HEADER)? else { return Ok(None) };
        let length = RECORD_HEADER + number(&header, 8) as usize;
        if length > LONGEST {
            return Err(not_a_log());
        }
        let record = self.bytes(self.at, length)?;
        if record.is_some() {
            self.at += length as u64;
        }
        Ok(record)
    }

    /// Reads `length` bytes at offset `at`; `None` if the file is shorter.
    fn bytes(&mut self, at: u64, length: usize) -> io::Result<Option<Vec<u8>>> {
        let mut bytes = vec![0; length];
        self.file.seek(SeekFrom::Start(at))?;
        match self.file.read_exact(&mut bytes) {
            Ok(()) => Ok(Some(bytes)),
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(None),
            Err(error) => Err(error),
        }
    }
}

fn not_a_log() -> io::Error {
    io::Error::new(ErrorKind::InvalidData, "is not a pflog file")
}

/// Returns the little-endian number at offset `at`, or 0 if the bytes end before it.
pub fn number(bytes: &[u8], at: usize) -> u32 {
    let four = bytes.get(at..at + 4).and_then(|four| four.try_into().ok());
    u32::from_le_bytes(four.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use std::fs::OpenOptions;
    use std::io::Write;

    use super::*;

    fn header() -> Vec<u8> {
        let mut header = vec![0; FILE_HEADER as usize];
        header[..4].copy_from_slice(&MAGIC.to_le_bytes());
        header[20..].copy_from_slice(&LINK_TYPE.to_le_bytes());
        header
    }

    fn record(text: &str) -> Vec<u8> {
        let mut record = vec![0; RECORD_HEADER];
        record[8..12].copy_from_slice(&(text.len() as u32).to_le_bytes());
        record.extend(text.bytes());
        record
    }

    fn append(path: &Path, bytes: &[u8]) {
        OpenOptions::new().append(true).open(path).unwrap().write_all(bytes).unwrap();
    }

    #[test]
    fn records_come_when_they_are_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pflog0");
        std::fs::write(&path, [header(), record("old")].concat()).unwrap();
        let mut all = Follower::open(&path, true).unwrap();
        assert_eq!(all.next().unwrap(), Some(record("old")));
        let mut new = Follower::open(&path, false).unwrap();
        assert_eq!(new.next().unwrap(), None);
        let (first, rest) = (&record("new")[..18], &record("new")[18..]);
        append(&path, first);
        assert_eq!(new.next().unwrap(), None);
        append(&path, rest);
        assert_eq!(new.next().unwrap(), Some(record("new")));
        assert_eq!(all.next().unwrap(), Some(record("new")));
    }

    #[test]
    fn a_log_that_was_rotated_or_cut_off_begins_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pflog0");
        std::fs::write(&path, [header(), record("first one")].concat()).unwrap();
        let mut follower = Follower::open(&path, false).unwrap();
        append(&path, &record("the last"));
        std::fs::rename(&path, folder.path().join("pflog0.1")).unwrap();
        assert_eq!(follower.next().unwrap(), Some(record("the last")));
        assert_eq!(follower.next().unwrap(), None, "the next one is not there yet");
        std::fs::write(&path, [header(), record("second")].concat()).unwrap();
        assert_eq!(follower.next().unwrap(), Some(record("second")));
        std::fs::write(&path, header()).unwrap();
        assert_eq!(follower.next().unwrap(), None);
        append(&path, &record("third"));
        assert_eq!(follower.next().unwrap(), Some(record("third")));
    }

    #[test]
    fn other_files_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("letter");
        std::fs::write(&path, "a letter to a friend, longer than the header").unwrap();
        assert!(Follower::open(&path, false).is_err());
        std::fs::write(&path, [header(), vec![0xff; RECORD_HEADER]].concat()).unwrap();
        assert!(Follower::open(&path, true).unwrap().next().is_err());
    }
}
