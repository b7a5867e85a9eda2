//! Messages of the daemon and its workers on standard error.

use std::fmt::Display;

/// Prints a message to standard error, behind the program's name.
pub fn print_message(message: &str) {
    eprintln!("skipstepd: {message}");
}

/// Prints errors that do not stop the daemon. An error that repeats is printed once.
#[derive(Default)]
pub struct Complaint(Option<String>);

impl Complaint {
    /// Returns the value, or prints the error unless it is the same as the last one.
    pub fn note<T, E: Display>(&mut self, result: Result<T, E>) -> Option<T> {
        match result {
            Ok(value) => {
                self.0 = None;
                Some(value)
            }
            Err(error) => {
                let message = error.to_string();
                if self.0.as_ref() != Some(&message) {
                    print_message(&message);
                    self.0 = Some(message);
                }
                None
            }
        }
    }

    /// Forgets the last error, so the next one is printed in any case.
    pub fn forget(&mut self) {
        self.0 = None;
    }
}
