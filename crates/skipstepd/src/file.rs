//! A pcap file that records are appended to and that is whole after every write: a record that
//! does not fit on the disk is taken back, and one that a crash left half-written is cut off when
//! the file is opened again.

use std::fs::{File, OpenOptions};
use std::io::{self, BufReader, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;

use crate::pflog::{HEADER, LINK_TYPE};

/// pcap's magic number for microseconds.
const MAGIC: u32 = 0xa1b2_c3d4;
const FILE_HEADER: u64 = 24;
const RECORD_HEADER: usize = 16;

/// An open log file.
#[derive(Debug)]
pub struct LogFile {
    file: File,
    /// Bytes of whole records, the file's header included.
    length: u64,
    /// Bytes of packets that fit the snap length in the file's header.
    snaplen: usize,
}

impl LogFile {
    /// Opens `path` for appending, or creates it, readable by its owner only.
    ///
    /// # Errors
    /// Those of the system; `InvalidData` if something else than a pflog file is there, which
    /// then stays as it is.
    pub fn open(path: &Path, snaplen: usize) -> io::Result<LogFile> {
        let mut file =
            OpenOptions::new().read(true).append(true).create(true).mode(0o600).open(path)?;
        if file.metadata()?.len() == 0 {
            file.write_all(&file_header(snaplen))?;
            return Ok(LogFile { file, length: FILE_HEADER, snaplen });
        }
        let snaplen = snaplen.min(check_header(&mut file)?);
        let length = whole_records(&file)?;
        file.set_len(length)?;
        Ok(LogFile { file, length, snaplen })
    }

    /// Bytes of a packet that can be appended.
    pub fn snaplen(&self) -> usize {
        self.snaplen
    }

    /// Appends a record: when, its pflog header, the packet's first bytes and its whole length.
    ///
    /// # Errors
    /// Those of the system, a full disk among them; the file is then as it was before.
    pub fn append(
        &mut self,
        time: Duration,
        header: &[u8; HEADER],
        packet: &[u8],
        length: u32,
    ) -> io::Result<()> {
        let mut record = Vec::with_capacity(RECORD_HEADER + HEADER + packet.len());
        record.extend((time.as_secs() as u32).to_le_bytes());
        record.extend(time.subsec_micros().to_le_bytes());
        record.extend(((HEADER + packet.len()) as u32).to_le_bytes());
        record.extend(length.saturating_add(HEADER as u32).to_le_bytes());
        record.extend(header);
        record.extend(packet);
        if let Err(error) = self.file.write_all(&record) {
            self.file.set_len(self.length)?;
            return Err(error);
        }
        self.length += record.len() as u64;
        Ok(())
    }
}

fn file_header(snaplen: usize) -> Vec<u8> {
    let mut header = MAGIC.to_le_bytes().to_vec();
    header.extend(2u16.to_le_bytes()); // version 2.4
    header.extend(4u16.to_le_bytes());
    header.extend([0; 8]); // UTC
    header.extend(((HEADER + snaplen) as u32).to_le_bytes());
    header.extend(LINK_TYPE.to_le_bytes());
    header
}

/// Reads the header of a file that is there already and returns its snap length.
fn check_header(file: &mut File) -> io::Result<usize> {
    let mut header = [0; FILE_HEADER as usize];
    let foreign = || io::Error::new(io::ErrorKind::InvalidData, "is not a pflog file");
    file.seek(SeekFrom::Start(0))?;
    file.read_exact(&mut header).map_err(|_| foreign())?;
    let number = |at: usize| u32::from_le_bytes(header[at..at + 4].try_into().expect("4 bytes"));
    let snaplen = (number(16) as usize).checked_sub(HEADER);
    match (number(0), number(20), snaplen) {
        (MAGIC, LINK_TYPE, Some(snaplen)) => Ok(snaplen),
        _ => Err(foreign()),
    }
}

/// Length of the file up to the end of its last whole record.
fn whole_records(file: &File) -> io::Result<u64> {
    let end = file.metadata()?.len();
    let mut reader = BufReader::new(file);
    let mut length = reader.seek(SeekFrom::Start(FILE_HEADER))?;
    let mut header = [0; RECORD_HEADER];
    while reader.read_exact(&mut header).is_ok() {
        let captured = u32::from_le_bytes(header[8..12].try_into().expect("4 bytes"));
        let next = length + RECORD_HEADER as u64 + u64::from(captured);
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
        let mut log = LogFile::open(&path, 160).unwrap();
        for _ in 0..records {
            log.append(TIME, &[1; HEADER], &[2; 20], 1500).unwrap();
        }
        (dir, path)
    }

    #[test]
    fn records_are_appended_to_what_is_there() {
        let (_dir, path) = written(2);
        let before = std::fs::read(&path).unwrap();
        LogFile::open(&path, 160).unwrap().append(TIME, &[1; HEADER], &[2; 20], 1500).unwrap();
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
            LogFile::open(&path, 160).unwrap();
            assert_eq!(std::fs::metadata(&path).unwrap().len(), 24 + 16 + 120, "{cut} cut");
        }
    }

    #[test]
    fn another_file_stays_as_it_is() {
        let dir = tempfile::tempdir().unwrap();
        for text in ["x", "a letter to a friend, longer than the header of a pcap file"] {
            let path = dir.path().join("letter");
            std::fs::write(&path, text).unwrap();
            let error = LogFile::open(&path, 160).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidData);
            assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
        }
    }

    #[test]
    fn the_snap_length_of_the_file_holds() {
        let (_dir, path) = written(0);
        assert_eq!(LogFile::open(&path, 60).unwrap().snaplen(), 60);
        std::fs::remove_file(&path).unwrap();
        LogFile::open(&path, 60).unwrap();
        assert_eq!(LogFile::open(&path, 160).unwrap().snaplen(), 60);
    }

    #[test]
    fn a_full_disk_takes_nothing_away() {
        // every write to this device fails with "no space left"
        let file = OpenOptions::new().append(true).open("/dev/full").unwrap();
        let mut log = LogFile { file, length: FILE_HEADER, snaplen: 160 };
        assert!(log.append(TIME, &[1; HEADER], &[2; 20], 1500).is_err());
        assert_eq!(log.length, FILE_HEADER);
    }
}
