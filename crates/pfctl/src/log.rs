//! `pfctl log`: prints what skipstepd writes to a log, a line a packet, as it comes.

mod file;
mod record;

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::output::print;
use crate::request::Args;
use file::Follower;
pub use record::Record;

/// Where skipstepd writes what is logged to pflog0.
const FILE: &str = "/var/log/skipstep/pflog0";
/// How often a log is looked at for something new.
const INTERVAL: Duration = Duration::from_millis(100);

/// Follows the log until somebody ends the program; with `--all` from its beginning on.
pub fn run(args: &Args) -> Result<ExitCode> {
    let path = match &args.operands[..] {
        [] => FILE,
        [path] => path,
        _ => bail!("one log is followed at a time"),
    };
    let mut follower =
        Follower::open(Path::new(path), args.all).with_context(|| path.to_owned())?;
    loop {
        while let Some(bytes) = follower.next().with_context(|| path.to_owned())? {
            let Some(record) = Record::parse(&bytes) else {
                bail!("{path}: is not a pflog file");
            };
            let line =
                if args.json { record.json().to_string() } else { record.line(&chrono::Local) };
            print(&(line + "\n"))?;
        }
        std::thread::sleep(INTERVAL);
    }
}
