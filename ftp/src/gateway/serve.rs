//! The listening sockets of the gateway.

use std::net::{SocketAddr, TcpListener as StdListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use anyhow::Result;
use tokio::net::{TcpListener, TcpStream};
use tokio::signal::unix::{SignalKind, signal};

use crate::gateway::accounts::Accounts;
use crate::gateway::config::Config;
use crate::gateway::network::System;
use crate::gateway::privileges;
use crate::gateway::session::{Gateway, Session};
use crate::socket;

/// Number of threads that run sessions.
const THREADS: usize = 2;

/// The listening sockets, opened before the process gives up root's privileges.
pub struct Listeners {
    plain: Vec<StdListener>,
    transparent: Vec<StdListener>,
    /// A warning if the limit of open files may be too low.
    warning: Option<String>,
}

/// Opens the sockets and raises the limit of open files, which needs root.
///
/// # Errors
/// Fails if an address is in use, or if the system refuses a call.
pub fn listen(config: &Config) -> Result<Listeners> {
    let warning = privileges::make_room(config.limits.sessions)?;
    let all = |addresses: &[SocketAddr], listen: fn(SocketAddr) -> Result<StdListener>| {
        addresses.iter().map(|address| listen(*address)).collect::<Result<_>>()
    };
    Ok(Listeners {
        plain: all(&config.listen, socket::plain)?,
        transparent: all(&config.transparent, socket::transparent)?,
        warning,
    })
}

/// Serves clients until SIGTERM, SIGINT or SIGHUP.
///
/// # Errors
/// Fails if the system refuses a call.
pub fn run(config: Config, accounts: Option<Accounts>, listeners: Listeners) -> Result<()> {
    if let Some(warning) = &listeners.warning {
        log::warn!("{warning}");
    }
    privileges::confine()?;
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(THREADS).enable_all().build()?;
    let gateway = Arc::new(Gateway::new(config, accounts, Box::new(System)));
    runtime.block_on(async {
        let ids = Arc::new(AtomicU64::new(1));
        let plain = listeners.plain.into_iter().map(|listener| (listener, false));
        let transparent = listeners.transparent.into_iter().map(|listener| (listener, true));
        for (listener, transparent) in plain.chain(transparent) {
            let listener = TcpListener::from_std(listener)?;
            let address = listener.local_addr()?;
            log::warn!("listening on {address}{}", if transparent { ", transparent" } else { "" });
            let accepting =
                Listener { gateway: gateway.clone(), ids: ids.clone(), address, transparent };
            tokio::spawn(accepting.serve(listener));
        }
        let mut terminate = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        let mut hang_up = signal(SignalKind::hangup())?;
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
            _ = hang_up.recv() => {}
        }
        log::warn!("exiting");
        anyhow::Ok(())
    })?;
    // a thread may still verify a password
    runtime.shutdown_timeout(Duration::from_millis(100));
    Ok(())
}

/// A listening socket.
struct Listener {
    gateway: Arc<Gateway>,
    ids: Arc<AtomicU64>,
    address: SocketAddr,
    transparent: bool,
}

impl Listener {
    async fn serve(self, listener: TcpListener) {
        loop {
            match listener.accept().await {
                Ok((stream, from)) => {
                    if let Err(problem) = self.handle_client(stream, from) {
                        log::info!("client {from}: {problem:#}");
                    }
                }
                Err(problem) => {
                    log::error!("accept: {problem}");
                    // most likely no descriptors are left; sessions that end close some
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            }
        }
    }

    fn handle_client(&self, stream: TcpStream, from: SocketAddr) -> Result<()> {
        let gateway = &self.gateway;
        if self.transparent {
            let wanted = stream.local_addr()?;
            if wanted == self.address {
                log::warn!("{from} connects to the gateway itself: is there a divert-to rule?");
                return Ok(());
            }
            if gateway.config.data_ports.contains(&wanted.port()) {
                if !gateway.expectations.deliver(stream, from.ip(), wanted) {
                    log::info!("unexpected data connection from {from} to {wanted}");
                }
                return Ok(());
            }
        }
        match gateway.sessions.admit(from.ip()) {
            Ok(counted) => {
                let id = self.ids.fetch_add(1, Relaxed);
                let session = Session::new(gateway.clone(), id, stream, self.transparent)?;
                tokio::spawn(async move {
                    let _counted = counted;
                    session.run().await;
                });
            }
            Err(limit) => {
                log::warn!("{limit} reached, refusing {from}");
                // a new socket has room in its send buffer
                let _ = stream.try_write(b"421 Too many sessions, come later\r\n");
            }
        }
        Ok(())
    }
}
