//! `pfctl log`: follows a log of skipstepd, and prints a line for each packet or writes pcap.

mod file;
mod output;
pub(crate) mod record;
mod rule_sets;

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
    let mut output = Output::new(args)?;
    let Some(mut follower) = open(path, args, &output)? else { return Ok(ExitCode::SUCCESS) };
    while output.has_reader() {
        while let Some((header, bytes)) = follower.next().with_context(|| path.to_owned())? {
            let Some(record) = Record::parse(&header, &bytes) else {
                bail!("{path}: is not a pflog file");
            };
            output.write(&record, &header, &bytes)?;
        }
        std::thread::sleep(INTERVAL);
    }
    Ok(ExitCode::SUCCESS)
}

/// Opens a log. Waits for the file if its folder is there, because skipstepd makes the file when it
/// logs the first packet. Returns `None` if the reader of the output is gone before.
fn open(path: &str, args: &Args, output: &Output) -> Result<Option<Follower>> {
    let is_missing = |path: &Path| {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        !path.exists() && folder.unwrap_or(Path::new(".")).is_dir()
    };
    let mut waits = false;
    while output.has_reader() {
        match Follower::open(Path::new(path), args.all || waits) {
            Err(error) if error.kind() == ErrorKind::NotFound && is_missing(Path::new(path)) => {}
            opened => return opened.map(Some).with_context(|| path.to_owned()),
        }
        if !waits && !args.quiet {
            eprintln!("pfctl: {path}: no packet was logged yet");
        }
        waits = true;
        std::thread::sleep(INTERVAL);
    }
    Ok(None)
}
