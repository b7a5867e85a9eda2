//! `pfctl log`: follows a log of skipstepd, and prints a line for each packet or writes pcap.

pub mod file;
mod output;
pub(crate) mod record;
pub mod rule_sets;

use std::io::ErrorKind;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::request::Args;
use file::Follower;
use output::Output;
pub use record::Record;

/// The file of skipstepd for packets that are logged to pflog0.
pub(crate) const FILE: &str = "/var/log/skipstep/pflog0";
/// Interval between two checks for new records.
const INTERVAL: Duration = Duration::from_millis(100);

/// Prints new records until the process is ended or the reader of its output is gone. With `--all`,
/// prints the existing records first.
///
/// # Errors
/// Fails if there are several operands, or if the log cannot be read or is no pflog file. Also
/// fails if the output cannot be written.
pub fn run(args: &Args) -> Result<ExitCode> {
    let path = match &args.operands[..] {
        [] => FILE,
        [path] => path,
        _ => bail!("give one log file"),
    };
    // skipstepd makes the log when it logs the first packet, maybe while the output is opened
    let is_new = is_missing(Path::new(path));
    if is_new && !args.quiet {
        eprintln!("pfctl: {path}: no packet was logged yet");
    }
    let mut output = Output::new(args)?;
    let Some(mut follower) = open(path, args, is_new, &output)? else {
        return Ok(ExitCode::SUCCESS);
    };
    while output.has_reader() {
        while let Some((header, bytes)) = follower.next_record().with_context(|| path.to_owned())? {
            let Some(record) = Record::parse(&header, &bytes) else {
                bail!("{path}: is not a pflog file");
            };
            output.write(&record, &header, &bytes)?;
        }
        std::thread::sleep(INTERVAL);
    }
    Ok(ExitCode::SUCCESS)
}

/// True if there is no log yet, but its folder.
pub fn is_missing(path: &Path) -> bool {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    !path.exists() && folder.unwrap_or(Path::new(".")).is_dir()
}

/// Opens a log, and goes to its end unless it is new. Waits for a log that is missing. Returns
/// `None` if the reader of the output is gone before.
fn open(path: &str, args: &Args, is_new: bool, output: &Output) -> Result<Option<Follower>> {
    while output.has_reader() {
        match Follower::open(Path::new(path), args.all || is_new) {
            Err(error) if error.kind() == ErrorKind::NotFound && is_missing(Path::new(path)) => {}
            opened => return opened.map(Some).with_context(|| path.to_owned()),
        }
        std::thread::sleep(INTERVAL);
    }
    Ok(None)
}
