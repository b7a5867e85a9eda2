//! Log messages, on standard error in the foreground and in syslog in the background.

use std::process::ExitCode;

use anyhow::{Result, anyhow};
use log::{LevelFilter, Log, Metadata, Record};
use syslog::{BasicLogger, Facility, Formatter3164};

/// A logger that writes messages to standard error without a prefix.
struct Foreground;

impl Log for Foreground {
    fn enabled(&self, _: &Metadata) -> bool {
        true
    }

    fn log(&self, record: &Record) {
        eprintln!("{}", record.args());
    }

    fn flush(&self) {}
}

/// Converts the result of `program` to an exit code, and prints the error if there is one.
pub fn end(program: &str, result: Result<()>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("{program}: {problem:#}");
            ExitCode::FAILURE
        }
    }
}

/// Starts the log. It takes messages that are at least as urgent as `level` of syslog(3), 0 to 7.
///
/// # Errors
/// Fails if no syslog is reachable, or if the process has a logger already.
pub fn begin(program: &str, level: u8, foreground: bool) -> Result<()> {
    let logger: Box<dyn Log> = match foreground {
        true => Box::new(Foreground),
        false => {
            let formatter = Formatter3164 {
                facility: Facility::LOG_DAEMON,
                hostname: None,
                process: program.to_owned(),
                pid: std::process::id(),
            };
            let logger = syslog::unix(formatter).map_err(|error| anyhow!("syslog: {error}"))?;
            Box::new(BasicLogger::new(logger))
        }
    };
    log::set_boxed_logger(logger).map_err(|error| anyhow!("{error}"))?;
    log::set_max_level(match level {
        0..3 => LevelFilter::Off,
        3 => LevelFilter::Error,
        4 | 5 => LevelFilter::Warn,
        6 => LevelFilter::Info,
        _ => LevelFilter::Debug,
    });
    Ok(())
}
