//! Sockets for control connections.

use std::io;
use std::net::{SocketAddr, TcpListener};

use anyhow::{Context, Result};
use socket2::{Domain, SockRef, Socket, Type};
use tokio::net::TcpStream;

/// Number of connections that wait to be accepted.
const BACKLOG: i32 = 1024;

/// Listens for connections to `address`.
///
/// # Errors
/// Fails if the system refuses a call; the error names the address.
pub fn plain(address: SocketAddr) -> Result<TcpListener> {
    listen(address, |_| Ok(())).with_context(|| format!("listen on {address}"))
}

/// Listens at `address` for connections that `divert-to` brings. The local address of an accepted
/// socket is the original destination of the connection.
///
/// # Errors
/// Fails if the system refuses a call, for example without the right to use `IP_TRANSPARENT`; the
/// error names the address.
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
        // IPv4 clients use a socket of their own, so no address appears in IPv4-mapped form
        socket.set_only_v6(true)?;
    }
    prepare(&socket)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    socket.set_nonblocking(true)?;
    Ok(socket.into())
}

/// Sets three options of a control connection:
///
/// - Keepalive, because a session may be silent for hours and its peer may have vanished.
/// - No delay, because a line that waits for the last acknowledgement waits for 40 ms.
/// - Urgent data inline. Otherwise the line that aborts a transfer lacks a byte.
///
/// # Errors
/// Fails if the system refuses an option.
pub fn prepare_control(stream: &TcpStream) -> io::Result<()> {
    SockRef::from(stream).set_keepalive(true)?;
    SockRef::from(stream).set_out_of_band_inline(true)?;
    stream.set_nodelay(true)
}
