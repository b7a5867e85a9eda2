//! The second part of a session: what the client says goes to the server if it may, and what the
//! server answers goes back. Who arranges for data connections arranges for them with the gateway,
//! which does the same with the server, in the way that suits it.

use std::collections::VecDeque;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use tokio::time::{Instant as Deadline, timeout, timeout_at};

use crate::command::{Command, Verb};
use crate::dialogue::Mode;
use crate::endpoint::{self, Endpoint, LOWEST_PORT};
use crate::gateway::data::{self, Way};
use crate::gateway::destination::Destination;
use crate::gateway::held::Lines;
use crate::gateway::reception::Opening;
use crate::gateway::replies;
use crate::gateway::server::Server;
use crate::gateway::session::Session;
use crate::gateway::verbs::{self, Kind};
use crate::line::Line;
use crate::reply::Reply;

/// Both ways of a data connection.
pub struct Ways {
    pub client: Way,
    pub server: Way,
}

/// A client that has arrived.
pub struct Relay<'a> {
    pub session: &'a mut Session,
    pub server: Server,
    /// For the next transfer.
    pub ways: Option<Ways>,
    /// Commands that came while data were moving.
    pub held: VecDeque<Line>,
    /// The client will ask by `EPSV` alone.
    only_extended: bool,
    /// Whether the server has let the client in.
    is_in: bool,
}

/// Whether a session goes on.
#[derive(PartialEq, Eq)]
enum Next {
    GoOn,
    End,
}

impl<'a> Relay<'a> {
    /// Between the client of a session and a server.
    pub fn new(session: &'a mut Session, server: Server) -> Self {
        Relay {
            session,
            server,
            ways: None,
            held: VecDeque::new(),
            only_extended: false,
            is_in: false,
        }
    }

    /// Goes on until one side has no more to say.
    ///
    /// # Errors
    /// What ends the session before.
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

    /// A command and all that comes of it.
    async fn step(&mut self) -> Result<Next> {
        match self.hear().await? {
            Some(line) => Box::pin(self.command(&Command::parse(&line))).await,
            None => Ok(Next::End),
        }
    }

    /// The first words.
    async fn open(&mut self, opening: Opening) -> Result<()> {
        if let Opening::Nothing = opening {
            return Ok(());
        }
        let client = match opening {
            Opening::Greeting => Some(&mut self.session.client),
            _ => None,
        };
        let greeting = self.server.end(client).await?;
        if !(200..300).contains(&greeting.code) {
            bail!("the server refused: {} {}", greeting.code, greeting.text);
        }
        match opening {
            Opening::Greeting | Opening::Nothing => Ok(()),
            Opening::User(user) => self.user(&said("USER", &user), &user).await,
            Opening::Login(user, password) => {
                let command = said("USER", &user);
                if !self.may_be(&command, &user).await? {
                    return Ok(());
                }
                let began = Instant::now();
                self.session.journal.user = Some(user.clone());
                let reply = self.server.ask(line("USER", &user)).await?;
                self.session.journal.command(&command, reply.code, began, None);
                if reply.code != 331 {
                    self.is_in = reply.code == 230;
                    return self.session.client.say(format!("{} {}", reply.code, reply.text)).await;
                }
                self.password(&said("PASS", &password)).await
            }
        }
    }

