//! The log files, one for each pflogN that rules log to. An error is reported once, and records
//! that are lost meanwhile are counted. After each flush, a file that failed is tried again.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use skipstep_abi::LogRecord;
use skipstep_kernel::clock::wall_time;

use crate::file::LogFile;
use crate::pflog::{self, Origin};

/// All log files of an instance.
#[derive(Debug)]
pub struct Logs {
    /// Path of the files without the number at the end.
    prefix: PathBuf,
    snaplen: usize,
    files: BTreeMap<u8, State>,
}

/// A log file.
#[derive(Debug, Default)]
struct State {
    /// The open file; `None` before the first record, and after an error.
    file: Option<LogFile>,
    /// Error since the last flush, if any.
    problem: Option<io::Error>,
    /// Number of records lost since the last successful write.
    lost: u64,
    /// Number of lost records when the loss was reported; 0 if it was not reported.
    reported: u64,
}

impl Logs {
    /// Makes logs at `prefix` followed by the number of the pflog interface. Each record has at
    /// most `snaplen` bytes of its packet. A file is opened when its first record is added.
    pub fn new(prefix: &Path, snaplen: usize) -> Logs {
        Logs { prefix: prefix.to_path_buf(), snaplen, files: BTreeMap::new() }
    }

    /// Adds a record to the waiting ones. If the record's file is not open, `open` opens the file
    /// of this number.
    pub fn add(
        &mut self,
        record: &LogRecord,
        origin: &Origin,
        open: impl FnOnce(u8) -> io::Result<File>,
    ) {
        let state = self.files.entry(record.log_to).or_default();
        if state.file.is_none() && state.problem.is_none() {
            match open(record.log_to).and_then(|file| LogFile::new(file, self.snaplen)) {
                Ok(file) => state.file = Some(file),
                Err(error) => state.problem = Some(error),
            }
        }
        let Some(file) = &mut state.file else {
            state.lost += 1;
            return;
        };
        let packet = pflog::packet(record, file.snaplen());
        let header = pflog::header(record, origin);
        file.append(wall_time(record.time), &header, packet, record.wirelen);
    }

    /// Writes the waiting records. Returns a message for each file that has begun to lose records,
    /// or that works again.
    pub fn flush(&mut self) -> Vec<String> {
        let prefix = &self.prefix;
        self.files
            .iter_mut()
            .filter_map(|(number, state)| Some((number, state.flush()?)))
            .map(|(number, message)| format!("{}: {message}", path(prefix, *number).display()))
            .collect()
    }

    /// Closes all files, because they may have been renamed (log rotation). The next record opens
    /// or creates its file again.
    pub fn reopen(&mut self) {
        for state in self.files.values_mut() {
            state.file = None;
        }
    }

    /// Returns the number of records lost since each file was last written.
    pub fn lost(&self) -> u64 {
        self.files.values().map(|state| state.lost).sum()
    }
}

impl State {
    fn flush(&mut self) -> Option<String> {
        let written = match self.file.as_mut().map(LogFile::flush) {
            Some(Ok(records)) => records,
            Some(Err(loss)) => {
                self.file = None;
                self.lost += loss.records;
                self.problem = Some(loss.cause);
                0
            }
            None => 0,
        };
        match self.problem.take() {
            Some(error) if self.reported == 0 => {
                self.reported = self.lost;
                Some(format!("{error}; records are lost"))
            }
            None if written > 0 && self.lost > 0 => {
                self.reported = 0;
                let lost = std::mem::take(&mut self.lost);
                Some(format!("written again, {lost} records were lost"))
            }
            _ => None,
        }
    }
}

/// Returns the path of the file of pflog interface `number`.
// Differs from OpenBSD: linux.md, "The log"
pub fn path(prefix: &Path, number: u8) -> PathBuf {
    let mut path: OsString = prefix.into();
    path.push(number.to_string());
    path.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file;
    use zerocopy::FromZeros;

    fn record(log_to: u8) -> LogRecord {
        LogRecord {
            family: skipstep_abi::INET,
            log_to,
            caplen: 20,
            wirelen: 20,
            ..LogRecord::new_zeroed()
        }
    }

    fn write(logs: &mut Logs, folder: &Path, log_to: u8) -> Vec<String> {
        let open = |number| file::open(&path(&folder.join("pflog"), number));
        logs.add(&record(log_to), &Origin::default(), open);
        logs.flush()
    }

    #[test]
    fn every_pflog_interface_has_a_file() {
        let dir = tempfile::tempdir().unwrap();
        let mut logs = Logs::new(&dir.path().join("pflog"), 160);
        for n in [0, 3, 0] {
            assert_eq!(write(&mut logs, dir.path(), n), [""; 0]);
        }
        let length = |name| std::fs::metadata(dir.path().join(name)).unwrap().len();
        assert_eq!((length("pflog0"), length("pflog3")), (24 + 2 * 136, 24 + 136));
    }

    #[test]
    fn losses_are_reported_once_and_counted() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("not/there");
        let mut logs = Logs::new(&folder.join("pflog"), 160);
        let first = write(&mut logs, &folder, 0);
        assert!(
            first[0].ends_with("No such file or directory (os error 2); records are lost"),
            "{first:?}"
        );
        assert_eq!(write(&mut logs, &folder, 0), [""; 0]);
        assert_eq!(logs.lost(), 2);
        std::fs::create_dir_all(&folder).unwrap();
        let again = write(&mut logs, &folder, 0);
        assert!(again[0].ends_with("written again, 2 records were lost"), "{again:?}");
        assert_eq!(logs.lost(), 0);
    }

    #[test]
    fn a_file_that_cannot_be_opened_is_tried_once_a_turn() {
        let mut logs = Logs::new(Path::new("pflog"), 160);
        let mut tries = 0;
        for _ in 0..2 {
            for _ in 0..10 {
                logs.add(&record(0), &Origin::default(), |_| {
                    tries += 1;
                    Err(io::ErrorKind::NotFound.into())
                });
            }
            logs.flush();
        }
        assert_eq!((tries, logs.lost()), (2, 20));
    }

    #[test]
    fn renamed_files_are_made_anew() {
        let dir = tempfile::tempdir().unwrap();
        let mut logs = Logs::new(&dir.path().join("pflog"), 160);
        write(&mut logs, dir.path(), 0);
        std::fs::rename(dir.path().join("pflog0"), dir.path().join("pflog0.old")).unwrap();
        logs.reopen();
        write(&mut logs, dir.path(), 0);
        assert!(dir.path().join("pflog0").exists());
    }
}
