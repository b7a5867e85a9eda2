//! A command that moves data, from the command to its last reply.

use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use tokio::time::{Instant as Deadline, sleep_until};

use crate::command::Command;
use crate::gateway::held::Lines;
use crate::gateway::relay::{DataConnections, Relay, line};
use crate::gateway::replies;
use crate::gateway::session::Gateway;
use crate::gateway::shovel::Load;
use crate::line::Line;
use crate::reply::Reply;

/// Time that data may still flow after the server has reported a failure.
const LINGER: Duration = Duration::from_secs(2);

/// Number of commands that may wait for the end of a transfer.
const MOST_HELD: usize = 16;

type Carrying<'a> = Pin<Box<dyn Future<Output = Result<()>> + Send + 'a>>;

/// An event during a transfer.
enum Event {
    /// All data are copied, or a connection broke.
    Carried(Result<()>),
    /// The server has sent a line, and perhaps ended a reply.
    Server(Line, Option<Reply>),
    /// The client has sent a line, or has left.
    Client(Option<Line>),
    /// The deadline has passed.
    Late,
}

/// The result of a transfer.
#[derive(Default)]
struct End {
    /// The lines of the server's final reply.
    lines: Lines,
    reply: Option<Reply>,
    /// The result of the data connections; `None` if they were cancelled.
    carried: Option<Result<()>>,
    /// True if the client has sent `ABOR`.
    is_aborted: bool,
}

impl Relay<'_> {
    /// Runs `RETR`, `STOR` and similar commands. The client gets the final reply after the receiver
    /// of the data has all of them.
    ///
    /// # Errors
    /// Fails if a control connection breaks, if the client leaves during the transfer, or if a
    /// timeout passes.
    pub async fn transfer(&mut self, command: &Command, up: bool) -> Result<()> {
        let Some(connections) = self.connections.take() else {
            return self.session.answer(command, replies::NO_WAY).await;
        };
        let began = Instant::now();
        self.server.control.send(line(&command.verb, &command.argument)).await?;
        let first = self.server.reply(Some(&mut self.session.client)).await?;
        if !first.is_preliminary() {
            self.session.journal.command(command, first.code, began, None);
            return Ok(());
        }
        let gateway = self.session.gateway.clone();
        let moved = AtomicU64::new(0);
        let carrying = Box::pin(carry(connections, up, &gateway, &moved));
        let end = self.wait_for_end(carrying, gateway.config.timeouts.data).await?;
        let code = self.send_result(&end).await?;
        self.session.journal.command(command, code, began, Some(moved.load(Relaxed)));
        if end.is_aborted {
            // the server answers the ABOR, too
            self.server.final_reply(Some(&mut self.session.client)).await?;
        }
        Ok(())
    }

    /// Waits until the data connections have ended and the server has sent its final reply.
    async fn wait_for_end(&mut self, carrying: Carrying<'_>, patience: Duration) -> Result<End> {
        let mut carrying = Some(carrying);
        let mut end = End::default();
        // none while data flow and the server is silent: the copy has a timeout of its own
        let mut deadline = None;
        while end.reply.is_none() || carrying.is_some() {
            let late = deadline.unwrap_or_else(Deadline::now);
            let event = tokio::select! {
                carried = async { carrying.as_mut().expect("asked for").await }, if carrying.is_some() => {
                    Event::Carried(carried)
                }
                said = self.server.line(), if end.reply.is_none() => {
                    let (line, reply) = said?;
                    Event::Server(line, reply)
                }
                said = self.session.client.line(), if self.held.len() < MOST_HELD => Event::Client(said?),
                () = sleep_until(late), if deadline.is_some() => Event::Late,
            };
            match event {
                Event::Carried(carried) => {
                    carrying = None;
                    end.carried = Some(carried);
                    deadline = Some(Deadline::now() + patience);
                }
                Event::Server(line, reply) => {
                    let is_last = reply.as_ref().is_some_and(|reply| !reply.is_preliminary());
                    end.lines.push(line)?;
                    if is_last {
                        if reply.as_ref().is_some_and(|reply| reply.code >= 400) {
                            deadline = Some(Deadline::now() + LINGER);
                        }
                        end.reply = reply;
                    }
                }
                Event::Client(None) => bail!("the client has left within a transfer"),
                Event::Client(Some(line))
                    if Command::parse(&line).verb == "ABOR" && !end.is_aborted =>
                {
                    end.is_aborted = true;
                    carrying = None;
                    self.server.control.send("ABOR").await?;
                    deadline = Some(Deadline::now() + patience);
                }
                Event::Client(Some(line)) => self.held.push_back(line),
                Event::Late if end.reply.is_none() => bail!("the server does not end the transfer"),
                Event::Late => carrying = None,
            }
        }
        Ok(end)
    }

    /// Sends the final reply to the client, and returns its code. If the data connections broke
    /// after the server's success, the reply is 426.
    async fn send_result(&mut self, end: &End) -> Result<u16> {
        let client = &mut self.session.client;
        let code = end.reply.as_ref().map_or(0, |reply| reply.code);
        if let (Some(Err(problem)), 200..300) = (&end.carried, code) {
            log::info!("#{} data connection: {problem:#}", self.session.journal.id);
            client.send("426 The data connection broke").await?;
            return Ok(426);
        }
        for line in end.lines.iter() {
            client.send(line).await?;
        }
        Ok(code)
    }
}

/// Establishes both data connections and copies all bytes.
async fn carry(
    connections: DataConnections,
    up: bool,
    gateway: &Gateway,
    moved: &AtomicU64,
) -> Result<()> {
    let (config, network) = (&gateway.config, &*gateway.network);
    let patience = config.timeouts.connect;
    let meeting = (
        connections.client.establish(network, patience),
        connections.server.establish(network, patience),
    );
    let (client, server) = tokio::try_join!(meeting.0, meeting.1)?;
    let (from, to) = if up { (client, server) } else { (server, client) };
    Ok(Load::new(from, to).carry(config.shovel, config.timeouts.data, moved).await?)
}
