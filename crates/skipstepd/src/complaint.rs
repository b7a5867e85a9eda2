//! Messages on standard error.

use std::fmt::Display;

/// Prints a message.
pub fn say(message: &str) {
    eprintln!("skipstepd: {message}");
}

/// Prints an error that does not stop the daemon, but not the same one again and again.
#[derive(Default)]
pub struct Complaint(Option<String>);

impl Complaint {
    /// Returns the value, or prints the error unless it is the last one that was printed.
    pub fn note<T, E: Display>(&mut self, result: Result<T, E>) -> Option<T> {
        match result {
            Ok(value) => {
                self.0 = None;
                Some(value)
            }
            Err(error) => {
                let message = error.to_string();
                if self.0.as_ref() != Some(&message) {
                    say(&message);
                    self.0 = Some(message);
                }
                None
            }
        }
    }

    /// Prints the next error in any case.
    pub fn forget(&mut self) {
        self.0 = None;
    }
}
