//! An append-only pcap file that consists of whole records after each write. If the disk takes part
//! of a record only, the part is removed. A part that a crash has left is removed when the file is
//! opened again. Records are written in batches.

use std::fs::{File, OpenOptions};
use std::io::{self, BufReader, ErrorKind, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;

use skipstep_wire::pcap::{FileHeader, PFLOG, PFLOG_HEADER as HEADER, RecordHeader};

/// Opens `path` for reading and appending. A missing file is created with mode 0600.
///
/// # Errors
/// Fails if the system refuses to open or create the file.
pub fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).append(true).create(true).mode(0o600).open(path)
}

/// An open log file, and records that wait to be written to it.
#[derive(Debug)]
pub struct LogFile {
    file: File,
    /// Length of all whole records in bytes, with the file header.
    length: u64,
    /// Most bytes of a packet: the snap length in the file's header, less the pflog header.
    snaplen: usize,
    /// Bytes of the waiting records, and the end of each record in these bytes.
    waiting: Vec<u8>,
    ends: Vec<usize>,
}

/// The error of a write, and the number of records that were lost.
#[derive(Debug)]
pub struct Loss {
    /// Error of the system.
    pub cause: io::Error,
    /// Number of records that are not in the file.
    pub records: u64,
}

impl LogFile {
    /// Makes a log of `file`, which [`open`] has opened. Writes the file header if the file is
    /// empty, and otherwise removes an incomplete record at the end.
    ///
    /// # Errors
    /// Fails if the file cannot be read or written. If it is no pflog file, the error is
    /// `InvalidData` and the file is unchanged.
    pub fn new(mut file: File, snaplen: usize) -> io::Result<LogFile> {
        let (length, snaplen) = if file.metadata()?.len() == 0 {
            file.write_all(&FileHeader::new(PFLOG, (HEADER + snaplen) as u32).to_bytes())?;
            (FileHeader::BYTES as u64, snaplen)
        } else {
            let snaplen = snaplen.min(check_header(&mut file)?);
            let length = whole_records(&file)?;
            file.set_len(length)?;
            (length, snaplen)
        };
        Ok(LogFile { file, length, snaplen, waiting: Vec::new(), ends: Vec::new() })
    }

    /// Returns the most bytes of a packet that a record can have.
    pub fn snaplen(&self) -> usize {
        self.snaplen
    }

    /// Adds a record to the waiting ones. `length` is the full length of the packet in bytes;
    /// `packet` has its first bytes.
    pub fn append(&mut self, time: Duration, header: &[u8; HEADER], packet: &[u8], length: u32) {
        let captured = (HEADER + packet.len()) as u32;
        let length = length.saturating_add(HEADER as u32);
        let waiting = &mut self.waiting;
        waiting.extend(RecordHeader { time, captured, length }.to_bytes());
        waiting.extend(header);
        waiting.extend(packet);
        self.ends.push(waiting.len());
    }

    /// Writes the waiting records, and returns their number.
    ///
    /// # Errors
    /// Fails if the system refuses to write, for instance because the disk is full. The file then
    /// ends with its last whole record.
    pub fn flush(&mut self) -> Result<u64, Loss> {
        let (written, result) = write_most(&mut self.file, &self.waiting);
        let whole = self.ends.partition_point(|end| *end <= written);
        self.length += whole.checked_sub(1).map_or(0, |last| self.ends[last] as u64);
        let lost = (self.ends.len() - whole) as u64;
        self.waiting.clear();
        self.ends.clear();
        result.map(|()| whole as u64).map_err(|cause| {
            // if this fails, too, the next opening of the file removes the incomplete record
            let _ = self.file.set_len(self.length);
            Loss { cause, records: lost }
        })
    }
}

/// Writes all bytes, or as many as the system accepts. Returns the number of written bytes.
fn write_most(file: &mut File, bytes: &[u8]) -> (usize, io::Result<()>) {
    let mut written = 0;
    while written < bytes.len() {
        match file.write(&bytes[written..]) {
            Ok(0) => return (written, Err(ErrorKind::WriteZero.into())),
            Ok(length) => written += length,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return (written, Err(error)),
        }
    }
    (written, Ok(()))
}

