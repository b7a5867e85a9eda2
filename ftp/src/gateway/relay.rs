//! The second part of a session. Allowed commands go to the server, and replies go back to the
//! client. The client arranges data connections with the gateway. The gateway arranges others with
//! the server, in the mode that the configuration names.

use std::collections::VecDeque;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use tokio::time::{Instant as Deadline, timeout, timeout_at};

use crate::command::{Command, Verb};
use crate::dialogue::Mode;
use crate::endpoint::{self, Endpoint, LOWEST_PORT};
use crate::gateway::data::{self, DataConnection};
use crate::gateway::destination::Destination;
use crate::gateway::held::Lines;
use crate::gateway::reception::Opening;
use crate::gateway::replies;
use crate::gateway::server::Server;
use crate::gateway::session::Session;
use crate::gateway::verbs::{self, Treatment};
use crate::line::Line;
use crate::reply::Reply;

/// The two data connections of a transfer.
pub struct DataConnections {
    pub client: DataConnection,
    pub server: DataConnection,
}

/// A client and the server it is connected to.
pub struct Relay<'a> {
    pub session: &'a mut Session,
    pub server: Server,
    /// The data connections for the next transfer.
    pub connections: Option<DataConnections>,
    /// Commands that arrived during a transfer.
    pub held: VecDeque<Line>,
    /// True after `EPSV ALL`: the client will use `EPSV` only.
    only_extended: bool,
    /// True after the server has accepted the login.
    is_in: bool,
}

/// The continuation of a session after a command.
#[derive(PartialEq, Eq)]
enum Next {
    GoOn,
    End,
}

impl<'a> Relay<'a> {
    /// Creates the relay between the client of a session and a server.
    pub fn new(session: &'a mut Session, server: Server) -> Self {
        Relay {
            session,
            server,
            connections: None,
            held: VecDeque::new(),
            only_extended: false,
            is_in: false,
        }
    }

    /// Relays commands until the client quits or leaves.
    ///
    /// # Errors
    /// Fails if a connection breaks, a timeout passes, a line is not valid, or the server ends the
    /// session.
    pub async fn run(mut self, opening: Opening) -> Result<()> {
        let timeouts = self.session.gateway.config.timeouts;
        let login = Deadline::from_std(self.session.began + timeouts.login);
        let opened = timeout_at(login, Box::pin(self.open(opening))).await;
        opened.context("no login in time")??;
        loop {
            let next = match self.is_in {
                true => self.step().await?,
                false => timeout_at(login, self.step()).await.context("no login in time")??,
            };
            if next == Next::End {
                return Ok(());
            }
        }
    }

    /// Reads a command and handles it to its last reply.
    async fn step(&mut self) -> Result<Next> {
        match self.next_line().await? {
            Some(line) => Box::pin(self.command(&Command::parse(&line))).await,
            None => Ok(Next::End),
        }
    }

    /// Waits for the server's greeting and sends the login that the client has already given.
    async fn open(&mut self, opening: Opening) -> Result<()> {
        if let Opening::Nothing = opening {
            return Ok(());
        }
        let client = match opening {
            Opening::Greeting => Some(&mut self.session.client),
            _ => None,
        };
        let greeting = self.server.final_reply(client).await?;
        if !(200..300).contains(&greeting.code) {
            bail!("the server refused: {} {}", greeting.code, greeting.text);
        }
        match opening {
            Opening::Greeting | Opening::Nothing => Ok(()),
            Opening::User(user) => self.user(&client_command("USER", &user), &user).await,
            Opening::Login(user, password) => {
                let command = client_command("USER", &user);
                if !self.allows_user(&command, &user).await? {
                    return Ok(());
                }
                let began = Instant::now();
                self.session.journal.user = Some(user.clone());
                let reply = self.server.request(line("USER", &user)).await?;
                self.session.journal.command(&command, reply.code, began, None);
                if reply.code != 331 {
                    self.is_in = reply.code == 230;
                    return self
                        .session
                        .client
                        .send(format!("{} {}", reply.code, reply.text))
                        .await;
                }
                self.password(&client_command("PASS", &password)).await
            }
        }
    }

