//! The controller: it connects to two agents and gives them orders for each trial.

use std::net::{IpAddr, SocketAddr, TcpStream, ToSocketAddrs};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use fwlab_load::raw::sender::Pace;
use fwlab_net::interrupt::{Interrupt, Interrupted};

use super::PORT;
use super::channel::{Broken, Channel};
use super::key::Key;
use super::message::{Answer, Machine, Made, Order, Part, Reach, Served, Start, Tally};

/// The time limits of a connection and of an answer.
const CONNECTING: Duration = Duration::from_secs(5);
const PATIENCE: Duration = Duration::from_secs(30);

/// The time from the order to begin until the trial begins. All messages about the trial have
/// arrived everywhere by then.
const DELAY: Duration = Duration::from_millis(200);

/// The interval at which the controller checks the connection of the silent agent.
const TURN: Duration = Duration::from_millis(100);

/// The time that the end of one agent's connection may take to show after the other agent reported
/// a failure.
const AFTERMATH: Duration = Duration::from_millis(300);

/// The agents at the ends of a measurement, if the ends are other machines.
#[derive(Debug, Clone, clap::Args)]
pub struct Agents {
    /// Address of the `fwlab agent` that is the client; the port is 19818 by default
    #[arg(long, value_name = "HOST[:PORT]", requires_all = ["server_agent", "key"])]
    client_agent: Option<String>,
    /// Address of the `fwlab agent` that is the server; the port is 19818 by default
    #[arg(long, value_name = "HOST[:PORT]", requires_all = ["client_agent", "key"])]
    server_agent: Option<String>,
    /// Address of the server that the client connects to, by default that of its agent
    #[arg(long, value_name = "ADDRESS", requires = "server_agent")]
    server_address: Option<IpAddr>,
    /// File with the agents' key, made with `fwlab agent --make-key`
    #[arg(long, value_name = "FILE", requires = "server_agent")]
    key: Option<PathBuf>,
}

impl Agents {
    /// Returns true if agents were given.
    pub fn are_given(&self) -> bool {
        self.client_agent.is_some()
    }

    /// Returns true if the server's address was given.
    pub fn have_an_address(&self) -> bool {
        self.server_address.is_some()
    }
}

/// An agent, as its controller sees it.
struct Remote {
    name: String,
    channel: Channel,
    interrupt: Interrupt,
}

impl Remote {
    fn connect(role: &str, text: &str, key: &Key, interrupt: &Interrupt) -> anyhow::Result<Remote> {
        let name = format!("{role} agent {text}");
        let reach = || {
            let stream = reach(text)?;
            let channel = Channel::to_agent(stream, key, interrupt)?;
            anyhow::Ok(Remote { name: name.clone(), channel, interrupt: interrupt.clone() })
        };
        let mut remote = reach().with_context(|| name.clone())?;
        remote.receive_done(PATIENCE)?;
        Ok(remote)
    }

    fn address(&self) -> IpAddr {
        self.channel.peer().ip()
    }

    fn describe(&mut self, reach: Reach) -> anyhow::Result<Machine> {
        match self.order(&Order::Describe(reach))? {
            Answer::Machine(machine) => Ok(*machine),
            _ => self.unexpected(),
        }
    }

    fn order(&mut self, order: &Order) -> anyhow::Result<Answer> {
        self.channel.send(order).map_err(|why| self.broken(why))?;
        self.receive(PATIENCE)
    }

    fn order_done(&mut self, order: &Order) -> anyhow::Result<()> {
        self.channel.send(order).map_err(|why| self.broken(why))?;
        self.receive_done(PATIENCE)
    }

    fn receive_done(&mut self, patience: Duration) -> anyhow::Result<()> {
        match self.receive(patience)? {
            Answer::Done => Ok(()),
            _ => self.unexpected(),
        }
    }

    /// Waits for an answer. Fails if the agent reports that it could not carry out the order.
    fn receive(&mut self, patience: Duration) -> anyhow::Result<Answer> {
        match self.channel.receive(patience, &self.interrupt) {
            Ok(Answer::Failed(why)) => bail!("{}: {}", self.name, printable(&why)),
            Ok(answer) => Ok(answer),
            Err(why) => Err(self.broken(why)),
        }
    }

