//! The kernel's complaints about packets and programs of ours.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;

use anyhow::{Context, ensure};

/// Linux's, on all machines that it has a BPF for.
const O_NONBLOCK: i32 = 0o4000;
/// Errors and worse.
const ERROR: u32 = 3;

/// Reads the messages that the kernel logs from now on.
pub struct Reader(File);

impl Reader {
    /// Opens the log at its end; `None`, with a message, where it cannot be read.
    ///
    /// # Errors
    /// The log has no end to go to.
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

    /// Fails if the kernel has logged an error or a warning since.
    ///
    /// # Errors
    /// These messages, or why the log cannot be read.
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
                // it was faster than we
                Err(error) if error.kind() == ErrorKind::BrokenPipe => {}
                Err(error) => return Err(error).context("/dev/kmsg"),
            }
        }
    }
}

/// `priority,number,time,flags;text`; WARN_ON() is no error to the kernel.
fn is_complaint(line: &str) -> bool {
    let priority = line.split(',').next().and_then(|number| number.parse::<u32>().ok());
    priority.is_some_and(|priority| priority & 7 <= ERROR) || line.contains("WARNING: CPU")
}
