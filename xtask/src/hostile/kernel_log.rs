//! Errors and warnings in the kernel's log.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;

use anyhow::{Context, ensure};

/// The flag's value on x86-64, arm64 and most other architectures of Linux.
const O_NONBLOCK: i32 = 0o4000;
/// The log level of errors. Lower levels are more severe.
const ERROR: u32 = 3;

/// Reads the messages that the kernel logs after the reader was opened.
pub struct Reader(File);

impl Reader {
    /// Opens the log at its end. Prints a message and returns `None` if the log cannot be opened.
    ///
    /// # Errors
    /// Fails if the end of the log cannot be found.
    pub fn open() -> anyhow::Result<Option<Self>> {
        let file = OpenOptions::new().read(true).custom_flags(O_NONBLOCK).open("/dev/kmsg");
        let mut file = match file {
            Ok(file) => file,
            Err(error) => {
                println!("skipped  the kernel's complaints: /dev/kmsg: {error}");
                return Ok(None);
            }
        };
        file.seek(SeekFrom::End(0)).context("/dev/kmsg")?;
        Ok(Some(Reader(file)))
    }

    /// Checks that the kernel has logged no error or warning since.
    ///
    /// # Errors
    /// Fails with the messages if there are some, or if the log cannot be read.
    pub fn ensure_silence(mut self) -> anyhow::Result<()> {
        let complaints = self.complaints()?;
        ensure!(complaints.is_empty(), "the kernel complains:\n{}", complaints.join("\n"));
        Ok(())
    }

    fn complaints(&mut self) -> anyhow::Result<Vec<String>> {
        let mut complaints = Vec::new();
        let mut record = vec![0; 8192];
        loop {
            match self.0.read(&mut record) {
                Ok(length) => {
                    let line = String::from_utf8_lossy(&record[..length]).into_owned();
                    if is_complaint(&line) {
                        complaints.push(line.trim_end().to_owned());
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(complaints),
                // the log has overwritten records before they were read
                Err(error) if error.kind() == ErrorKind::BrokenPipe => {}
                Err(error) => return Err(error).context("/dev/kmsg"),
            }
        }
    }
}

/// Returns true for an error, and for a WARN_ON(), which the kernel does not log as an error. A
/// record is `priority,number,time,flags;text`.
fn is_complaint(line: &str) -> bool {
    let priority = line.split(',').next().and_then(|number| number.parse::<u32>().ok());
    priority.is_some_and(|priority| priority & 7 <= ERROR) || line.contains("WARNING: CPU")
}
