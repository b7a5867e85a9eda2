//! The readiness message to systemd (sd_notify(3)): a datagram to the socket that systemd names.
//!
//! The crate sd-notify does not send to sockets in the abstract namespace, which systemd uses in
//! containers.

use std::env;
use std::ffi::OsStr;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// Sends `READY=1` to `$NOTIFY_SOCKET`. Does nothing if the variable is not set.
///
/// # Errors
/// Fails if the socket does not exist, or if the system refuses to send.
pub fn ready() -> io::Result<()> {
    match env::var_os("NOTIFY_SOCKET") {
        Some(name) => send(&name, b"READY=1"),
        None => Ok(()),
    }
}

/// Sends `message` to the socket `name`, a path, or a name in the abstract namespace behind an `@`.
fn send(name: &OsStr, message: &[u8]) -> io::Result<()> {
    let address = match name.as_bytes().strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name)?,
        None => SocketAddr::from_pathname(name)?,
    };
    UnixDatagram::unbound()?.send_to_addr(message, &address).map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_message_arrives_at_a_path() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("notify");
        let socket = UnixDatagram::bind(&path).unwrap();
        send(path.as_os_str(), b"READY=1").unwrap();
        let mut message = [0; 16];
        let length = socket.recv(&mut message).unwrap();
        assert_eq!(&message[..length], b"READY=1");
    }

    #[test]
    fn the_message_arrives_at_an_abstract_name() {
        let name = format!("skipstep-notify-{}", std::process::id());
        let address = SocketAddr::from_abstract_name(&name).unwrap();
        let socket = UnixDatagram::bind_addr(&address).unwrap();
        send(OsStr::new(&format!("@{name}")), b"READY=1").unwrap();
        let mut message = [0; 16];
        let length = socket.recv(&mut message).unwrap();
        assert_eq!(&message[..length], b"READY=1");
    }
}