    /// Returns the client's next line; `None` if the client has left. A line of the server between
    /// two commands ends the session.
    async fn next_line(&mut self) -> Result<Option<Line>> {
        if let Some(line) = self.held.pop_front() {
            return Ok(Some(line));
        }
        let idle = self.session.gateway.config.timeouts.idle;
        let hearing = async {
            tokio::select! {
                line = self.session.client.line() => line,
                line = self.server.line() => {
                    let (line, _) = line?;
                    bail!("the server ends the session: {}", line.shown());
                }
            }
        };
        timeout(idle, hearing).await.context("idle for too long")?
    }

    async fn command(&mut self, command: &Command) -> Result<Next> {
        let verb = command.verb.as_str();
        let kind = verbs::kind(verb);
        if let Some(refusal) = self.refusal(command, kind) {
            self.session.answer(command, refusal).await?;
            return Ok(Next::GoOn);
        }
        match (verb, kind) {
            ("QUIT", _) => {
                self.forward(command).await?;
                return Ok(Next::End);
            }
            ("USER", _) => {
                let user = self.user_name(command);
                self.user(command, &user).await?;
            }
            ("PASS" | "ACCT", _) => self.password(command).await?,
            ("FEAT", _) => self.features(command).await?,
            (_, Treatment::Upload) => self.transfer(command, true).await?,
            (_, Treatment::Download) => self.transfer(command, false).await?,
            (_, Treatment::Arrange) => {
                let text = Box::pin(self.arrange(command)).await?;
                self.session.answer(command, &text).await?;
            }
            _ => _ = self.forward(command).await?,
        }
        Ok(Next::GoOn)
    }

