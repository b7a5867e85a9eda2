//! Between the worker, which reads what strangers send, and the guardian. The worker asks for data
//! connections, not for rules.

use std::io::{BufRead, BufReader, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};

use crate::sesame::rules::Expected;

/// What the worker asks for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Request {
    /// The filter shall let this data connection of a control connection through, and no other of it.
    Open(u32, Expected),
    /// No further one.
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

    /// Asks, and waits until it is done: what the filter says against it, if anything.
    ///
    /// # Errors
    /// The guardian is gone.
    pub fn ask(&mut self, request: &Request) -> Result<Option<String>> {
        let mut line = serde_json::to_string(request)?;
        line.push('\n');
        let mut answer = String::new();
        self.stream.get_mut().write_all(line.as_bytes()).context("guardian")?;
        if self.stream.read_line(&mut answer).context("guardian")? == 0 {
            bail!("the guardian is gone");
        }
        let problem = answer.trim_end();
        Ok((!problem.is_empty()).then(|| problem.to_owned()))
    }
}