    /// Returns true if the agent is connected and has sent nothing.
    fn is_silent(&self) -> Result<bool, Broken> {
        self.channel.unread_bytes().map(|bytes| bytes == 0)
    }

    fn broken(&self, why: Broken) -> anyhow::Error {
        match why {
            Broken::Interrupted => Interrupted.into(),
            other => anyhow::Error::from(other).context(self.name.clone()),
        }
    }

    fn unexpected<T>(&self) -> anyhow::Result<T> {
        bail!("{}: unexpected answer to an order", self.name)
    }
}

/// The agents of both ends. The client's agent is the active one in trials.
pub struct Pair {
    client: Remote,
    server: Remote,
    server_address: IpAddr,
    length: Duration,
    trial: u32,
}

impl Pair {
    /// Connects to both agents.
    ///
    /// # Errors
    /// Fails if both flags name the same agent, or if the key cannot be read. Fails if an agent is
    /// not reachable, has another key or version, or serves another controller.
    pub fn connect(agents: &Agents, interrupt: &Interrupt) -> anyhow::Result<Pair> {
        ensure!(
            agents.client_agent != agents.server_agent,
            "--client-agent and --server-agent name the same agent: name one for each end"
        );
        let key = Key::read(
            agents.key.as_ref().context("--key FILE is missing: it names the agents' key")?,
        )?;
        let connect = |role: &str, text: &Option<String>| {
            let text = text.as_ref().with_context(|| format!("--{role}-agent is missing"))?;
            Remote::connect(role, text, &key, interrupt)
        };
        let client = connect("client", &agents.client_agent)?;
        let server = connect("server", &agents.server_agent)?;
        let server_address = agents.server_address.unwrap_or(server.address());
        Ok(Pair { client, server, server_address, length: Duration::ZERO, trial: 0 })
    }

    /// Returns the address at which clients reach the server.
    pub fn server_address(&self) -> IpAddr {
        self.server_address
    }

    /// Returns the machines of client and server, each with the interface that leads to the other
    /// end.
    ///
    /// # Errors
    /// Fails if an agent is gone, or has no route or interface to the other end.
    pub fn machines(&mut self, reach: [Reach; 2]) -> anyhow::Result<[Machine; 2]> {
        let [client, server] = reach;
        Ok([self.client.describe(client)?, self.server.describe(server)?])
    }

    /// Returns the server's machine, with the interface that leads to `reach`.
    ///
    /// # Errors
    /// Fails if the agent is gone, or has no such route or interface.
    pub fn server_machine(&mut self, reach: Reach) -> anyhow::Result<Machine> {
        self.server.describe(reach)
    }

    /// Prepares both agents for their parts, in trials of `length`.
    ///
    /// # Errors
    /// Fails if an agent is gone, or refuses its part.
    pub fn prepare(&mut self, client: Part, server: Part, length: Duration) -> anyhow::Result<()> {
        self.server.order_done(&Order::Prepare(server))?;
        self.client.order_done(&Order::Prepare(client))?;
        self.length = length;
        Ok(())
    }

    /// Sets the pace of the client's agent and the length of trials, from the next trial on.
    ///
    /// # Errors
    /// Fails if the agent is gone, or has no frames to send.
    pub fn pace(&mut self, pace: Pace, length: Duration) -> anyhow::Result<()> {
        self.client.order_done(&Order::Pace(pace))?;
        self.length = length;
        Ok(())
    }

    /// Does a trial of frames. Returns the tallies of sender and sink.
    ///
    /// # Errors
    /// Fails as [`Pair::trial`] does.
    pub fn tallies(&mut self) -> anyhow::Result<[Tally; 2]> {
        match self.trial()? {
            [Answer::Frames(sent), Answer::Frames(counted)] => Ok([sent, counted]),
            _ => bail!("unexpected answers: the agents do not have the roles that they were given"),
        }
    }

    /// Does a trial of connections. Returns the client's results and the server's counts.
    ///
    /// # Errors
    /// Fails as [`Pair::trial`] does.
    pub fn connections(&mut self) -> anyhow::Result<(Made, Served)> {
        match self.trial()? {
            [Answer::Made(made), Answer::Served(served)] => Ok((*made, served)),
            _ => bail!("unexpected answers: the agents do not have the roles that they were given"),
        }
    }

