//! Sockets as the proxies need them.

use std::io;
use std::net::{SocketAddr, TcpListener};

use anyhow::{Context, Result};
use socket2::{Domain, SockRef, Socket, Type};
use tokio::net::TcpStream;

/// Connections that wait to be accepted.
const BACKLOG: i32 = 1024;

/// Listens for connections to `address`.
///
/// # Errors
/// Those of the system, with the address.
pub fn plain(address: SocketAddr) -> Result<TcpListener> {
    listen(address, |_| Ok(())).with_context(|| format!("listen on {address}"))
}

/// Listens for connections that `divert-to` brings, whatever their destination; it is the address
/// of the socket that is accepted.
///
/// # Errors
/// Those of the system, with the address.
pub fn transparent(address: SocketAddr) -> Result<TcpListener> {
    let prepare = |socket: &Socket| match address {
        SocketAddr::V4(_) => socket.set_ip_transparent_v4(true),
        SocketAddr::V6(_) => socket.set_ip_transparent_v6(true),
    };
    listen(address, prepare).with_context(|| format!("listen on {address}"))
}

fn listen(
    address: SocketAddr,
    prepare: impl FnOnce(&Socket) -> io::Result<()>,
) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, None)?;
    socket.set_reuse_address(true)?;
    if address.is_ipv6() {
        // who comes by IPv4 has its own socket, and not an address that looks like IPv6
        socket.set_only_v6(true)?;
    }
    prepare(&socket)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    socket.set_nonblocking(true)?;
    Ok(socket.into())
}

/// Prepares a control connection. Whether the other side is still there is asked once in a while: a
/// session may be silent for hours. Lines go out at once: one that waits for the acknowledgement of
/// the last waits for 40 ms. What is sent as urgent stays in its place, else a byte of the line is
/// missing that aborts a transfer.
///
/// # Errors
/// Those of the system.
pub fn prepare_control(stream: &TcpStream) -> io::Result<()> {
    SockRef::from(stream).set_keepalive(true)?;
    SockRef::from(stream).set_out_of_band_inline(true)?;
    stream.set_nodelay(true)
}
