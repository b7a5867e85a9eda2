//! A session: the proxy between one client and one server.

use std::io::ErrorKind;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use log::{debug, info};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::net::tcp::{ReadHalf, WriteHalf};
use tokio::time::timeout;

use crate::command::{Command, Verb};
use crate::dialogue::{Agreement, Answer, Dialogue, Mode};
use crate::endpoint::{self, Endpoint, LOWEST_PORT};
use crate::line::{Line, Lines};
use crate::proxy::gate::Gate;
use crate::proxy::options::Options;
use crate::proxy::rules::{Expected, Hosts, TOLD_PORTS};

/// Number of bytes in one read.
const BLOCK: usize = 4096;

/// A session of the proxy.
pub struct Session<'a> {
    /// The session number, used in log messages and in the anchor's name.
    pub id: u32,
    /// The addresses of the control connection.
    pub hosts: Hosts,
    /// The options of the proxy.
    pub options: &'a Options,
    /// The interface to the guardian, which opens the filter.
    pub gate: &'a Gate,
}

/// One side of the control connection.
struct Side<'a> {
    name: &'static str,
    reader: ReadHalf<'a>,
    writer: WriteHalf<'a>,
    lines: Lines,
}

impl<'a> Side<'a> {
    fn new(name: &'static str, stream: &'a mut TcpStream) -> Self {
        let (reader, writer) = stream.split();
        Side { name, reader, writer, lines: Lines::default() }
    }

    /// Reads available bytes. Returns false at the end of the stream.
    async fn read(&mut self) -> Result<bool> {
        let mut block = [0; BLOCK];
        loop {
            self.reader.readable().await.context(self.name)?;
            // a read ends before urgent data; tokio's `read` would take the short read for an empty
            // socket
            match self.reader.try_read(&mut block) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                read => {
                    let length = read.context(self.name)?;
                    self.lines.push(&block[..length]);
                    return Ok(length > 0);
                }
            }
        }
    }

    async fn write(&mut self, line: &Line) -> Result<()> {
        self.writer.write_all(&line.raw).await.context(self.name)
    }
}

impl Session<'_> {
    /// Relays until the server closes its side. A client that has closed its own side still gets
    /// the replies. The note of a command is the port announced for an active data connection.
    ///
    /// # Errors
    /// Fails if a connection breaks or is idle for too long, if a line or a port is not valid, or
    /// if the guardian refuses a data connection.
    pub async fn run(&self, client: &mut TcpStream, server: &mut TcpStream) -> Result<()> {
        let address = server.peer_addr().context("server")?;
        let mut dialogue: Dialogue<Option<u16>> = Dialogue::new(address);
        let mut client = Side::new("client", client);
        let mut server = Side::new("server", server);
        let idle = Duration::from_secs(self.options.timeout.into());
        let mut asks = true;
        loop {
            let reading = async {
                tokio::select! {
                    open = client.read(), if asks => {
                        asks = open?;
                        if !asks {
                            server.writer.shutdown().await.context("server")?;
                        }
                        Ok(true)
                    }
                    open = server.read() => open,
                }
            };
            let open: Result<bool> = timeout(idle, reading).await.context("timeout")?;
            if !open? {
                return Ok(());
            }
            let work = async {
                while let Some(line) = client.lines.next_line().context("client")? {
                    self.command(line, &mut dialogue, &mut client, &mut server).await?;
                }
                while let Some(line) = server.lines.next_line().context("server")? {
                    let line = self.reply(line, &mut dialogue).await?;
                    client.write(&line).await?;
                }
                anyhow::Ok(())
            };
            // a peer that does not read counts as idle, too
            timeout(idle, work).await.context("timeout")??;
        }
    }

    /// Rewrites a line of the client and sends it to the server.
    async fn command(
        &self,
        line: Line,
        dialogue: &mut Dialogue<Option<u16>>,
        client: &mut Side<'_>,
        server: &mut Side<'_>,
    ) -> Result<()> {
        let command = Command::parse(&line);
        debug!("#{} client: {}", self.id, command.shown());
        if self.options.anonymous && command.verb == "USER" && !is_anonymous(&command) {
            return client.write(&Line::from_text("500 Only anonymous FTP allowed")).await;
        }
        let (line, told) = match command.meaning() {
            Verb::Port(to) | Verb::ExtendedPort(to) => self.ask_for_active(&command, to)?,
            Verb::Garbled => bail!("bad port in '{}'", command.shown()),
            Verb::Passive if self.options.inet6 => bail!("PASV is not for IPv6"),
            _ => (line, None),
        };
        dialogue.command(&command, told)?;
        server.write(&line).await
    }

    /// Rewrites `PORT` or `EPRT`, with the proxy in place of the client. The address in the command
    /// is ignored: data connections lead to the session's client.
    fn ask_for_active(&self, command: &Command, to: Endpoint) -> Result<(Line, Option<u16>)> {
        if to.port() < LOWEST_PORT {
            bail!("bad port in '{}'", command.shown());
        }
        let told = port()?;
        let here = Endpoint::new(self.hosts.proxy, told);
        let argument = match command.meaning() {
            Verb::ExtendedPort(_) => Some(endpoint::to_extended(here)),
            _ => endpoint::to_numbers(here),
        };
        let Some(argument) = argument else { bail!("PORT is not for IPv6") };
        let line = Line::from_text(&format!("{} {argument}", command.verb));
        debug!("#{} proxy: {}", self.id, line.shown());
        Ok((line, Some(told)))
    }

    /// Rewrites a line of the server for the client. The rules of a data connection are active
    /// before the client reads the reply.
    async fn reply(&self, line: Line, dialogue: &mut Dialogue<Option<u16>>) -> Result<Line> {
        debug!("#{} server: {}", self.id, line.shown());
        let Some(Answer { note, agreement: Some(agreement), .. }) = dialogue.reply(&line) else {
            return Ok(line);
        };
        let Agreement { mode, to, extended } = agreement;
        if to.port() < LOWEST_PORT {
            bail!("bad port in '{}'", line.shown());
        }
        let told = match note.flatten() {
            Some(told) => told,
            None => port()?,
        };
        let expected = Expected { mode, port: to.port(), told, extended };
        let way = match mode {
            Mode::Active => "active: server to client",
            Mode::Passive => "passive: client to server",
        };
        info!("#{} {way} port {} via port {told}", self.id, to.port());
        self.gate.open(self.id, self.hosts.proxy, expected).await?;
        if mode == Mode::Active {
            return Ok(line);
        }
        let here = Endpoint::new(self.hosts.original, told);
        let text = match endpoint::to_numbers(here).filter(|_| !extended) {
            Some(numbers) => format!("227 Entering Passive Mode ({numbers})"),
            None => format!("229 Entering Extended Passive Mode (|||{told}|)"),
        };
        debug!("#{} proxy: {text}", self.id);
        Ok(Line::from_text(&text))
    }
}

fn is_anonymous(command: &Command) -> bool {
    ["ftp", "anonymous"].iter().any(|name| command.text().eq_ignore_ascii_case(name))
}

/// Returns a random port, so that nobody can guess the data connection.
fn port() -> Result<u16> {
    let random = getrandom::u32().map_err(|error| anyhow::anyhow!("random numbers: {error}"))?;
    let count = u32::from(TOLD_PORTS.end() - TOLD_PORTS.start()) + 1;
    Ok(TOLD_PORTS.start() + (random % count) as u16)
}
