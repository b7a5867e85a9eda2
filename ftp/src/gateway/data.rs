//! Data connections and their setup. Only the two hosts of the control connections can have one,
//! whatever addresses they name.

use std::net::{IpAddr, SocketAddr};
use std::ops::RangeInclusive;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use nix::sys::socket::{setsockopt, sockopt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::time::timeout;

use crate::gateway::expected::Expected;
use crate::gateway::network::Network;
use crate::gateway::ports::from_random_start;

/// A side's data connection before it carries data.
pub enum DataConnection {
    /// An established connection.
    Connected(TcpStream),
    /// The peer connects to us from this address.
    Listening(TcpListener, IpAddr),
    /// The peer connects to us through a rule of the packet filter.
    Expected(Expected),
    /// We connect to the first address, from the second.
    Connecting(SocketAddr, IpAddr),
}

impl DataConnection {
    /// Waits until the connection is established.
    ///
    /// # Errors
    /// Fails if the connection is not established in time, or if the system refuses a call.
    pub async fn establish(self, network: &dyn Network, patience: Duration) -> Result<TcpStream> {
        let meeting = async {
            match self {
                DataConnection::Connected(stream) => Ok(stream),
                DataConnection::Listening(listener, peer) => accept(&listener, peer).await,
                DataConnection::Expected(expected) => expected.connection().await,
                DataConnection::Connecting(to, from) => network.connect(to, from).await,
            }
        };
        timeout(patience, meeting).await.context("no data connection in time")?
    }
}

/// Accepts a connection of `peer` and closes those of others.
async fn accept(listener: &TcpListener, peer: IpAddr) -> Result<TcpStream> {
    loop {
        let (stream, from) = listener.accept().await?;
        if from.ip() == peer {
            return Ok(stream);
        }
        log::warn!("data connection from {from}, where {peer} was expected: closed");
    }
}

/// Connects to `to` from `from`, the address that the peer knows from the control connection.
///
/// # Errors
/// Fails if the address cannot be bound, or if the connection is refused.
pub async fn connect(to: SocketAddr, from: IpAddr) -> Result<TcpStream> {
    let socket = socket_for(to.ip())?;
    if !from.is_unspecified() {
        // the kernel chooses a port that is free for this pair of addresses; there are more pairs
        // than ports
        setsockopt(&socket, sockopt::IpBindAddressNoPort, &true).context("source")?;
        socket.bind((from, 0).into()).with_context(|| format!("source {from}"))?;
    }
    socket.connect(to).await.with_context(|| to.to_string())
}

/// Listens at `address`, at a random free port of `ports`.
///
/// # Errors
/// Fails if all ports are in use, or if the system refuses a call.
pub fn listen(address: IpAddr, ports: &RangeInclusive<u16>) -> Result<TcpListener> {
    for port in from_random_start(ports)? {
        let socket = socket_for(address)?;
        socket.set_reuseaddr(true)?;
        // a bind to a port with a listener succeeds because of SO_REUSEADDR, and the listen fails
        let listening = socket.bind((address, port).into()).and_then(|()| socket.listen(8));
        match listening {
            Ok(listener) => return Ok(listener),
            Err(error) if error.kind() == std::io::ErrorKind::AddrInUse => {}
            Err(error) => return Err(error).with_context(|| format!("{address} port {port}")),
        }
    }
    bail!("no port is left for data connections at {address}")
}

fn socket_for(address: IpAddr) -> Result<TcpSocket> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() };
    socket.context("socket")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gateway::network::System;

    #[tokio::test]
    async fn only_the_peer_is_let_in() {
        let own: IpAddr = "127.0.0.1".parse().unwrap();
        let listener = listen(own, &(40_000..=50_000)).unwrap();
        let address = listener.local_addr().unwrap();
        let connection = DataConnection::Listening(listener, "127.0.0.2".parse().unwrap());
        let stranger = connect(address, own).await.unwrap();
        let _peer = connect(address, "127.0.0.2".parse().unwrap()).await.unwrap();
        let met = connection.establish(&System, Duration::from_secs(5)).await.unwrap();
        assert_eq!(met.peer_addr().unwrap().ip().to_string(), "127.0.0.2");
        // the stranger's connection is closed: it sees the end of the stream, or a reset
        stranger.readable().await.unwrap();
        assert!(!matches!(stranger.try_read(&mut [0; 1]), Ok(1)));
    }

    #[tokio::test]
    async fn ports_run_out() {
        let own: IpAddr = "127.0.0.1".parse().unwrap();
        let taken = listen(own, &(40_000..=50_000)).unwrap();
        let port = taken.local_addr().unwrap().port();
        assert!(listen(own, &(port..=port)).is_err());
    }
}
