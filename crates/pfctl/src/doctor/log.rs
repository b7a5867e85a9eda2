//! Checks of the log: free space for its files, and lost records.

use std::fs;
use std::path::Path;

use nix::sys::statvfs::statvfs;

use super::finding::Finding;
use super::{Inputs, Words};
use crate::log::FILE;

const SUBJECT: &str = "log";

/// Free bytes that are enough on a disk of any size.
const ENOUGH: u64 = 1 << 30;

/// The log and its disk.
#[derive(Default)]
pub struct Facts {
    /// Free and all bytes of the file system with the log; `None` if it cannot be seen.
    space: Option<(u64, u64)>,
    /// Bytes of rotated log files.
    rotated: u64,
    /// Log records that the ring of the kernel had no room for.
    lost: u64,
    /// Flow records that the ring of the kernel had no room for.
    lost_flows: u64,
}

/// Reads the facts.
pub fn collect(inputs: &Inputs) -> Facts {
    let status = inputs.open().map(|(.., status)| status);
    Facts {
        space: space(Path::new(FILE)),
        rotated: rotated(folder()),
        lost: status.map_or(0, |status| status.log_lost),
        lost_flows: status.map_or(0, |status| status.flow_lost),
    }
}

/// Returns free and all bytes of the file system with a file, or with the closest of its folders
/// that exists.
fn space(file: &Path) -> Option<(u64, u64)> {
    let found = file.ancestors().find_map(|path| statvfs(path).ok())?;
    let unit = found.fragment_size();
    Some((found.blocks_available() * unit, found.blocks() * unit))
}

/// Returns the folder of the log files.
fn folder() -> &'static Path {
    Path::new(FILE).parent().unwrap_or(Path::new("/"))
}

/// Returns the bytes of the rotated log files in a folder, such as `pflog0.1`.
fn rotated(folder: &Path) -> u64 {
    let files = fs::read_dir(folder).into_iter().flatten().flatten();
    let is_rotated = |name: &str| name.starts_with("pflog") && name.contains('.');
    let rotated = files.filter(|file| file.file_name().to_str().is_some_and(is_rotated));
    rotated.filter_map(|file| Some(file.metadata().ok()?.len())).sum()
}

/// Judges the facts.
pub fn judge(facts: &Facts, words: &Words) -> Vec<Finding> {
    let mut findings = vec![match facts.space {
        Some((free, all)) => disk(free, all, facts.rotated),
        None => Finding::unseen(SUBJECT, &format!("free space for {FILE}")),
    }];
    for (lost, records) in [(facts.lost, "log records"), (facts.lost_flows, "flow records")] {
        if lost > 0 {
            let text = format!(
                "{lost} {records} were lost, because skipstepd did not run or did not keep up; the \
                 command resets all counters of `-s info`"
            );
            let command = format!("{} -F info", words.pfctl);
            findings.push(Finding::warn(SUBJECT, text).mended_by(command));
        }
    }
    findings
}

fn disk(free: u64, all: u64, rotated: u64) -> Finding {
    let folder = folder().display();
    let percent = free * 100 / all.max(1);
    let text = format!("{percent} % of the disk of {folder} is free ({} MB)", free >> 20);
    if percent >= 10 || free >= ENOUGH {
        return Finding::ok(SUBJECT, text);
    }
    let make = if percent == 0 { Finding::fail } else { Finding::warn };
    if rotated == 0 {
        return make(SUBJECT, text);
    }
    let text = format!("{text}; the command deletes rotated log files ({} MB)", rotated >> 20);
    make(SUBJECT, text).mended_by(format!("find {folder} -name 'pflog*.*' -delete"))
}

#[cfg(test)]
mod tests {
    use super::super::finding::Level;
    use super::*;

    #[test]
    fn a_disk_fills_up() {
        let facts = |free, all| Facts { space: Some((free, all)), ..Facts::default() };
        for (free, all, level) in [
            (100 << 20, 1000 << 20, Level::Ok),
            (ENOUGH, 1000 * ENOUGH, Level::Ok),
            (99 << 20, 1000 << 20, Level::Warn),
            (9 << 20, 1000 << 20, Level::Fail),
        ] {
            let findings = judge(&facts(free, all), &Words::usual());
            assert_eq!((findings.len(), findings[0].level), (1, level));
            assert_eq!(findings[0].command, None, "there are no rotated files");
        }
    }

    #[test]
    fn rotated_files_can_be_deleted() {
        let full = disk(5 << 20, 100 << 20, 7 << 20);
        assert_eq!(
            full.text,
            "5 % of the disk of /var/log/skipstep is free (5 MB); the command deletes rotated \
             log files (7 MB)"
        );
        let command = "find /var/log/skipstep -name 'pflog*.*' -delete";
        assert_eq!(full.command.as_deref(), Some(command));
        let folder = tempfile::tempdir().unwrap();
        for name in ["pflog0", "pflog0.1", "pflog1.2.gz", "other.1"] {
            fs::write(folder.path().join(name), "12345").unwrap();
        }
        assert_eq!((rotated(folder.path()), rotated(Path::new("/no-such-folder"))), (10, 0));
    }

    #[test]
    fn space_of_a_missing_folder_is_that_of_the_folder_above() {
        let (free, all) = space(Path::new("/no-such-folder/file")).unwrap();
        assert!(free <= all && all > 0);
    }

    #[test]
    fn lost_records_are_a_warning() {
        let facts = Facts { space: Some((1, 1)), lost: 3, lost_flows: 4, ..Facts::default() };
        let findings = judge(&facts, &Words::usual());
        assert!(findings[1].text.starts_with("3 log records were lost"), "{findings:?}");
        assert!(findings[2].text.starts_with("4 flow records were lost"), "{findings:?}");
        assert_eq!(findings[2].command.as_deref(), Some("pfctl -F info"));
    }
}
