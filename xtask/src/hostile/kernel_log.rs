//! What the kernel says about what we do to it.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;

use anyhow::Context;

/// Linux's, on all machines that it has a BPF for.
const O_NONBLOCK: i32 = 0o4000;
/// Errors and worse.
const ERROR: u32 = 3;

/// Reads what the kernel logs from now on; nothing, if nobody may know.
pub struct Reader(Option<File>);

impl Reader {
    pub fn open() -> anyhow::Result<Self> {
        let file = OpenOptions::new().read(true).custom_flags(O_NONBLOCK).open("/dev/kmsg");
        let Ok(mut file) = file else {
            println!("skipped: the kernel's log cannot be read");
            return Ok(Reader(None));
        };
        file.seek(SeekFrom::End(0)).context("/dev/kmsg")?;
        Ok(Reader(Some(file)))
    }

    /// Errors and warnings since.
    pub fn complaints(self) -> anyhow::Result<Vec<String>> {
        let mut complaints = Vec::new();
        let Some(mut file) = self.0 else { return Ok(complaints) };
        let mut record = vec![0; 8192];
        loop {
            match file.read(&mut record) {
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
