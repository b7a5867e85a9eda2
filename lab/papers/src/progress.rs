//! The progress display of `fwlab paper`.

use std::io::{IsTerminal, Write};
use std::time::Instant;

/// A progress display on standard error, shown only on a terminal.
pub(super) struct Progress {
    title: String,
    since: Instant,
    done: f64,
    all: f64,
}

impl Progress {
    /// Makes a display without planned work.
    pub(super) fn new(title: &str) -> Progress {
        Progress { title: title.to_owned(), since: Instant::now(), done: 0.0, all: 0.0 }
    }

    /// Adds planned work, in seconds without repeats.
    pub(super) fn expect(&mut self, seconds: f64) {
        self.all += seconds;
    }

    /// Prints the expected duration of the planned work.
    pub(super) fn announce(&self) {
        let time = match (self.all / 60.0).ceil() {
            ..=1.0 => "a minute".to_owned(),
            minutes => format!("{minutes:.0} minutes"),
        };
        eprintln!("{}: about {time}", self.title);
    }

    /// Counts `seconds` of planned work as done and updates the display.
    pub(super) fn advance(&mut self, seconds: f64) {
        self.done += seconds;
        let mut error = std::io::stderr();
        if !error.is_terminal() {
            return;
        }
        let left = self.since.elapsed().as_secs_f64() / self.done * (self.all - self.done).max(0.0);
        let share = (100.0 * self.done / self.all).min(100.0);
        let (minutes, seconds) = ((left / 60.0).floor(), (left % 60.0).floor());
        // a display that cannot be written is no error
        let _ = write!(
            error,
            "\r{}: {share:.0} %, {minutes:.0}:{seconds:02.0} left \x1b[K",
            self.title
        );
    }

    /// Erases the display.
    pub(super) fn end(&self) {
        if std::io::stderr().is_terminal() && self.done > 0.0 {
            eprint!("\r\x1b[K");
        }
    }
}