    /// Does a trial, and returns the answers of client and server. No message is sent during the
    /// trial, so that the control connection does not disturb it.
    ///
    /// # Errors
    /// Fails if an agent is gone, if one sends a message during the trial, or if the client does
    /// not reach the server.
    pub fn trial(&mut self) -> anyhow::Result<[Answer; 2]> {
        self.trial += 1;
        let order = Order::Begin(Start { trial: self.trial, delay: DELAY, length: self.length });
        self.server.order_done(&order)?;
        self.client.order_done(&order)?;
        let said = self.await_end(DELAY + self.length * 2 + PATIENCE)?;
        Ok([said, self.server.order(&Order::Collect)?])
    }

    /// Waits for the client's answer, and fails at once if the server's agent is gone.
    fn await_end(&mut self, patience: Duration) -> anyhow::Result<Answer> {
        let until = Instant::now() + patience;
        let answer = loop {
            match self.client.channel.receive(TURN, &self.client.interrupt) {
                Err(Broken::Silent(_)) if Instant::now() < until => self.check_server()?,
                Err(Broken::Silent(_)) => break Err(Broken::Silent(patience)),
                other => break other,
            }
        };
        match answer {
            Ok(Answer::Failed(why)) => {
                // a lost server is the reason for the failure of its client, so it is reported
                // first
                std::thread::sleep(AFTERMATH);
                self.check_server()?;
                bail!("{}: {}", self.client.name, printable(&why))
            }
            Ok(answer) => Ok(answer),
            Err(why) => Err(self.client.broken(why)),
        }
    }

    fn check_server(&mut self) -> anyhow::Result<()> {
        match self.server.is_silent() {
            Ok(true) => Ok(()),
            // the message has the reason for which the agent did not wait for the end
            Ok(false) => self.server.receive(PATIENCE).and_then(|_| self.server.unexpected()),
            Err(why) => Err(self.server.broken(why)),
        }
    }
}

/// Connects to an agent, given as a name or an address, with an optional port.
fn reach(text: &str) -> anyhow::Result<TcpStream> {
    let (host, port) = split(text)?;
    let addresses = (host.as_str(), port).to_socket_addrs().context("no such host")?;
    let mut last = None;
    for address in addresses {
        match TcpStream::connect_timeout(&address, CONNECTING) {
            Ok(stream) => return Ok(stream),
            Err(error) => last = Some((address, error)),
        }
    }
    let (address, error): (SocketAddr, _) = last.context("no such host")?;
    Err(error).with_context(|| {
        format!("no agent at {address}: run fwlab agent --key FILE --listen ADDRESS:PORT there")
    })
}

/// Splits `host`, `host:port`, `address` or `[address]:port` into host and port.
fn split(text: &str) -> anyhow::Result<(String, u16)> {
    if let Ok(address) = text.parse::<SocketAddr>() {
        return Ok((address.ip().to_string(), address.port()));
    }
    if let Ok(address) = text.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>() {
        return Ok((address.to_string(), PORT));
    }
    let (host, port) = match text.split_once(':') {
        Some((host, port)) => (host, port.parse().ok()),
        None => (text, Some(PORT)),
    };
    let port = port
        .filter(|_| !host.is_empty())
        .context("not a host with a port: write HOST or HOST:PORT")?;
    Ok((host.to_owned(), port))
}

/// Returns text of another machine without control characters and of at most 400 characters, so
/// that it is safe to print on a terminal.
fn printable(text: &str) -> String {
    text.chars().filter(|character| !character.is_control()).take(400).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_and_ports_are_read() {
        let is = |text: &str, host: &str, port| {
            assert_eq!(split(text).unwrap(), (host.to_owned(), port), "{text}");
        };
        is("192.0.2.1", "192.0.2.1", PORT);
        is("192.0.2.1:7", "192.0.2.1", 7);
        is("2001:db8::1", "2001:db8::1", PORT);
        is("[2001:db8::1]", "2001:db8::1", PORT);
        is("[2001:db8::1]:7", "2001:db8::1", 7);
        is("lab-1.example", "lab-1.example", PORT);
        is("lab-1.example:7", "lab-1.example", 7);
        for bad in ["", ":7", "host:", "host:x", "host:70000"] {
            assert!(split(bad).is_err(), "{bad}");
        }
    }
}
