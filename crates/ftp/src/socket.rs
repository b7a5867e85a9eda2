//! Sockets as the proxies need them.

use std::net::{SocketAddr, TcpListener};

use anyhow::{Context, Result};
use socket2::{Domain, SockRef, Socket, Type};
use tokio::net::TcpStream;

/// Connections that wait to be accepted.
const BACKLOG: i32 = 1024;

/// Listens for connections that `divert-to` brings, whatever their destination; it is the address of
/// the socket that is accepted.
///
/// # Errors
/// Those of the system, with the address.
pub fn transparent(address: SocketAddr) -> Result<TcpListener> {
    let listen = || -> std::io::Result<TcpListener> {
        let socket = Socket::new(Domain::for_address(address), Type::STREAM, None)?;
        socket.set_reuse_address(true)?;
        match address {
            SocketAddr::V4(_) => socket.set_ip_transparent_v4(true)?,
            SocketAddr::V6(_) => socket.set_ip_transparent_v6(true)?,
        }
        socket.bind(&address.into())?;
        socket.listen(BACKLOG)?;
        socket.set_nonblocking(true)?;
        Ok(socket.into())
    };
    listen().with_context(|| format!("listen on {address}"))
}

/// Asks whether the other side is still there, once in a while: a session may be silent for hours.
///
/// # Errors
/// Those of the system.
pub fn keep_alive(stream: &TcpStream) -> Result<()> {
    SockRef::from(stream).set_keepalive(true).context("keepalive")
}
