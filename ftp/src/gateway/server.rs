//! The control connection to the server of a session.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use tokio::time::timeout;

use crate::gateway::control::Control;
use crate::gateway::policy::Rule;
use crate::gateway::session::Gateway;
use crate::line::Line;
use crate::reply::{Replies, Reply};

/// A server that the client may use.
pub struct Server {
    pub control: Control,
    /// The server's address and port.
    pub address: SocketAddr,
    /// The gateway's address towards the server.
    pub own: IpAddr,
    /// The rule that allows the server.
    pub rule: Arc<Rule>,
    replies: Replies,
    /// Number of bytes that the server has sent since its last final reply.
    answer_bytes: usize,
    patience: Duration,
}

/// Number of bytes of an answer at most, with preliminary replies and lines without a code. `STAT`
/// of a folder with 10,000 files has less.
const LONGEST_ANSWER: usize = 1 << 20;

impl Server {
    /// Connects to the server at `address`, which `rule` allows.
    ///
    /// # Errors
    /// Fails if the server does not answer in time, or refuses the connection.
    pub async fn connect(
        gateway: &Gateway,
        address: SocketAddr,
        rule: Arc<Rule>,
    ) -> Result<Server> {
        let config = &gateway.config;
        let source = config.source.iter().find(|source| source.is_ipv4() == address.is_ipv4());
        let anywhere = match address {
            SocketAddr::V4(_) => std::net::Ipv4Addr::UNSPECIFIED.into(),
            SocketAddr::V6(_) => std::net::Ipv6Addr::UNSPECIFIED.into(),
        };
        let connecting = gateway.network.connect(address, *source.unwrap_or(&anywhere));
        let stream = timeout(config.timeouts.connect, connecting).await;
        let stream = stream.with_context(|| format!("{address} does not answer"))??;
        let control = Control::new("server", stream, config.timeouts.idle)?;
        let own = control.addresses()?.0.ip();
        let (replies, patience) = (Replies::default(), config.timeouts.idle);
        Ok(Server { control, address, own, rule, replies, answer_bytes: 0, patience })
    }

    /// Returns the next line, and the reply if the line ends one. A cancelled call loses no bytes.
    ///
    /// # Errors
    /// Fails if the server has closed the connection, sends an invalid line, or exceeds the limit
    /// of an answer.
    pub async fn line(&mut self) -> Result<(Line, Option<Reply>)> {
        let Some(line) = self.control.line().await? else {
            bail!("the server has closed the connection");
        };
        self.answer_bytes += line.raw.len();
        if self.answer_bytes > LONGEST_ANSWER {
            bail!("server: limit of {LONGEST_ANSWER} bytes in an answer exceeded");
        }
        let reply = self.replies.take(&line);
        if reply.as_ref().is_some_and(|reply| !reply.is_preliminary()) {
            self.answer_bytes = 0;
        }
        Ok((line, reply))
    }

    /// Returns the next reply, preliminary or not, and forwards each of its lines to `client`.
    ///
    /// # Errors
    /// Fails if the server has closed the connection or sends nothing for too long, or if the
    /// client does not read.
    pub async fn reply(&mut self, mut client: Option<&mut Control>) -> Result<Reply> {
        loop {
            let line = timeout(self.patience, self.line()).await;
            let (line, reply) = line.context("no reply from the server in time")??;
            if let Some(client) = &mut client {
                client.send(&line.text).await?;
            }
            if let Some(reply) = reply {
                return Ok(reply);
            }
        }
    }

    /// Returns the next final reply, and forwards all lines to `client`.
    ///
    /// # Errors
    /// Fails as [`Server::reply`] does.
    pub async fn final_reply(&mut self, mut client: Option<&mut Control>) -> Result<Reply> {
        loop {
            let reply = self.reply(client.as_deref_mut()).await?;
            if !reply.is_preliminary() {
                return Ok(reply);
            }
        }
    }

    /// Sends a command and returns the final reply. The client sees neither.
    ///
    /// # Errors
    /// Fails if the command cannot be sent, or as [`Server::reply`] does.
    pub async fn request(&mut self, text: impl AsRef<[u8]>) -> Result<Reply> {
        self.control.send(text).await?;
        self.final_reply(None).await
    }
}
