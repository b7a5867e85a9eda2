//! The interface between the worker, which reads bytes of strangers, and the guardian. The worker
//! requests data connections of control connections that the guardian has seen in the log. A
//! request names no rules.

use std::io::{BufRead, BufReader, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};

use crate::sesame::rules::Expected;

/// Number of requests sent together. The socket buffer between the processes has room for their
/// answers.
const AT_ONCE: usize = 64;

/// A request of the worker, sent as a line of JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Request {
    /// Pass this data connection of a control connection, in place of the previous one. The answer
    /// is a line: empty, or an error.
    Open(u32, Expected),
    /// Remove the rules of a control connection. The request has no answer.
    Close(u32),
    /// Change nothing. The answer is an error if the open instance no longer filters.
    Check,
}

/// The worker's end.
pub struct Gate {
    stream: BufReader<UnixStream>,
}

impl Gate {
    /// Takes the end that the guardian has passed as standard output.
    ///
    /// # Errors
    /// Fails if standard output cannot be duplicated.
    pub fn inherited() -> Result<Gate> {
        let stream = UnixStream::from(std::io::stdout().as_fd().try_clone_to_owned()?);
        Ok(Gate { stream: BufReader::new(stream) })
    }

    /// Sends requests and waits for all answers. `report` gets each request that has an answer, and
    /// the error if there is one.
    ///
    /// # Errors
    /// Fails if the guardian has ended.
    pub fn request(
        &mut self,
        requests: &[Request],
        mut report: impl FnMut(&Request, Option<&str>),
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
                report(request, (!problem.is_empty()).then_some(problem));
            }
        }
        Ok(())
    }
}
