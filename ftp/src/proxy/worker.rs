//! The process that speaks with clients and servers. The worker has no files, runs as an
//! unprivileged user, and may do nothing else.

use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use log::{error, info, warn};
use nix::sys::resource::{Resource, setrlimit};
use nix::sys::signal::Signal;
use skipstep_worker::privileges::{self, CONNECTIONS, PROXY_USERS, USUAL};
use tokio::net::{TcpSocket, TcpStream};
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::{JoinSet, LocalSet};
use tokio::time::timeout;

use crate::proxy::clients::Clients;
use crate::proxy::gate::Gate;
use crate::proxy::options::Options;
use crate::proxy::rules::Hosts;
use crate::proxy::session::Session;
use crate::socket;

/// Time that a server may take to accept a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);

/// Number of descriptors of the process besides those of its sessions.
const OTHER_FILES: u64 = 64;

/// State that all sessions share.
struct Worker {
    options: Options,
    gate: Gate,
}

/// Serves clients until SIGTERM or SIGINT, or until the guardian ends.
///
/// # Errors
/// Fails if privileges cannot be dropped, or if the system refuses a call.
pub fn run(options: Options) -> Result<()> {
    let files = 2 * u64::from(options.sessions) + OTHER_FILES;
    setrlimit(Resource::RLIMIT_NOFILE, files, files).context("open files")?;
    privileges::drop(&PROXY_USERS, Signal::SIGTERM)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    LocalSet::new().block_on(&runtime, async {
        let worker = Rc::new(Worker { options, gate: Gate::inherited()? });
        worker.serve(Clients::inherited()?).await
    })
}

impl Worker {
    async fn serve(self: Rc<Self>, clients: Clients) -> Result<()> {
        warn!("listening on {}", self.options.listen());
        let mut terminate = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        privileges::confine(&[USUAL, CONNECTIONS])?;
        let mut sessions = JoinSet::new();
        while !self.gate.is_closed() {
            tokio::select! {
                client = clients.next() => match client? {
                    Some((id, Some(client))) => {
                        sessions.spawn_local(self.clone().session(id, client));
                    }
                    Some((id, None)) => {
                        error!("#{id} no descriptor is left for the client");
                        self.gate.close(id);
                    }
                    None => break,
                },
                Some(_) = sessions.join_next() => {}
                _ = terminate.recv() => break,
                _ = interrupt.recv() => break,
            }
        }
        warn!("exiting, {} sessions end", sessions.len());
        Ok(())
    }

    /// Runs a session, and then has its rules removed.
    async fn session(self: Rc<Self>, id: u32, mut client: TcpStream) {
        match self.connect(id, &client).await {
            Ok((mut server, hosts)) => {
                let (options, gate) = (&self.options, &self.gate);
                let session = Session { id, hosts, options, gate };
                match session.run(&mut client, &mut server).await {
                    Ok(()) => info!("#{id} ending session"),
                    Err(problem) => error!("#{id} ending session: {problem:#}"),
                }
            }
            Err(problem) => error!("#{id} {problem:#}"),
        }
        self.gate.close(id);
    }

    /// Connects to the server that the client wanted, or to the server of `-R`.
    async fn connect(&self, id: u32, client: &TcpStream) -> Result<(TcpStream, Hosts)> {
        let from = client.peer_addr().context("client")?;
        let original = client.local_addr().context("client")?;
        let to = match self.options.server {
            Some(server) => SocketAddr::new(server, self.options.server_port),
            None => original,
        };
        if to == self.options.listen() {
            bail!("{from} connects to the proxy itself: is there a divert-to rule?");
        }
        let socket = if to.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() };
        let socket = socket.context("server")?;
        if let Some(source) = self.options.source {
            socket.bind((source, 0).into()).with_context(|| format!("-a {source}"))?;
        }
        let connected = timeout(CONNECT_TIMEOUT, socket.connect(to)).await;
        let server = connected.with_context(|| format!("server {to}: timeout"))?;
        let server = server.with_context(|| format!("server {to}"))?;
        let proxy = server.local_addr().context("server")?;
        socket::prepare_control(client).context("client")?;
        socket::prepare_control(&server).context("server")?;
        info!("#{id} session started: client {from} to server {to} via proxy {proxy}");
        let hosts = Hosts {
            client: from.ip(),
            original: original.ip(),
            server: to.ip(),
            proxy: proxy.ip(),
        };
        Ok((server, hosts))
    }
}
