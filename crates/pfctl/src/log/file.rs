//! A pcap file that another process appends to, truncates and replaces (rotates).

use std::fs::File;
use std::io::{self, ErrorKind, Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use skipstep_wire::pcap::{FileHeader, MAX_CAPTURED, PFLOG, RecordHeader};

/// A reader that waits for records at the end of a log.
pub struct Follower {
    path: PathBuf,
    file: File,
    /// Offset of the next record in bytes.
    at: u64,
    /// The header of the file, once it was read.
    header: Option<FileHeader>,
}

impl Follower {
    /// Opens a log at its beginning or behind its last record.
    ///
    /// # Errors
    /// Fails if the file cannot be read. Without `from_beginning`, also fails if it is no pflog
    /// file.
    pub fn open(path: &Path, from_beginning: bool) -> io::Result<Follower> {
        let mut follower =
            Follower { path: path.into(), file: File::open(path)?, at: 0, header: None };
        if !from_beginning {
            while follower.here()?.is_some() {}
        }
        Ok(follower)
    }

    /// Returns the next record, or `None` if it is not complete yet. If the file was replaced or
    /// truncated, the next record is the first record of the new contents.
    ///
    /// # Errors
    /// Fails if the file cannot be read or is no pflog file.
    pub fn next_record(&mut self) -> io::Result<Option<(RecordHeader, Vec<u8>)>> {
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
        // the writer has the new file by now, so the old one is complete
        if let Some(last) = self.here()? {
            return Ok(Some(last));
        }
        *self = Follower::open(&self.path, true)?;
        self.here()
    }

    /// Returns the next record of the open file, if it is complete.
    fn here(&mut self) -> io::Result<Option<(RecordHeader, Vec<u8>)>> {
        let Some(file) = self.file_header()? else { return Ok(None) };
        let header = self.bytes(self.at, RecordHeader::BYTES)?;
        let Some(header) = header.and_then(|bytes| file.record(&bytes)) else { return Ok(None) };
        let length = header.captured as usize;
        if length > MAX_CAPTURED {
            return Err(not_a_log());
        }
        let begin = self.at + RecordHeader::BYTES as u64;
        let record = self.bytes(begin, length)?;
        if record.is_some() {
            self.at = begin + length as u64;
        }
        Ok(record.map(|record| (header, record)))
    }

    /// Returns the header of the file, or `None` if it is not complete yet.
    fn file_header(&mut self) -> io::Result<Option<FileHeader>> {
        if self.header.is_none() {
            let Some(bytes) = self.bytes(0, FileHeader::BYTES)? else { return Ok(None) };
            let is_log = |header: &FileHeader| header.link == PFLOG;
            self.header = Some(FileHeader::parse(&bytes).filter(is_log).ok_or_else(not_a_log)?);
            self.at = FileHeader::BYTES as u64;
        }
        Ok(self.header)
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

#[cfg(test)]
mod tests {
    use std::fs::OpenOptions;
    use std::io::Write;
    use std::time::Duration;

    use super::*;

    fn header() -> Vec<u8> {
        FileHeader::new(PFLOG, 260).to_bytes().to_vec()
    }

    fn record_header(text: &str) -> RecordHeader {
        let length = text.len() as u32;
        RecordHeader { time: Duration::ZERO, captured: length, length }
    }

    fn record(text: &str) -> Vec<u8> {
        [&record_header(text).to_bytes(), text.as_bytes()].concat()
    }

    /// Returns the text of the next record.
    fn next(follower: &mut Follower) -> Option<String> {
        let (header, bytes) = follower.next_record().unwrap()?;
        let text = String::from_utf8(bytes).unwrap();
        assert_eq!(header, record_header(&text));
        Some(text)
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
        assert_eq!(next(&mut all).as_deref(), Some("old"));
        let mut new = Follower::open(&path, false).unwrap();
        assert_eq!(next(&mut new), None);
        let (first, rest) = (&record("new")[..18], &record("new")[18..]);
        append(&path, first);
        assert_eq!(next(&mut new), None);
        append(&path, rest);
        assert_eq!(next(&mut new).as_deref(), Some("new"));
        assert_eq!(next(&mut all).as_deref(), Some("new"));
    }

    #[test]
    fn a_log_that_was_rotated_or_cut_off_begins_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pflog0");
        std::fs::write(&path, [header(), record("first one")].concat()).unwrap();
        let mut follower = Follower::open(&path, false).unwrap();
        append(&path, &record("the last"));
        std::fs::rename(&path, folder.path().join("pflog0.1")).unwrap();
        assert_eq!(next(&mut follower).as_deref(), Some("the last"));
        assert_eq!(next(&mut follower), None, "the next one is not there yet");
        std::fs::write(&path, [header(), record("second")].concat()).unwrap();
        assert_eq!(next(&mut follower).as_deref(), Some("second"));
        std::fs::write(&path, header()).unwrap();
        assert_eq!(next(&mut follower), None);
        append(&path, &record("third"));
        assert_eq!(next(&mut follower).as_deref(), Some("third"));
    }

    #[test]
    fn other_files_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("letter");
        std::fs::write(&path, "a letter to a friend, longer than the header").unwrap();
        assert!(Follower::open(&path, false).is_err());
        std::fs::write(&path, [header(), vec![0xff; RecordHeader::BYTES]].concat()).unwrap();
        assert!(Follower::open(&path, true).unwrap().next_record().is_err());
    }
}
