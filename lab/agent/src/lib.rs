//! `fwlab agent`: an end of a measurement on a machine of its own. A controller connects, both
//! prove that they have the same key, and the agent does its part in trials. The control connection
//! is silent during a trial.
//!
//! The agent runs the loads of fwlab-load. Measurements and searches are its controllers, by
//! [`Agents`] and [`Pair`].

mod channel;
mod controller;
mod envelope;
mod handshake;
mod key;
mod message;
mod post;
mod strangers;

use std::io::Write;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context;
use chrono::Utc;
use fwlab_net::interrupt::Interrupt;
use fwlab_net::placement::{self, Placement};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, poll};
use nix::unistd::Pid;

use channel::{Broken, Channel};
use strangers::Strangers;

pub use controller::{Agents, Pair};
pub use envelope::{Envelopes, LONGEST, Malformed};
pub use handshake::{Greeting, HELLO, Hello, Refusal, VERDICT, read_verdict};
pub use key::Key;
pub use message::{
    Answer, Called, Caller, Frames, LONGEST_TRIAL, MOST_ADDRESSES, MOST_PORTS, Machine, Made,
    Order, Part, Reach, Served, Start, Tally,
};

/// The default port of agents.
pub const PORT: u16 = 19_818;

/// The time that an agent may take to leave a previous controller.
const LEAVING: Duration = Duration::from_secs(1);

/// The interval at which a waiting thread checks for signals, in milliseconds.
const TURN: u16 = 200;

/// The flags of `fwlab agent`.
#[derive(Debug, Clone, clap::Args)]
pub struct Arguments {
    /// Address and port to listen on, by default 127.0.0.1:19818; `[::]:19818` means all addresses
    #[arg(long, value_name = "ADDRESS:PORT")]
    listen: Option<SocketAddr>,
    /// File with the key that controllers must have; only its owner may read it
    #[arg(long, value_name = "FILE", required_unless_present = "make_key")]
    key: Option<PathBuf>,
    /// File for a new key; the command writes it and exits
    #[arg(long, value_name = "FILE", conflicts_with_all = ["key", "listen", "cpu"])]
    make_key: Option<PathBuf>,
    /// CPU for measurements, by default the last one
    #[arg(long, value_name = "NUMBER")]
    cpu: Option<usize>,
}

/// Waits for controllers, and carries out the orders of one after the other, until a signal comes.
///
/// # Errors
/// Fails if the key cannot be read or made, if the CPU does not exist, or if the port is taken.
pub fn run(arguments: &Arguments) -> anyhow::Result<()> {
    if let Some(path) = &arguments.make_key {
        Key::make(path)?;
        println!(
            "{}: new key written: copy this file to the controller and to both agents",
            path.display()
        );
        return Ok(());
    }
    let path = arguments
        .key
        .as_ref()
        .context("--key FILE is missing: make a key with fwlab agent --make-key FILE")?;
    let key = Key::read(path)?;
    let at = measuring_placement(arguments.cpu)?;
    let interrupt = Interrupt::watch()?;
    let listener = listen(arguments.listen)?;
    println!("ready: listening for a controller at {}", listener.local_addr().context("address")?);
    Agent { key, at, served: Mutex::default(), strangers: Strangers::default(), interrupt }
        .wait(&listener)
}

/// Returns the placement of measurements. Pins this thread, and the threads that it starts, to the
/// other CPUs, if there are any.
fn measuring_placement(wanted: Option<usize>) -> anyhow::Result<Placement> {
    let cpus = placement::cpus()?;
    let cpu = wanted.or(cpus.last().copied()).context("no CPU")?;
    anyhow::ensure!(cpus.contains(&cpu), "--cpu {cpu}: no such CPU, choose one of {cpus:?}");
    let others: Vec<usize> = cpus.into_iter().filter(|&other| other != cpu).collect();
    if !others.is_empty() {
        placement::pin(Pid::from_raw(0), &others)?;
    }
    Ok(Placement { cpu, priority: 1 })
}