/// Checks the header of an existing file, and returns the most bytes of a packet.
fn check_header(file: &mut File) -> io::Result<usize> {
    let mut header = [0; FileHeader::BYTES];
    let foreign = || io::Error::new(io::ErrorKind::InvalidData, "is not a pflog file");
    file.seek(SeekFrom::Start(0))?;
    file.read_exact(&mut header).map_err(|_| foreign())?;
    let header = FileHeader::parse(&header).filter(is_own).ok_or_else(foreign)?;
    (header.snaplen as usize).checked_sub(HEADER).ok_or_else(foreign)
}

/// True for files that this program writes: others have another byte order or link type.
fn is_own(header: &FileHeader) -> bool {
    *header == FileHeader::new(PFLOG, header.snaplen)
}

/// Returns the length of the file up to the end of its last whole record, in bytes.
fn whole_records(file: &File) -> io::Result<u64> {
    let end = file.metadata()?.len();
    let own = FileHeader::new(PFLOG, 0);
    let mut reader = BufReader::new(file);
    let mut length = reader.seek(SeekFrom::Start(FileHeader::BYTES as u64))?;
    let mut header = [0; RecordHeader::BYTES];
    while reader.read_exact(&mut header).is_ok() {
        let captured = own.record(&header).map_or(0, |record| record.captured);
        let next = length + (RecordHeader::BYTES as u64) + u64::from(captured);
        if next > end {
            break;
        }
        reader.seek_relative(i64::from(captured))?;
        length = next;
    }
    Ok(length)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIME: Duration = Duration::new(1_700_000_000, 5_000);

    fn written(records: usize) -> (tempfile::TempDir, std::path::PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("pflog0");
        append(&path, records);
        (dir, path)
    }

    fn at(path: &Path, snaplen: usize) -> io::Result<LogFile> {
        LogFile::new(open(path)?, snaplen)
    }

    fn append(path: &Path, records: usize) {
        let mut log = at(path, 160).unwrap();
        for _ in 0..records {
            log.append(TIME, &[1; HEADER], &[2; 20], 1500);
        }
        assert_eq!(log.flush().unwrap(), records as u64);
    }

    #[test]
    fn records_are_appended_to_what_is_there() {
        let (_dir, path) = written(2);
        let before = std::fs::read(&path).unwrap();
        append(&path, 1);
        let after = std::fs::read(&path).unwrap();
        assert_eq!(before.len(), 24 + 2 * (16 + 120));
        assert_eq!(after.len(), 24 + 3 * (16 + 120));
        assert_eq!(after[..before.len()], before);
    }

    #[test]
    fn half_a_record_is_cut_off() {
        for cut in [1, 16, 100, 135] {
            let (_dir, path) = written(2);
            let whole = std::fs::metadata(&path).unwrap().len();
            File::options().write(true).open(&path).unwrap().set_len(whole - cut).unwrap();
            at(&path, 160).unwrap();
            assert_eq!(std::fs::metadata(&path).unwrap().len(), 24 + 16 + 120, "{cut} cut");
        }
    }

    #[test]
    fn another_file_stays_as_it_is() {
        let dir = tempfile::tempdir().unwrap();
        for text in ["x", "a letter to a friend, longer than the header of a pcap file"] {
            let path = dir.path().join("letter");
            std::fs::write(&path, text).unwrap();
            let error = at(&path, 160).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidData);
            assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
        }
    }

    #[test]
    fn the_snap_length_of_the_file_holds() {
        let (_dir, path) = written(0);
        assert_eq!(at(&path, 60).unwrap().snaplen(), 60);
        std::fs::remove_file(&path).unwrap();
        at(&path, 60).unwrap();
        assert_eq!(at(&path, 160).unwrap().snaplen(), 60);
    }

    #[test]
    fn a_full_disk_keeps_written_records() {
        // each write to this device fails with "no space left"
        let file = OpenOptions::new().append(true).open("/dev/full").unwrap();
        let (waiting, ends) = (Vec::new(), Vec::new());
        let mut log = LogFile { file, length: 24, snaplen: 160, waiting, ends };
        for _ in 0..3 {
            log.append(TIME, &[1; HEADER], &[2; 20], 1500);
        }
        assert_eq!(log.flush().unwrap_err().records, 3);
        assert_eq!(log.length, 24);
        assert!(log.waiting.is_empty(), "what is lost is not written later");
    }
}
