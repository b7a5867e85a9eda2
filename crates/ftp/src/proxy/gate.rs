//! Between the worker, which speaks with the world and may do nothing else, and the guardian, which may
//! change the filter. The worker asks for data connections, not for rules: who has taken it over can open
//! nothing that FTP could not.

use std::cell::Cell;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream as StdStream;

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufStream};
use tokio::net::UnixStream;
use tokio::sync::Mutex;

use crate::proxy::rules::{Expected, Hosts};

/// What the worker asks for, as a line of JSON. The answer is a line, too: empty, or what is wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Request {
    /// The filter shall let this data connection of a session through.
    Open(u32, Hosts, Expected),
    /// A session is over.
    Close(u32),
}

/// The worker's end.
pub struct Gate {
    stream: Mutex<BufStream<UnixStream>>,
    /// The guardian has not answered: it is gone, and with it all that the worker is for.
    is_gone: Cell<bool>,
}

impl Gate {
    /// The end that the guardian has put in the place of standard output.
    ///
    /// # Errors
    /// It is no such thing.
    pub fn inherited() -> Result<Gate> {
        let stream = StdStream::from(std::io::stdout().as_fd().try_clone_to_owned()?);
        stream.set_nonblocking(true)?;
        let stream = UnixStream::from_std(stream).context("guardian")?;
        Ok(Gate { stream: Mutex::new(BufStream::new(stream)), is_gone: Cell::new(false) })
    }

    /// Asks, and waits until it is done.
    ///
    /// # Errors
    /// What the filter says, or the guardian is gone.
    pub async fn ask(&self, request: &Request) -> Result<()> {
        let mut line = serde_json::to_string(request)?;
        line.push('\n');
        let mut stream = self.stream.lock().await;
        let mut answer = String::new();
        let exchange = async {
            stream.write_all(line.as_bytes()).await?;
            stream.flush().await?;
            stream.read_line(&mut answer).await
        };
        match exchange.await {
            Ok(length) if length > 0 => {}
            _ => {
                self.is_gone.set(true);
                bail!("the guardian is gone");
            }
        }
        match answer.trim_end() {
            "" => Ok(()),
            problem => bail!("{problem}"),
        }
    }

    /// Whether nobody is at the other end.
    pub fn is_gone(&self) -> bool {
        self.is_gone.get()
    }
}
