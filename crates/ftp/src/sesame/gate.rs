//! Between the worker, which reads bytes of strangers, and the guardian. The worker asks for data
//! connections of control connections that the guardian has seen in the log, and not for rules.

use std::io::{BufRead, BufReader, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};

use crate::sesame::rules::Expected;

/// Requests that are made at once: that many answers have room between the processes.
const AT_ONCE: usize = 64;

/// What the worker asks for, as a line of JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Request {
    /// Lets this data connection of a control connection through, and no other of it. The answer is
    /// a line, too: empty, or an error.
    Open(u32, Expected),
    /// No further one. That has no answer.
    Close(u32),
    /// Nothing, if the filter is still the one whose log is read.
    Check,
}

/// The worker's end.
pub struct Gate {
    stream: BufReader<UnixStream>,
}

impl Gate {
    /// The end that the guardian has put in the place of standard output.
    ///
    /// # Errors
    /// It is no such thing.
    pub fn inherited() -> Result<Gate> {
        let stream = UnixStream::from(std::io::stdout().as_fd().try_clone_to_owned()?);
        Ok(Gate { stream: BufReader::new(stream) })
    }

    /// Asks, and waits until all is done. `tell` hears of each request that has an answer what is
    /// wrong with it, if anything.
    ///
    /// # Errors
    /// The guardian is gone.
    pub fn ask(
        &mut self,
        requests: &[Request],
        mut tell: impl FnMut(&Request, Option<&str>),
    ) -> Result<()> {
        for requests in requests.chunks(AT_ONCE) {
            let mut lines = String::new();
            for request in requests {
                lines += &serde_json::to_string(request)?;
                lines.push('\n');
            }
            self.stream.get_mut().write_all(lines.as_bytes()).context("guardian")?;
            let is_answered = |request: &&Request| !matches!(request, Request::Close(_));
            for request in requests.iter().filter(is_answered) {
                let mut answer = String::new();
                if self.stream.read_line(&mut answer).context("guardian")? == 0 {
                    bail!("the guardian is gone");
                }
                let problem = answer.trim_end();
                tell(request, (!problem.is_empty()).then_some(problem));
            }
        }
        Ok(())
    }
}