fn listen(wanted: Option<SocketAddr>) -> anyhow::Result<TcpListener> {
    let address = wanted.unwrap_or((Ipv4Addr::LOCALHOST, PORT).into());
    let listener = TcpListener::bind(address);
    let listener = listener.with_context(|| format!("cannot listen at {address}"))?;
    listener.set_nonblocking(true).context("listener")?;
    Ok(listener)
}

/// The state that all connections of an agent share.
struct Agent {
    key: Key,
    at: Placement,
    /// The address of the controller that is served. None if there is none.
    served: Mutex<Option<SocketAddr>>,
    strangers: Strangers,
    interrupt: Interrupt,
}

impl Agent {
    fn wait(&self, listener: &TcpListener) -> anyhow::Result<()> {
        thread::scope(|scope| {
            while !self.interrupt.came() {
                let mut ready = [PollFd::new(listener.as_fd(), PollFlags::POLLIN)];
                match poll(&mut ready, TURN) {
                    Ok(0) | Err(Errno::EINTR) => continue,
                    other => other.context("waiting for a controller")?,
                };
                let Ok((stream, peer)) = listener.accept() else {
                    // A peer that closed early is ignored. The pause is for a lack of file
                    // descriptors, with which accept would fail again at once.
                    thread::sleep(LEAVING / 20);
                    continue;
                };
                let peer = channel::plain(peer);
                match self.strangers.admit(&stream, peer) {
                    Ok(number) => _ = scope.spawn(move || self.serve_peer(stream, peer, number)),
                    Err(why) => log(peer, &format!("not admitted: {why}")),
                }
            }
            Ok(())
        })
    }

    /// Makes the handshake with a peer, and serves it unless another controller is served.
    fn serve_peer(&self, stream: TcpStream, peer: SocketAddr, number: u64) {
        let greeted = Channel::to_controller(stream, &self.key, &self.interrupt);
        let had_to_leave = !self.strangers.remove(number);
        let mut channel = match greeted {
            Ok(channel) => channel,
            Err(_) if had_to_leave => {
                return log(
                    peer,
                    "refused: newer connections displaced it before it proved the key",
                );
            }
            Err(why) => return log(peer, &format!("refused: {why:#}")),
        };
        let _turn = match self.await_turn(peer) {
            Ok(turn) => turn,
            Err(other) => {
                log(peer, &format!("refused: {other} is being served"));
                let why = format!(
                    "the agent serves another controller, {other}: try again when it has \
                     disconnected"
                );
                // a peer that does not get the message sees that the connection is closed
                let _ = channel.send(&Answer::Failed(why));
                return;
            }
        };
        log(peer, "is the controller now");
        let outcome = post::serve(&mut channel, self.at, &self.interrupt);
        match &outcome {
            Ok(()) => log(peer, "has disconnected"),
            Err(why) => log(peer, &format!("connection ended: {why}")),
        }
        if let Err(Broken::Interrupted) = outcome {
            let _ = channel.send(&Answer::Failed("the agent was interrupted".to_owned()));
        }
    }

    /// Waits until a leaving controller has left, and reserves the agent for another.
    ///
    /// # Errors
    /// Fails with the address of the controller that is served for longer than [`LEAVING`].
    fn await_turn(&self, peer: SocketAddr) -> Result<Turn<'_>, SocketAddr> {
        let since = Instant::now();
        loop {
            let mut served = self.served.lock().unwrap_or_else(PoisonError::into_inner);
            match *served {
                None => {
                    *served = Some(peer);
                    return Ok(Turn(self));
                }
                Some(other) if since.elapsed() >= LEAVING => return Err(other),
                Some(_) => drop(served),
            }
            thread::sleep(LEAVING / 20);
        }
    }
}

/// The right of a controller to be served. Dropping it frees the agent.
struct Turn<'a>(&'a Agent);

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        *self.0.served.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

/// Prints an event of a peer.
fn log(peer: SocketAddr, what: &str) {
    // a lost line of the log does no harm
    let _ = writeln!(std::io::stdout(), "{} {peer} {what}", Utc::now().format("%H:%M:%S"));
}
