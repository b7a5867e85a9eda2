//! The first part of a session: the client logs in and names its server, and the rules allow it or
//! not.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use crate::command::Command;
use crate::gateway::address::{canonical, canonical_endpoint};
use crate::gateway::destination::Destination;
use crate::gateway::policy::{Request, Rule};
use crate::gateway::replies;
use crate::gateway::server::Server;
use crate::gateway::session::Session;

/// Delay of the answer to a wrong password, multiplied by the client's count of wrong passwords.
const DELAY: Duration = Duration::from_secs(1);

/// The server that a client has been connected to.
pub struct Arrival {
    pub server: Server,
    pub opening: Opening,
}

/// The first command that the relay sends to the server.
pub enum Opening {
    /// None: the client waits for the server's greeting.
    Greeting,
    /// The client waits for the server's reply to this user name.
    User(Vec<u8>),
    /// The client waits for the server's reply to this user name and password.
    Login(Vec<u8>, Vec<u8>),
    /// None: the client has logged in at the gateway and waits for no reply.
    Nothing,
}

/// The login at the gateway so far.
enum LoginStage {
    Nothing,
    /// An account name. The password follows.
    Account(Vec<u8>),
    /// User, account and server in one command. Both passwords follow in another.
    Joined {
        user: Vec<u8>,
        account: Vec<u8>,
        destination: Destination,
    },
}

impl Session {
    /// Serves the client until it is connected to a server. Returns `None` if the client leaves
    /// before.
    ///
    /// # Errors
    /// Fails if a connection breaks, a server does not answer, the rules refuse a transparent
    /// client, or the client sends too many wrong passwords.
    pub async fn receive(&mut self) -> Result<Option<Arrival>> {
        if self.transparent && self.gateway.accounts.is_none() {
            let server = self.transparent_server().await?;
            return Ok(Some(Arrival { server, opening: Opening::Greeting }));
        }
        let greeting = match (&self.gateway.accounts, self.transparent) {
            (None, _) => "220 FTP gateway: log in as name@host",
            (Some(_), false) => "220 FTP gateway: log in at it, and then as name@host",
            (Some(_), true) => "220 FTP gateway: log in at it, and then at the server",
        };
        self.client.send(greeting).await?;
        let mut stage = LoginStage::Nothing;
        while let Some(line) = self.client.line().await? {
            let command = Command::parse(&line);
            let is_in = self.gateway.accounts.is_none() || self.journal.account.is_some();
            match command.verb.as_str() {
                "USER" if !is_in => stage = self.account(&command).await?,
                "PASS" if !is_in => match self.password(&command, stage).await? {
                    Some(arrival) => return Ok(Some(arrival)),
                    None => stage = LoginStage::Nothing,
                },
                "USER" => {
                    let Some((user, destination)) = Destination::split_user(command.text()) else {
                        self.answer(&command, replies::NO_SERVER).await?;
                        continue;
                    };
                    let opening = Opening::User(user.as_bytes().to_vec());
                    if let Some(server) = self.connect_to(&command, &destination).await? {
                        return Ok(Some(Arrival { server, opening }));
                    }
                }
                "OPEN" | "SITE" if is_in => {
                    let Some(destination) = Destination::parse(command.text()) else {
                        self.answer(&command, replies::NO_SERVER).await?;
                        continue;
                    };
                    if let Some(server) = self.connect_to(&command, &destination).await? {
                        return Ok(Some(Arrival { server, opening: Opening::Greeting }));
                    }
                }
                "QUIT" => {
                    self.answer(&command, "221 Goodbye").await?;
                    return Ok(None);
                }
                _ => self.other(&command, is_in).await?,
            }
        }
        Ok(None)
    }

    /// Answers a command that neither logs in nor names a server.
    async fn other(&mut self, command: &Command, is_in: bool) -> Result<()> {
        let text = match command.verb.as_str() {
            "NOOP" => "200 Here I am",
            "SYST" => "215 UNIX Type: L8",
            "HELP" => "214 USER name@host[:port], SITE host[:port] or OPEN host [port]",
            "AUTH" => replies::NO_TLS,
            "" => replies::UNKNOWN,
            "PASS" => "503 USER comes first",
            "FEAT" => {
                self.client.send("211-Features of the gateway").await?;
                for feature in replies::FEATURES {
                    self.client.send(format!(" {feature}")).await?;
                }
                "211 End"
            }
            _ if is_in => replies::NO_SERVER,
            _ => replies::NO_ACCOUNT,
        };
        self.answer(command, text).await
    }

