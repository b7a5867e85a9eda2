//! `pfctl log`: follows a log of skipstepd and prints a line for each packet.

mod file;
pub(crate) mod record;

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::output::print;
use crate::request::Args;
use file::Follower;
pub use record::Record;

/// The file of skipstepd for packets that are logged to pflog0.
pub(crate) const FILE: &str = "/var/log/skipstep/pflog0";
/// Interval between two checks for new records.
const INTERVAL: Duration = Duration::from_millis(100);

/// Prints new records until the process is ended; with `--all`, prints the existing records first.
///
/// # Errors
/// Fails if there are several operands, or if the log cannot be read or is no pflog file. Also
/// fails if standard output cannot be written.
pub fn run(args: &Args) -> Result<ExitCode> {
    let path = match &args.operands[..] {
        [] => FILE,
        [path] => path,
        _ => bail!("give one log file"),
    };
    let mut follower =
        Follower::open(Path::new(path), args.all).with_context(|| path.to_owned())?;
    loop {
        while let Some((header, bytes)) = follower.next().with_context(|| path.to_owned())? {
            let Some(record) = Record::parse(&header, &bytes) else {
                bail!("{path}: is not a pflog file");
            };
            let line =
                if args.json { record.json().to_string() } else { record.line(&chrono::Local) };
            print(&(line + "\n"))?;
        }
        std::thread::sleep(INTERVAL);
    }
}
