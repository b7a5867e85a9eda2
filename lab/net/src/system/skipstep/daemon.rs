//! skipstepd on the host in the middle. It runs beside every instance of skipstep, because it
//! reassembles fragments.

use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use anyhow::Context;

use crate::host::Host;
use crate::program::beside;

/// Abstract socket for skipstepd's readiness notification (sd_notify(3)). The name is visible on
/// that host only.
const READY: &str = "fwlab-skipstepd";

/// Longest time until skipstepd is ready.
const PATIENCE: Duration = Duration::from_secs(5);

/// Returns the skipstepd beside this program, or the name that is looked up in the path.
pub(super) fn skipstepd() -> PathBuf {
    beside("skipstepd")
}

/// Starts skipstepd on the caller's CPU, and waits until it is ready. It ends with the host.
pub(super) fn start(device: &Host) -> anyhow::Result<()> {
    let socket = device.inside(|| {
        let address = SocketAddr::from_abstract_name(READY)?;
        let socket = UnixDatagram::bind_addr(&address)?;
        socket.set_read_timeout(Some(PATIENCE))?;
        std::io::Result::Ok(socket)
    })??;
    let mut command = Command::new(skipstepd());
    command.env("NOTIFY_SOCKET", format!("@{READY}"));
    device.start(command, "")?;
    let ready = socket.recv(&mut [0; 64]);
    device.ensure_running().context("skipstepd")?;
    ready.map(drop).context("skipstepd did not become ready")
}