    /// Handles `USER account` and `USER user@account@host` before the login at the gateway.
    async fn account(&mut self, command: &Command) -> Result<LoginStage> {
        let joined = Destination::split_user(command.text()).filter(|_| !self.transparent);
        let parts = joined.and_then(|(names, destination)| {
            let (user, account) = names.rsplit_once('@')?;
            Some((user.as_bytes().to_vec(), account.as_bytes().to_vec(), destination))
        });
        if let Some((user, account, destination)) = parts {
            self.answer(command, "331 The passwords, server's@gateway's").await?;
            return Ok(LoginStage::Joined { user, account, destination });
        }
        if command.text().contains('@') {
            self.answer(command, replies::NO_ACCOUNT).await?;
            return Ok(LoginStage::Nothing);
        }
        self.answer(command, "331 The password at the gateway").await?;
        Ok(LoginStage::Account(command.text().as_bytes().to_vec()))
    }

    /// Handles `PASS` before the login at the gateway.
    async fn password(&mut self, command: &Command, stage: LoginStage) -> Result<Option<Arrival>> {
        let given = command.argument.as_slice();
        let (name, password) = match &stage {
            LoginStage::Nothing => {
                self.answer(command, "503 USER comes first").await?;
                return Ok(None);
            }
            LoginStage::Account(name) => (name.clone(), given),
            LoginStage::Joined { account, .. } => {
                let at = given.iter().rposition(|byte| *byte == b'@');
                (account.clone(), at.map_or(&b""[..], |at| &given[at + 1..]))
            }
        };
        let gateway = self.gateway.clone();
        let client = self.from.ip();
        let Some(guess) = gateway.guesses.count(client, Instant::now()) else {
            self.answer(command, "530 Too many wrong passwords, come later").await?;
            bail!("too many failed logins");
        };
        let is_right = match &gateway.accounts {
            Some(accounts) => accounts.check(&name, password).await,
            None => false,
        };
        if !is_right {
            tokio::time::sleep(DELAY * guess).await;
            self.answer(command, "530 Not at this gateway").await?;
            if guess >= gateway.config.limits.login_failures {
                bail!("too many failed logins");
            }
            return Ok(None);
        }
        gateway.guesses.was_right(client);
        self.journal.account = Some(String::from_utf8_lossy(&name).into_owned());
        match stage {
            LoginStage::Joined { user, destination, .. } => {
                let left = given.len() - password.len() - 1;
                let opening = Opening::Login(user, given[..left].to_vec());
                let server = self.connect_to(command, &destination).await?;
                Ok(server.map(|server| Arrival { server, opening }))
            }
            _ if self.transparent => {
                let mut server = self.transparent_server().await?;
                server.final_reply(None).await?;
                self.answer(command, "230 Now log in at the server").await?;
                Ok(Some(Arrival { server, opening: Opening::Nothing }))
            }
            _ => {
                self.answer(command, "230 Now log in as name@host").await?;
                Ok(None)
            }
        }
    }

    /// Connects a transparent client to the server whose address it used.
    async fn transparent_server(&mut self) -> Result<Server> {
        let server = canonical_endpoint(self.at);
        let Some(rule) = self.allowing_rule(None, server) else {
            bail!("the rules of the gateway do not let you go to {server}");
        };
        self.journal.server = Some(server.to_string());
        Server::connect(&self.gateway, server, rule).await
    }

    /// Connects to the server that `command` names. Returns `None`, after an answer to the client,
    /// if the name is unknown or the rules do not allow the server.
    async fn connect_to(
        &mut self,
        command: &Command,
        destination: &Destination,
    ) -> Result<Option<Server>> {
        let gateway = self.gateway.clone();
        let Ok(addresses) = destination.addresses(&*gateway.network).await else {
            self.answer(command, "530 There is no such host").await?;
            return Ok(None);
        };
        let name = destination.name();
        let candidates: Vec<(SocketAddr, Arc<Rule>)> = addresses
            .into_iter()
            .filter_map(|address| Some((address, self.allowing_rule(name, address)?)))
            .collect();
        if candidates.is_empty() {
            self.answer(command, "530 The rules of the gateway do not let you go there").await?;
            return Ok(None);
        }
        let mut problem = None;
        for (address, rule) in candidates {
            self.journal.server = Some(match name {
                Some(name) => format!("{name}[{}]:{}", address.ip(), address.port()),
                None => address.to_string(),
            });
            match Server::connect(&gateway, address, rule).await {
                Ok(server) => return Ok(Some(server)),
                Err(error) => problem = Some(error),
            }
        }
        match problem {
            Some(problem) => Err(problem),
            None => Ok(None),
        }
    }

    fn allowing_rule(&self, name: Option<&str>, server: SocketAddr) -> Option<Arc<Rule>> {
        self.gateway.config.policy.decide(&Request {
            client: canonical(self.from.ip()),
            account: self.journal.account.as_deref(),
            name,
            server,
        })
    }
}
