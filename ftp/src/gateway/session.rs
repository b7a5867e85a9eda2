//! The state of a session and of the gateway.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use anyhow::Result;
use tokio::net::TcpStream;

use crate::command::Command;
use crate::gateway::accounts::Accounts;
use crate::gateway::config::Config;
use crate::gateway::control::Control;
use crate::gateway::expected::Expectations;
use crate::gateway::journal::Journal;
use crate::gateway::limits::{Guesses, Sessions};
use crate::gateway::network::Network;

/// State that all sessions share.
pub struct Gateway {
    pub(super) config: Config,
    pub(super) accounts: Option<Accounts>,
    pub(super) expectations: Arc<Expectations>,
    pub(super) sessions: Arc<Sessions>,
    pub(super) guesses: Guesses,
    pub(super) network: Box<dyn Network>,
}

impl Gateway {
    /// Creates a gateway without sessions, which reaches the outside through `network`.
    pub fn new(config: Config, accounts: Option<Accounts>, network: Box<dyn Network>) -> Gateway {
        let limits = config.limits;
        Gateway {
            config,
            accounts,
            expectations: Arc::default(),
            sessions: Arc::new(Sessions::new(limits.sessions, limits.sessions_per_client)),
            guesses: Guesses::new(limits.login_failures),
            network,
        }
    }
}

/// A session of one client.
pub struct Session {
    pub(super) gateway: Arc<Gateway>,
    pub(super) client: Control,
    /// The client's address and port.
    pub(super) from: SocketAddr,
    /// The local end of the client's connection. For a transparent client it is the server's
    /// address.
    pub(super) at: SocketAddr,
    /// True if the client does not know of the gateway.
    pub(super) transparent: bool,
    pub(super) journal: Journal,
    pub(super) began: Instant,
}

impl Session {
    /// Starts the session of a client that has connected.
    ///
    /// # Errors
    /// Fails if the client has left already.
    pub fn new(
        gateway: Arc<Gateway>,
        id: u64,
        stream: TcpStream,
        transparent: bool,
    ) -> Result<Self> {
        let client = Control::new("client", stream, gateway.config.timeouts.idle)?;
        let (at, from) = client.addresses()?;
        let journal = Journal::new(id, from.ip());
        Ok(Session { gateway, client, from, at, transparent, journal, began: Instant::now() })
    }

    /// Logs a command and sends the gateway's own reply `text`, which begins with a code.
    ///
    /// # Errors
    /// Fails if the connection breaks, or if the client does not read in time.
    pub async fn answer(&mut self, command: &Command, text: &str) -> Result<()> {
        let code = text.get(..3).and_then(|code| code.parse().ok()).unwrap_or_default();
        self.journal.command(command, code, Instant::now(), None);
        self.client.send(text).await
    }
}
