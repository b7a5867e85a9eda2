//! The session's own control connection, to the server.

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

/// A server that the client may speak with.
pub struct Server {
    pub control: Control,
    /// Where it is.
    pub address: SocketAddr,
    /// Who it believes we are.
    pub own: IpAddr,
    /// The rule that lets the client go there.
    pub rule: Arc<Rule>,
    replies: Replies,
    /// Bytes that it has sent since its last reply that was not preliminary.
    said: usize,
    patience: Duration,
}

/// The longest answer to a command, preliminary replies and lines without a code included, in
/// bytes. `STAT` of a folder with 10,000 files has less.
const LONGEST_ANSWER: usize = 1 << 20;

impl Server {
    /// Connects to it.
    ///
    /// # Errors
    /// It does not answer.
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
        let own = control.ends()?.0.ip();
        let (replies, patience) = (Replies::default(), config.timeouts.idle);
        Ok(Server { control, address, own, rule, replies, said: 0, patience })
    }

    /// Returns the next line, and the reply that ends with it, if one does. A cancelled call loses
    /// nothing.
    ///
    /// # Errors
    /// The server has closed the connection, or answers without end.
    pub async fn line(&mut self) -> Result<(Line, Option<Reply>)> {
        let Some(line) = self.control.line().await? else {
            bail!("the server has closed the connection");
        };
        self.said += line.raw.len();
        if self.said > LONGEST_ANSWER {
            bail!("server: limit of {LONGEST_ANSWER} bytes in an answer exceeded");
        }
        let reply = self.replies.take(&line);
        if reply.as_ref().is_some_and(|reply| !reply.is_preliminary()) {
            self.said = 0;
        }
        Ok((line, reply))
    }

    /// The next reply, preliminary or not; `client` hears every line of it.
    ///
    /// # Errors
    /// It has closed the connection, or says nothing.
    pub async fn reply(&mut self, mut client: Option<&mut Control>) -> Result<Reply> {
        loop {
            let line = timeout(self.patience, self.line()).await;
            let (line, reply) = line.context("the server says nothing")??;
            if let Some(client) = &mut client {
                client.say(&line.text).await?;
            }
            if let Some(reply) = reply {
                return Ok(reply);
            }
        }
    }

    /// The next reply that is not preliminary.
    ///
    /// # Errors
    /// Those of [`Server::reply`].
    pub async fn end(&mut self, mut client: Option<&mut Control>) -> Result<Reply> {
        loop {
            let reply = self.reply(client.as_deref_mut()).await?;
            if !reply.is_preliminary() {
                return Ok(reply);
            }
        }
    }

    /// Says something of which the client hears nothing; what the server answers.
    ///
    /// # Errors
    /// Those of [`Server::reply`].
    pub async fn ask(&mut self, text: impl AsRef<[u8]>) -> Result<Reply> {
        self.control.say(text).await?;
        self.end(None).await
    }
}
