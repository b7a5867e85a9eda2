//! ftp-proxy: the helper that rewrites what client and server tell each other, and opens the filter for
//! the data connections that they agree upon.
//!
//! The control connection comes by `divert-to`; the address that the client wanted is that of the
//! socket. What the data connections need is in `rules`, where it goes in [`crate::anchor`].

pub mod options;
pub mod rules;
mod session;

use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use log::{error, info, warn};
use nix::sys::resource::{Resource, setrlimit};
use nix::unistd::geteuid;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::{JoinSet, LocalSet};
use tokio::time::timeout;

use crate::anchor::{self, Anchors};
use crate::socket;
use options::Options;
use rules::Hosts;
use session::Session;

/// The program, and the anchor that rule sets call.
pub const NAME: &str = "ftp-proxy";

/// How long a server may take to accept.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);

/// Descriptors that the process has besides those of its sessions.
const OTHER_FILES: u64 = 64;

/// What all sessions have in common.
struct Proxy {
    options: Options,
    anchors: Anchors,
}

/// Where the proxy listens, before it does anything else.
///
/// # Errors
/// Nothing can be served: no permission, no filter, the address is taken.
pub fn prepare(options: &Options) -> Result<std::net::TcpListener> {
    if let Some(mistake) = options.mistake() {
        bail!("{mistake}");
    }
    if !geteuid().is_root() {
        bail!("needs root");
    }
    anchor::check_filter(&options.instance())?;
    let files = 2 * u64::from(options.sessions) + OTHER_FILES;
    setrlimit(Resource::RLIMIT_NOFILE, files, files).context("open files")?;
    socket::transparent(options.listen())
}

/// Serves clients until a signal comes, then removes all rules.
///
/// # Errors
/// Those of the system, and those of the filter at the end.
pub fn run(options: Options, listener: std::net::TcpListener) -> Result<()> {
    let anchors = Anchors::open(NAME, &options.instance())?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let proxy = Rc::new(Proxy { options, anchors });
    LocalSet::new().block_on(&runtime, proxy.serve(listener))
}

impl Proxy {
    async fn serve(self: Rc<Self>, listener: std::net::TcpListener) -> Result<()> {
        let listener = TcpListener::from_std(listener)?;
        warn!("listening on {}", listener.local_addr()?);
        let mut signals = [SignalKind::terminate(), SignalKind::interrupt(), SignalKind::hangup()]
            .map(signal)
            .into_iter()
            .collect::<std::io::Result<Vec<_>>>()?;
        let [terminate, interrupt, hangup] = &mut signals[..] else { bail!("signals") };
        let mut sessions = JoinSet::new();
        let mut ids = 1..;
        loop {
            tokio::select! {
                accepted = listener.accept() => match accepted {
                    Ok((client, from)) if sessions.len() < self.options.sessions as usize => {
                        let id = ids.next().unwrap_or_default();
                        sessions.spawn_local(self.clone().session(id, client, from));
                    }
                    Ok((_, from)) => {
                        error!("limit of {} sessions reached, refusing {from}", self.options.sessions);
                    }
                    Err(problem) => {
                        error!("accept: {problem}");
                        // out of descriptors, most likely: sessions that end give some back
                        tokio::time::sleep(Duration::from_millis(100)).await;
                    }
                },
                Some(_) = sessions.join_next() => {}
                _ = terminate.recv() => break,
                _ = interrupt.recv() => break,
                _ = hangup.recv() => break,
            }
        }
        warn!("exiting, {} sessions end", sessions.len());
        sessions.shutdown().await;
        self.anchors.remove_all().await
    }

    /// A session from its first byte to the end of its rules.
    async fn session(self: Rc<Self>, id: u32, mut client: TcpStream, from: SocketAddr) {
        match self.connect(id, &client, from).await {
            Ok((mut server, hosts)) => {
                let (options, anchors) = (&self.options, &self.anchors);
                let session = Session { id, hosts, options, anchors };
                match session.run(&mut client, &mut server).await {
                    Ok(()) => info!("#{id} ending session"),
                    Err(problem) => error!("#{id} ending session: {problem:#}"),
                }
            }
            Err(problem) => error!("#{id} {problem:#}"),
        }
        if let Err(problem) = self.anchors.remove(id).await {
            error!("#{id} rules stay: {problem:#}");
        }
    }

    /// Connects to whom the client wanted to speak with.
    async fn connect(
        &self,
        id: u32,
        client: &TcpStream,
        from: SocketAddr,
    ) -> Result<(TcpStream, Hosts)> {
        let original = client.local_addr().context("client")?;
        let to = match self.options.server {
            Some(server) => SocketAddr::new(server, self.options.server_port),
            None => original,
        };
        if to == self.options.listen() {
            bail!("{from} speaks to the proxy itself: is there a divert-to rule?");
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
        for stream in [client, &server] {
            socket::keep_alive(stream)?;
        }
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