    /// The client's next line; `None` if it has left. A server that speaks now takes its leave.
    async fn hear(&mut self) -> Result<Option<Line>> {
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
        timeout(idle, hearing).await.context("nothing was said for too long")?
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
                self.pass_on(command).await?;
                return Ok(Next::End);
            }
            ("USER", _) => {
                let user = self.user_name(command);
                self.user(command, &user).await?;
            }
            ("PASS" | "ACCT", _) => self.password(command).await?,
            ("FEAT", _) => self.features(command).await?,
            (_, Kind::Upload) => self.transfer(command, true).await?,
            (_, Kind::Download) => self.transfer(command, false).await?,
            (_, Kind::Way) => {
                let text = Box::pin(self.arrange(command)).await?;
                self.session.answer(command, &text).await?;
            }
            _ => _ = self.pass_on(command).await?,
        }
        Ok(Next::GoOn)
    }

    /// Why a command goes no further.
    fn refusal(&self, command: &Command, kind: Kind) -> Option<&'static str> {
        let verb = command.verb.as_str();
        // stream mode, deflated or not, ends where the connection ends; the gateway knows no other
        // end
        let fits =
            |allowed: &[&str]| allowed.iter().any(|a| command.text().eq_ignore_ascii_case(a));
        match (verb, kind) {
            ("", _) => Some(replies::UNKNOWN),
            ("AUTH", _) => Some(replies::NO_TLS),
            (_, Kind::Never) => Some(replies::NEVER),
            _ if !self.server.rule.commands.allow(verb) => Some(replies::NOT_ALLOWED),
            ("MODE", _) if !fits(&["S", "Z"]) => Some("504 Stream mode only"),
            ("STRU", _) if !fits(&["F"]) => Some("504 Files only"),
            _ => None,
        }
    }

    /// Passes a command on and its reply back.
    async fn pass_on(&mut self, command: &Command) -> Result<Reply> {
        let began = Instant::now();
        self.server.control.say(line(&command.verb, &command.argument)).await?;
        let reply = self.server.end(Some(&mut self.session.client)).await?;
        self.session.journal.command(command, reply.code, began, None);
        Ok(reply)
    }

    /// The name in `USER`; a client that was told to say `name@host` says it once more.
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
        match Destination::of_user(command.text()) {
            Some((user, destination)) if !self.session.transparent && same(&destination) => {
                user.as_bytes().to_vec()
            }
            _ => command.text().as_bytes().to_vec(),
        }
    }

    /// Whether the rule lets the client use this name.
    async fn may_be(&mut self, command: &Command, user: &[u8]) -> Result<bool> {
        let may = self.server.rule.may_be(user);
        if !may {
            self.session.answer(command, "530 The gateway does not allow this name").await?;
        }
        Ok(may)
    }

    async fn user(&mut self, command: &Command, user: &[u8]) -> Result<()> {
        if !self.may_be(command, user).await? {
            return Ok(());
        }
        self.session.journal.user = Some(user.to_vec());
        let reply = self.pass_on(&Command { argument: user.to_vec(), ..command.clone() }).await?;
        self.is_in |= reply.code == 230;
        Ok(())
    }

    async fn password(&mut self, command: &Command) -> Result<()> {
        let reply = self.pass_on(command).await?;
        self.is_in |= matches!(reply.code, 200..300);
        Ok(())
    }

    /// What both the server and the gateway can do, and the rules allow (RFC 2389).
    async fn features(&mut self, command: &Command) -> Result<()> {
        let began = Instant::now();
        self.server.control.say("FEAT").await?;
        let mut heard = Lines::default();
        let idle = self.session.gateway.config.timeouts.idle;
        loop {
            let line = timeout(idle, self.server.line()).await;
            let (line, reply) = line.context("the server says nothing")??;
            match reply {
                // one that knows of none has those of the gateway
                Some(reply) if !reply.is_preliminary() => break,
                Some(_) => {}
                None => heard.push(line)?,
            }
        }
        let mut features: Vec<String> = replies::FEATURES.map(str::to_string).to_vec();
        features.extend(heard.iter().filter_map(|text| self.feature(text)));
        features.sort();
        self.session.client.say("211-Features").await?;
        for feature in features {
            self.session.client.say(format!(" {feature}")).await?;
        }
        self.session.journal.command(command, 211, began, None);
        self.session.client.say("211 End").await
    }

    /// A line of the server's features, if they are for the client.
    fn feature(&self, text: &[u8]) -> Option<String> {
        let text = str::from_utf8(text).ok()?.strip_prefix(' ')?.trim();
        let word = text.split(' ').next()?.to_ascii_uppercase();
        let is_own = replies::FEATURES.contains(&word.as_str());
        // these are not commands, but say how names are written
        let is_property = matches!(word.as_str(), "UTF8" | "TVFS");
        let may = is_property || self.server.rule.commands.allow(&word);
        (may && !is_own).then(|| text.to_string())
    }

    /// `PORT`, `EPRT`, `PASV` and `EPSV`: the way to the client as it wants it, the one to the
    /// server as the configuration says. What the client is to hear.
    async fn arrange(&mut self, command: &Command) -> Result<String> {
        self.ways = None;
        if self.only_extended && command.verb != "EPSV" {
            return Ok("503 EPSV ALL was said".into());
        }
        let (way, text) = match self.client_way(command)? {
            Ok((way, text)) => (way, text),
            Err(refusal) => return Ok(refusal),
        };
        let Some(client) = way else {
            self.only_extended = true;
            return Ok(text);
        };
        match Box::pin(self.server_way()).await? {
            Ok(server) => {
                self.ways = Some(Ways { client, server });
                Ok(text)
            }
            Err(refusal) => Ok(refusal),
        }
    }

    /// The way to the client and what it is told; no way for `EPSV ALL`. Or what is wrong.
    fn client_way(&self, command: &Command) -> Result<Result<(Option<Way>, String), String>> {
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
                let way = Way::Connecting(to, self.own_address()?);
                Ok(Ok((Some(way), format!("200 {} it is", command.verb))))
            }
            Verb::OnlyExtendedPassive => Ok(Ok((None, "200 EPSV only".into()))),
            Verb::ExtendedPassive => {
                let wanted = command.text();
                if !wanted.is_empty() && wanted != family.to_string() {
                    return other_family();
                }
                let (way, at) = self.wait_for_client()?;
                let text = format!("229 Entering Extended Passive Mode (|||{}|)", at.port());
                Ok(Ok((Some(way), text)))
            }
            Verb::Passive => {
                if session.from.is_ipv6() {
                    return Ok(Err("502 PASV is for IPv4: use EPSV".into()));
                }
                let (way, at) = self.wait_for_client()?;
                let numbers = endpoint::to_numbers(at).context("an address of IPv4")?;
                Ok(Ok((Some(way), format!("227 Entering Passive Mode ({numbers})"))))
            }
            Verb::Garbled | Verb::Other => Ok(Err(replies::GARBLED.into())),
        }
    }

    /// Where connections to the client come from. In a server's name the gateway cannot connect.
    fn own_address(&self) -> Result<std::net::IpAddr> {
        Ok(match (self.session.transparent, self.session.from) {
            (false, _) => self.session.at.ip(),
            (true, Endpoint::V4(_)) => std::net::Ipv4Addr::UNSPECIFIED.into(),
            (true, Endpoint::V6(_)) => std::net::Ipv6Addr::UNSPECIFIED.into(),
        })
    }

    /// Waits for a connection of the client, and where.
    fn wait_for_client(&self) -> Result<(Way, Endpoint)> {
        let (session, gateway) = (&self.session, &self.session.gateway);
        let (client, here, ports) =
            (session.from.ip(), session.at.ip(), &gateway.config.data_ports);
        if session.transparent {
            let expected = gateway.expectations.expect(client, here, ports)?;
            let told = expected.told();
            return Ok((Way::Expected(expected), told));
        }
        let listener = data::listen(here, ports)?;
        let at = listener.local_addr()?;
        Ok((Way::Listening(listener, client), at))
    }

    /// The way to the server, or what is wrong.
    async fn server_way(&mut self) -> Result<Result<Way, String>> {
        match self.session.gateway.config.server_data {
            Mode::Passive => self.passive().await,
            Mode::Active => self.active().await,
        }
    }

    /// Connects to where the server says. Only its port counts: data go to who was asked.
    async fn passive(&mut self) -> Result<Result<Way, String>> {
        let mut reply =
            self.server.ask(if self.server.address.is_ipv4() { "PASV" } else { "EPSV" }).await?;
        // one that knows only of EPSV, or that speaks to us through another translator
        if self.server.address.is_ipv4() && matches!(reply.code, 500..=504 | 522) {
            reply = self.server.ask("EPSV").await?;
        }
        let port = match reply.code {
            227 => endpoint::of_passive(&reply.text).map(|endpoint| endpoint.port()),
            229 => endpoint::of_extended_passive(&reply.text),
            code => return Ok(Err(refused(code, &reply))),
        };
        let Some(port) = port.filter(|port| *port >= LOWEST_PORT) else {
            return Ok(Err("425 The server names no port for data".into()));
        };
        let to = Endpoint::new(self.server.address.ip(), port);
        let gateway = &self.session.gateway;
        let patience = gateway.config.timeouts.connect;
        let way = Way::Connecting(to, self.server.own).meet(&*gateway.network, patience).await;
        Ok(way.map(Way::Connected).map_err(|problem| {
            log::warn!("#{} data connection: {problem:#}", self.session.journal.id);
            "425 No data connection to the server".to_string()
        }))
    }

    /// Listens for the server.
    async fn active(&mut self) -> Result<Result<Way, String>> {
        let listener = data::listen(self.server.own, &(LOWEST_PORT..=u16::MAX))?;
        let at = listener.local_addr()?;
        let text = match endpoint::to_numbers(at) {
            Some(numbers) => format!("PORT {numbers}"),
            None => format!("EPRT {}", endpoint::to_extended(at)),
        };
        let reply = self.server.ask(text).await?;
        if !(200..300).contains(&reply.code) {
            return Ok(Err(refused(reply.code, &reply)));
        }
        Ok(Ok(Way::Listening(listener, self.server.address.ip())))
    }
}

/// What the client hears of a server that arranges for no data connection.
fn refused(code: u16, reply: &Reply) -> String {
    match code {
        // before a login, most likely
        400..600 => format!("{code} {}", reply.text),
        _ => "425 The server arranges for no data connection".into(),
    }
}

/// A command as it is sent.
pub fn line(verb: &str, argument: &[u8]) -> Vec<u8> {
    let mut line = verb.as_bytes().to_vec();
    if !argument.is_empty() {
        line.push(b' ');
        line.extend(argument);
    }
    line
}

/// A command of our own making.
fn said(verb: &str, argument: &[u8]) -> Command {
    Command { verb: verb.to_string(), argument: argument.to_vec() }
}
