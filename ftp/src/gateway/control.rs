//! The control connection with a client or a server, as lines.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context, Result};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::line::{Line, Lines};
use crate::socket;

/// Number of bytes in one read.
const BLOCK: usize = 4096;

const IAC: u8 = 255;

/// A control connection with a client or a server.
pub struct Control {
    name: &'static str,
    stream: TcpStream,
    lines: Lines,
    /// Time that the peer may take to read a line.
    patience: Duration,
}

impl Control {
    /// Prepares a connection. `name` is `client` or `server`, for error messages.
    ///
    /// # Errors
    /// Fails if the system refuses a socket option.
    pub fn new(name: &'static str, stream: TcpStream, patience: Duration) -> Result<Control> {
        socket::prepare_control(&stream).context(name)?;
        Ok(Control { name, stream, lines: Lines::default(), patience })
    }

    /// Returns the local address and the peer's.
    ///
    /// # Errors
    /// Fails if the socket is no longer connected.
    pub fn addresses(&self) -> Result<(SocketAddr, SocketAddr)> {
        let own = self.stream.local_addr().context(self.name)?;
        Ok((own, self.stream.peer_addr().context(self.name)?))
    }

    /// Returns the next line; `None` at the end of the stream. A cancelled call loses no bytes.
    ///
    /// # Errors
    /// Fails if the connection breaks, or if the received bytes are not a valid line.
    pub async fn line(&mut self) -> Result<Option<Line>> {
        loop {
            if let Some(line) = self.lines.next_line().context(self.name)? {
                return Ok(Some(line));
            }
            self.stream.readable().await.context(self.name)?;
            // the buffer does not exist while the session waits, because thousands of sessions wait
            let mut block = [0; BLOCK];
            match self.stream.try_read(&mut block) {
                Ok(0) => return Ok(None),
                Ok(length) => self.lines.push(&block[..length]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) => return Err(error).context(self.name),
            }
        }
    }

    /// Sends a line; the function adds the line end.
    ///
    /// # Errors
    /// Fails if the connection breaks, or if the peer does not read in time.
    pub async fn send(&mut self, text: impl AsRef<[u8]>) -> Result<()> {
        let bytes = as_sent(text.as_ref());
        let sent = timeout(self.patience, self.stream.write_all(&bytes)).await;
        sent.with_context(|| format!("{} does not read in time", self.name))?.context(self.name)
    }
}

/// Encodes a line as RFC 854 requires. All lines use this one form, so both sides read them as the
/// gateway does.
fn as_sent(text: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len() + 2);
    for byte in text {
        match *byte {
            IAC => bytes.extend([IAC, IAC]),
            b'\r' => bytes.extend(b"\r\0"),
            byte => bytes.push(byte),
        }
    }
    bytes.extend(b"\r\n");
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sent_lines_parse_unchanged() {
        for text in [&b"RETR a"[..], b"", b"RETR a\rb", b"CWD \xff\xfbx", b"\xff"] {
            let mut lines = Lines::default();
            lines.push(&as_sent(text));
            assert_eq!(lines.next_line().unwrap().unwrap().text, text);
            assert_eq!(lines.next_line(), Ok(None));
        }
    }
}
