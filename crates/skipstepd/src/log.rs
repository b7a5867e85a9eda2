//! The log files, one for each pflogN that rules log to. What goes wrong is said once, the records
//! that are lost meanwhile are counted, and the files are tried again with every record.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use skipstep_abi::LogRecord;

use crate::clock::wall_time;
use crate::file::LogFile;
use crate::pflog::{self, Origin};

/// All log files.
#[derive(Debug)]
pub struct Logs {
    /// Path without the number.
    prefix: PathBuf,
    snaplen: usize,
    files: BTreeMap<u8, State>,
}

/// One log file.
#[derive(Debug, Default)]
struct State {
    /// `None`: not open yet, or it could not be.
    file: Option<LogFile>,
    /// Records lost since the last that was written.
    lost: u64,
}

impl Logs {
    /// Logs to `prefix` with the number of the pflog interface behind it, `snaplen` bytes of each
    /// packet. Files are opened when something is logged to them.
    pub fn new(prefix: &Path, snaplen: usize) -> Logs {
        Logs { prefix: prefix.to_path_buf(), snaplen, files: BTreeMap::new() }
    }

    /// Writes a record. Returns what there is to tell about: that records begin to be lost, or
    /// that they no longer are.
    pub fn write(&mut self, record: &LogRecord, origin: &Origin) -> Option<String> {
        let path = path(&self.prefix, record.log_to);
        let state = self.files.entry(record.log_to).or_default();
        match state.write(&path, self.snaplen, record, origin) {
            Ok(()) if state.lost == 0 => None,
            Ok(()) => {
                let lost = std::mem::take(&mut state.lost);
                Some(format!("{}: written again, {lost} records were lost", path.display()))
            }
            Err(error) => {
                state.lost += 1;
                (state.lost == 1).then(|| format!("{}: {error}; records are lost", path.display()))
            }
        }
    }

    /// Closes all files, so that the next record opens or creates them anew: they may have been
    /// renamed.
    pub fn reopen(&mut self) {
        for state in self.files.values_mut() {
            state.file = None;
        }
    }

    /// Records lost and not yet told about.
    pub fn lost(&self) -> u64 {
        self.files.values().map(|state| state.lost).sum()
    }
}

impl State {
    fn write(
        &mut self,
        path: &Path,
        snaplen: usize,
        record: &LogRecord,
        origin: &Origin,
    ) -> std::io::Result<()> {
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(LogFile::open(path, snaplen)?),
        };
        let packet = pflog::packet(record, file.snaplen());
        let written = file.append(
            wall_time(record.time),
            &pflog::header(record, origin),
            packet,
            record.wirelen,
        );
        if written.is_err() {
            self.file = None;
        }
        written
    }
}

fn path(prefix: &Path, number: u8) -> PathBuf {
    let mut path: OsString = prefix.into();
    path.push(number.to_string());
    path.into()
}

#[cfg(test)]
mod tests {
    use super::*;
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

    #[test]
    fn every_pflog_interface_has_a_file() {
        let dir = tempfile::tempdir().unwrap();
        let mut logs = Logs::new(&dir.path().join("pflog"), 160);
        for n in [0, 3, 0] {
            assert_eq!(logs.write(&record(n), &Origin::default()), None);
        }
        let length = |name| std::fs::metadata(dir.path().join(name)).unwrap().len();
        assert_eq!((length("pflog0"), length("pflog3")), (24 + 2 * 136, 24 + 136));
    }

    #[test]
    fn losses_are_told_once_and_counted() {
        let dir = tempfile::tempdir().unwrap();
        let mut logs = Logs::new(&dir.path().join("not/there/pflog"), 160);
        let first = logs.write(&record(0), &Origin::default()).unwrap();
        assert!(
            first.ends_with("No such file or directory (os error 2); records are lost"),
            "{first}"
        );
        assert_eq!(logs.write(&record(0), &Origin::default()), None);
        assert_eq!(logs.lost(), 2);
        std::fs::create_dir_all(dir.path().join("not/there")).unwrap();
        let again = logs.write(&record(0), &Origin::default()).unwrap();
        assert!(again.ends_with("written again, 2 records were lost"), "{again}");
        assert_eq!(logs.lost(), 0);
    }

    #[test]
    fn renamed_files_are_made_anew() {
        let dir = tempfile::tempdir().unwrap();
        let mut logs = Logs::new(&dir.path().join("pflog"), 160);
        logs.write(&record(0), &Origin::default());
        std::fs::rename(dir.path().join("pflog0"), dir.path().join("pflog0.old")).unwrap();
        logs.reopen();
        logs.write(&record(0), &Origin::default());
        assert!(dir.path().join("pflog0").exists());
    }
}