    /// Returns the reply that refuses a command; `None` if the command is allowed.
    fn refusal(&self, command: &Command, kind: Treatment) -> Option<&'static str> {
        let verb = command.verb.as_str();
        // in stream mode, deflated or not, data end with the connection; the gateway detects no
        // other end
        let fits =
            |allowed: &[&str]| allowed.iter().any(|a| command.text().eq_ignore_ascii_case(a));
        match (verb, kind) {
            ("", _) => Some(replies::UNKNOWN),
            ("AUTH", _) => Some(replies::NO_TLS),
            (_, Treatment::Never) => Some(replies::NEVER),
            _ if !self.server.rule.commands.allow(verb) => Some(replies::NOT_ALLOWED),
            ("MODE", _) if !fits(&["S", "Z"]) => Some("504 Stream mode only"),
            ("STRU", _) if !fits(&["F"]) => Some("504 Files only"),
            _ => None,
        }
    }

    /// Forwards a command, and the reply to the client.
    async fn forward(&mut self, command: &Command) -> Result<Reply> {
        let began = Instant::now();
        self.server.control.send(line(&command.verb, &command.argument)).await?;
        let reply = self.server.final_reply(Some(&mut self.session.client)).await?;
        self.session.journal.command(command, reply.code, began, None);
        Ok(reply)
    }

    /// Returns the name in `USER`. Some clients repeat `name@host` of this server; the host is
    /// removed then.
    fn user_name(&self, command: &Command) -> Vec<u8> {
        let same = |destination: &Destination| {
            let named = self.session.journal.server.as_deref().unwrap_or_default();
            destination.port == self.server.address.port()
                && match destination.name() {
                    Some(name) => named.starts_with(&format!("{name}[")),
                    None => {
                        Destination::parse(&self.server.address.to_string()).as_ref()
                            == Some(destination)
                    }
                }
        };
        match Destination::split_user(command.text()) {
            Some((user, destination)) if !self.session.transparent && same(&destination) => {
                user.as_bytes().to_vec()
            }
            _ => command.text().as_bytes().to_vec(),
        }
    }

    /// Returns true if the rule allows this user name, and refuses the command otherwise.
    async fn allows_user(&mut self, command: &Command, user: &[u8]) -> Result<bool> {
        let may = self.server.rule.allows_user(user);
        if !may {
            self.session.answer(command, "530 The gateway does not allow this name").await?;
        }
        Ok(may)
    }

    async fn user(&mut self, command: &Command, user: &[u8]) -> Result<()> {
        if !self.allows_user(command, user).await? {
            return Ok(());
        }
        self.session.journal.user = Some(user.to_vec());
        let reply = self.forward(&Command { argument: user.to_vec(), ..command.clone() }).await?;
        self.is_in |= reply.code == 230;
        Ok(())
    }

    async fn password(&mut self, command: &Command) -> Result<()> {
        let reply = self.forward(command).await?;
        self.is_in |= matches!(reply.code, 200..300);
        Ok(())
    }

    /// Sends the features that both the server and the gateway support and the rules allow (RFC
    /// 2389).
    async fn features(&mut self, command: &Command) -> Result<()> {
        let began = Instant::now();
        self.server.control.send("FEAT").await?;
        let mut heard = Lines::default();
        let idle = self.session.gateway.config.timeouts.idle;
        loop {
            let line = timeout(idle, self.server.line()).await;
            let (line, reply) = line.context("no reply from the server in time")??;
            match reply {
                // a server without FEAT has the gateway's features only
                Some(reply) if !reply.is_preliminary() => break,
                Some(_) => {}
                None => heard.push(line)?,
            }
        }
        let mut features: Vec<String> = replies::FEATURES.map(str::to_string).to_vec();
        features.extend(heard.iter().filter_map(|text| self.feature(text)));
        features.sort();
        self.session.client.send("211-Features").await?;
        for feature in features {
            self.session.client.send(format!(" {feature}")).await?;
        }
        self.session.journal.command(command, 211, began, None);
        self.session.client.send("211 End").await
    }

    /// Returns the feature in a line of the server, if the client may use it.
    fn feature(&self, text: &[u8]) -> Option<String> {
        let text = str::from_utf8(text).ok()?.strip_prefix(' ')?.trim();
        let word = text.split(' ').next()?.to_ascii_uppercase();
        let is_own = replies::FEATURES.contains(&word.as_str());
        // these two are not commands: they describe the encoding of names
        let is_property = matches!(word.as_str(), "UTF8" | "TVFS");
        let may = is_property || self.server.rule.commands.allow(&word);
        (may && !is_own).then(|| text.to_string())
    }

    /// Handles `PORT`, `EPRT`, `PASV` and `EPSV`. The client chooses the mode of its data
    /// connection, the configuration that of the server's. Returns the reply for the client.
    async fn arrange(&mut self, command: &Command) -> Result<String> {
        self.connections = None;
        if self.only_extended && command.verb != "EPSV" {
            return Ok("503 EPSV ALL was said".into());
        }
        let (connection, text) = match self.client_connection(command)? {
            Ok((connection, text)) => (connection, text),
            Err(refusal) => return Ok(refusal),
        };
        let Some(client) = connection else {
            self.only_extended = true;
            return Ok(text);
        };
        match Box::pin(self.server_connection()).await? {
            Ok(server) => {
                self.connections = Some(DataConnections { client, server });
                Ok(text)
            }
            Err(refusal) => Ok(refusal),
        }
    }

    /// Returns the data connection of the client and the reply, or the reply that refuses the
    /// command. `EPSV ALL` has no data connection.
    fn client_connection(
        &self,
        command: &Command,
    ) -> Result<Result<(Option<DataConnection>, String), String>> {
        let session = &self.session;
        let family = if session.from.is_ipv4() { 1 } else { 2 };
        let other_family = || Ok(Err(format!("522 Use ({family})")));
        match command.meaning() {
            Verb::Port(to) | Verb::ExtendedPort(to) => {
                if to.is_ipv4() != session.from.is_ipv4() {
                    return other_family();
                }
                if to.ip() != session.from.ip() || to.port() < LOWEST_PORT {
                    return Ok(Err(replies::NOT_YOURS.into()));
                }
                let connection = DataConnection::Connecting(to, self.own_address()?);
                Ok(Ok((Some(connection), format!("200 {} accepted", command.verb))))
            }
            Verb::OnlyExtendedPassive => Ok(Ok((None, "200 EPSV only".into()))),
            Verb::ExtendedPassive => {
                let wanted = command.text();
                if !wanted.is_empty() && wanted != family.to_string() {
                    return other_family();
                }
                let (connection, at) = self.wait_for_client()?;
                let text = format!("229 Entering Extended Passive Mode (|||{}|)", at.port());
                Ok(Ok((Some(connection), text)))
            }
            Verb::Passive => {
                if session.from.is_ipv6() {
                    return Ok(Err("502 PASV is for IPv4: use EPSV".into()));
                }
                let (connection, at) = self.wait_for_client()?;
                let numbers = endpoint::to_numbers(at).context("an address of IPv4")?;
                Ok(Ok((Some(connection), format!("227 Entering Passive Mode ({numbers})"))))
            }
            Verb::Garbled | Verb::Other => Ok(Err(replies::GARBLED.into())),
        }
    }

    /// Returns the source address of connections to the client. It is unspecified for transparent
    /// clients, because the gateway cannot connect from a server's address.
    fn own_address(&self) -> Result<std::net::IpAddr> {
        Ok(match (self.session.transparent, self.session.from) {
            (false, _) => self.session.at.ip(),
            (true, Endpoint::V4(_)) => std::net::Ipv4Addr::UNSPECIFIED.into(),
            (true, Endpoint::V6(_)) => std::net::Ipv6Addr::UNSPECIFIED.into(),
        })
    }

    /// Expects a connection of the client, and returns the endpoint to announce.
    fn wait_for_client(&self) -> Result<(DataConnection, Endpoint)> {
        let (session, gateway) = (&self.session, &self.session.gateway);
        let (client, here, ports) =
            (session.from.ip(), session.at.ip(), &gateway.config.data_ports);
        if session.transparent {
            let expected = gateway.expectations.expect(client, here, ports)?;
            let announced = expected.announced();
            return Ok((DataConnection::Expected(expected), announced));
        }
        let listener = data::listen(here, ports)?;
        let at = listener.local_addr()?;
        Ok((DataConnection::Listening(listener, client), at))
    }

    /// Returns the data connection of the server, or the reply that refuses the command.
    async fn server_connection(&mut self) -> Result<Result<DataConnection, String>> {
        match self.session.gateway.config.server_data {
            Mode::Passive => self.passive().await,
            Mode::Active => self.active().await,
        }
    }

    /// Connects to the port that the server names. The address in its reply is ignored: data
    /// connections lead to the session's server.
    async fn passive(&mut self) -> Result<Result<DataConnection, String>> {
        let mut reply = self
            .server
            .request(if self.server.address.is_ipv4() { "PASV" } else { "EPSV" })
            .await?;
        // the server knows EPSV only, or is behind another translator
        if self.server.address.is_ipv4() && matches!(reply.code, 500..=504 | 522) {
            reply = self.server.request("EPSV").await?;
        }
        let port = match reply.code {
            227 => endpoint::parse_passive(&reply.text).map(|endpoint| endpoint.port()),
            229 => endpoint::parse_extended_passive(&reply.text),
            code => return Ok(Err(refused(code, &reply))),
        };
        let Some(port) = port.filter(|port| *port >= LOWEST_PORT) else {
            return Ok(Err("425 The server names no port for data".into()));
        };
        let to = Endpoint::new(self.server.address.ip(), port);
        let gateway = &self.session.gateway;
        let patience = gateway.config.timeouts.connect;
        let connection = DataConnection::Connecting(to, self.server.own)
            .establish(&*gateway.network, patience)
            .await;
        Ok(connection.map(DataConnection::Connected).map_err(|problem| {
            log::warn!("#{} data connection: {problem:#}", self.session.journal.id);
            "425 No data connection to the server".to_string()
        }))
    }

    /// Listens for a connection of the server.
    async fn active(&mut self) -> Result<Result<DataConnection, String>> {
        let listener = data::listen(self.server.own, &(LOWEST_PORT..=u16::MAX))?;
        let at = listener.local_addr()?;
        let text = match endpoint::to_numbers(at) {
            Some(numbers) => format!("PORT {numbers}"),
            None => format!("EPRT {}", endpoint::to_extended(at)),
        };
        let reply = self.server.request(text).await?;
        if !(200..300).contains(&reply.code) {
            return Ok(Err(refused(reply.code, &reply)));
        }
        Ok(Ok(DataConnection::Listening(listener, self.server.address.ip())))
    }
}

/// Formats the reply for the client if the server arranges no data connection.
fn refused(code: u16, reply: &Reply) -> String {
    match code {
        // most likely the client has not logged in
        400..600 => format!("{code} {}", reply.text),
        _ => "425 The server arranges for no data connection".into(),
    }
}

/// Formats a command without its line end.
pub fn line(verb: &str, argument: &[u8]) -> Vec<u8> {
    let mut line = verb.as_bytes().to_vec();
    if !argument.is_empty() {
        line.push(b' ');
        line.extend(argument);
    }
    line
}

/// Creates a command as if the client had sent it.
fn client_command(verb: &str, argument: &[u8]) -> Command {
    Command { verb: verb.to_string(), argument: argument.to_vec() }
}
