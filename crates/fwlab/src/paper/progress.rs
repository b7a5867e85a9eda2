//! What `fwlab paper` tells meanwhile.

use std::io::{IsTerminal, Write};
use std::time::Instant;

/// What is told meanwhile, to who sits at a terminal.
pub(super) struct Progress {
    title: String,
    since: Instant,
    done: f64,
    all: f64,
}

impl Progress {
    /// Nothing is to be done yet.
    pub(super) fn new(title: &str) -> Progress {
        Progress { title: title.to_owned(), since: Instant::now(), done: 0.0, all: 0.0 }
    }

    /// More is to be done; in seconds, if nothing is repeated.
    pub(super) fn expect(&mut self, seconds: f64) {
        self.all += seconds;
    }

    /// Says how long all that is to be done will take.
    pub(super) fn announce(&self) {
        let time = match (self.all / 60.0).ceil() {
            ..=1.0 => "a minute".to_owned(),
            minutes => format!("{minutes:.0} minutes"),
        };
        eprintln!("{}: about {time}", self.title);
    }

    /// Some of it is done.
    pub(super) fn advance(&mut self, seconds: f64) {
        self.done += seconds;
        let mut error = std::io::stderr();
        if !error.is_terminal() {
            return;
        }
        let left = self.since.elapsed().as_secs_f64() / self.done * (self.all - self.done).max(0.0);
        let share = (100.0 * self.done / self.all).min(100.0);
        let (minutes, seconds) = ((left / 60.0).floor(), (left % 60.0).floor());
        // who does not see it misses nothing
        let _ = write!(
            error,
            "\r{}: {share:.0} %, {minutes:.0}:{seconds:02.0} left \x1b[K",
            self.title
        );
    }

    /// Takes away what was told.
    pub(super) fn end(&self) {
        if std::io::stderr().is_terminal() && self.done > 0.0 {
            eprint!("\r\x1b[K");
        }
    }
}
