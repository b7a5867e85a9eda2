//! The session's own control connection, to the server.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use tokio::time::timeout;

use crate::gateway::config::Config;
use crate::gateway::control::Control;
use crate::gateway::data;
use crate::gateway::policy::Rule;
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
    patience: Duration,
}

impl Server {
    /// Connects to it.
    ///
    /// # Errors
    /// It does not answer.
    pub async fn connect(config: &Config, address: SocketAddr, rule: Arc<Rule>) -> Result<Server> {
        let source = config.source.iter().find(|source| source.is_ipv4() == address.is_ipv4());
        let anywhere = match address {
            SocketAddr::V4(_) => std::net::Ipv4Addr::UNSPECIFIED.into(),
            SocketAddr::V6(_) => std::net::Ipv6Addr::UNSPECIFIED.into(),
        };
        let connecting = data::connect(address, *source.unwrap_or(&anywhere));
        let stream = timeout(config.timeouts.connect, connecting).await;
        let stream = stream.with_context(|| format!("{address} does not answer"))??;
        let control = Control::new("server", stream, config.timeouts.idle)?;
        let own = control.ends()?.0.ip();
        let replies = Replies::default();
        Ok(Server { control, address, own, rule, replies, patience: config.timeouts.idle })
    }

    /// The next line, and the reply that ends with it, if one does. A call that is given up loses
    /// nothing.
    ///
    /// # Errors
    /// It has closed the connection.
    pub async fn line(&mut self) -> Result<(Line, Option<Reply>)> {
        let Some(line) = self.control.line().await? else {
            bail!("the server has closed the connection");
        };
        let reply = self.replies.take(&line);
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
