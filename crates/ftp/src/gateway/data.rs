//! Data connections: the way that each side's comes to be. Only the two hosts of the session's
//! control connections have any, whatever addresses are named.

use std::net::{IpAddr, SocketAddr};
use std::ops::RangeInclusive;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use nix::sys::socket::{setsockopt, sockopt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::time::timeout;

use crate::gateway::expected::Expected;
use crate::gateway::network::Network;
use crate::gateway::ports::from_anywhere;

/// A side's data connection, as it will come or is already there.
pub enum Way {
    /// It is there.
    Connected(TcpStream),
    /// The other side connects to us, from this address.
    Listening(TcpListener, IpAddr),
    /// The same, by a rule of the packet filter.
    Expected(Expected),
    /// We connect to the other side: where to, and from where.
    Connecting(SocketAddr, IpAddr),
}

impl Way {
    /// Waits until the connection is there.
    ///
    /// # Errors
    /// It does not come in time, or those of the system.
    pub async fn meet(self, network: &dyn Network, patience: Duration) -> Result<TcpStream> {
        let meeting = async {
            match self {
                Way::Connected(stream) => Ok(stream),
                Way::Listening(listener, peer) => accept(&listener, peer).await,
                Way::Expected(expected) => expected.come().await,
                Way::Connecting(to, from) => network.connect(to, from).await,
            }
        };
        timeout(patience, meeting).await.context("nobody comes")?
    }
}

/// The connection of `peer`; those of others are closed.
async fn accept(listener: &TcpListener, peer: IpAddr) -> Result<TcpStream> {
    loop {
        let (stream, from) = listener.accept().await?;
        if from.ip() == peer {
            return Ok(stream);
        }
        log::warn!("data connection from {from}, where {peer} was expected: closed");
    }
}

/// Connects to `to` as the host that it knows from the control connection.
///
/// # Errors
/// Those of the system.
pub async fn connect(to: SocketAddr, from: IpAddr) -> Result<TcpStream> {
    let socket = socket_for(to.ip())?;
    if !from.is_unspecified() {
        // a port that is taken only for one pair of ends, of which there are many more than ports
        setsockopt(&socket, sockopt::IpBindAddressNoPort, &true).context("source")?;
        socket.bind((from, 0).into()).with_context(|| format!("source {from}"))?;
    }
    socket.connect(to).await.with_context(|| to.to_string())
}

/// Listens at `address`, at one of `ports`.
///
/// # Errors
/// All of them are taken, or those of the system.
pub fn listen(address: IpAddr, ports: &RangeInclusive<u16>) -> Result<TcpListener> {
    for port in from_anywhere(ports)? {
        let socket = socket_for(address)?;
        socket.set_reuseaddr(true)?;
        // a port that somebody listens at can be bound, but not listened at
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
        let way = Way::Listening(listener, "127.0.0.2".parse().unwrap());
        let stranger = connect(address, own).await.unwrap();
        let _peer = connect(address, "127.0.0.2".parse().unwrap()).await.unwrap();
        let met = way.meet(&System, Duration::from_secs(5)).await.unwrap();
        assert_eq!(met.peer_addr().unwrap().ip().to_string(), "127.0.0.2");
        // it was closed: the end of its stream comes, or a reset
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
