//! skipstepd on the host in the middle, as beside every pf that skipstep runs: it puts fragments
//! together.

use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use anyhow::Context;

use crate::host::Host;
use crate::program::beside;

/// Where it says that it is ready, as it would tell systemd: a name that is known on that host
/// alone.
const READY: &str = "fwlab-skipstepd";

/// How long that may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// The skipstepd that belongs to this program, or whatever the path has.
pub(super) fn skipstepd() -> PathBuf {
    beside("skipstepd")
}

/// Starts it, on the CPU of who calls this, and waits until it is ready. It goes with the host.
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
    ready.map(drop).context("skipstepd does not say that it is ready")
}
