//! Loads of other programs, iperf3 and netperf, where they are installed. Each has its own server,
//! and a client process for each simultaneous client. They run with ordinary priority. With
//! real-time priority, as fwlab's threads have, they would keep each other from the CPU, because
//! they sometimes wait without sleeping.

use std::fs;
use std::io::Read;
use std::net::{IpAddr, TcpListener};
use std::process::{Command, Stdio};
use std::thread::{self, ScopedJoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use fwlab_net::host::Host;
use fwlab_net::interrupt::Interrupt;
use fwlab_net::placement::Placement;
use fwlab_net::traffic::TrafficKind;
use fwlab_net::transport::Transport;

use super::Talk;

/// The first port of iperf3's servers, each of which serves one client; and the port of netserver.
const IPERF3: u16 = 5201;
const NETSERVER: u16 = 12_865;

/// Longest time until a server listens, and the interval of checks.
const PATIENCE: Duration = Duration::from_secs(5);
const TICK: Duration = Duration::from_millis(20);

/// Starts the external servers of a load at an address of a host, if the load has any. They end
/// with the host.
///
/// # Errors
/// Fails if a server does not start, or if its port is taken.
/// They do not start, or something listens there already.
pub fn serve(host: &Host, talk: &Talk, at: Placement, address: IpAddr) -> anyhow::Result<()> {
    let bound = address.to_string();
    let servers: Vec<(u16, Command)> = match talk.kind {
        TrafficKind::Iperf3 | TrafficKind::Iperf3Reverse => (0..talk.clients)
            .map(|number| {
                let port = port(number);
                let mut command = Command::new("iperf3");
                command.args(["-s", "-p", &port.to_string(), "-B", &bound]);
                (port, command)
            })
            .collect(),
        TrafficKind::NetperfRr | TrafficKind::NetperfCrr => {
            let mut command = Command::new("netserver");
            command.args(["-D", "-L", &bound]);
            vec![(NETSERVER, command)]
        }
        _ => Vec::new(),
    };
    let at = Placement { priority: 0, ..at };
    for (port, command) in servers {
        host.inside(|| TcpListener::bind((address, port)).map(drop))?
            .with_context(|| format!("{address}, tcp port {port}"))?;
        at.run(|| host.start(command, ""))??;
        let since = Instant::now();
        // a test by binding the port could take the port from the server
        while !host.inside(|| is_listened_at(address, port))?? {
            host.ensure_running()?;
            ensure!(since.elapsed() < PATIENCE, "nothing listens on port {port}");
            thread::sleep(TICK);
        }
    }
    Ok(())
}

/// Returns true if a socket in the calling thread's network listens at a port. The socket may have
/// this or any other address of the family. Source: `/proc/net/tcp` (proc(5)).
fn is_listened_at(address: IpAddr, port: u16) -> anyhow::Result<bool> {
    let path = match address {
        IpAddr::V4(_) => "/proc/thread-self/net/tcp",
        IpAddr::V6(_) => "/proc/thread-self/net/tcp6",
    };
    let sockets = fs::read_to_string(path).context(path)?;
    Ok(sockets.lines().any(|line| line_listens_at(line, port)))
}

/// Returns true if a line describes a listening socket (state 0A) at a port. The fields are number,
/// local address, remote address, state; ports are hexadecimal.
fn line_listens_at(line: &str, port: u16) -> bool {
    let fields: Vec<&str> = line.split_whitespace().take(4).collect();
    let &[_, local, _, "0A"] = &fields[..] else { return false };
    local.ends_with(&format!(":{port:04X}"))
}

fn port(number: usize) -> u16 {
    IPERF3 + number as u16
}

/// Runs iperf3 as client `number` and returns the megabits per second that the receiver counted.
/// iperf3 accepts whole seconds only.
pub(super) fn iperf3(
    talk: &Talk,
    number: usize,
    at: Placement,
    interrupt: &Interrupt,
) -> anyhow::Result<f64> {
    let mut command = Command::new("iperf3");
    let server = talk.way.address(talk.to, talk.family).to_string();
    command.args(["-c", &server, "-p", &port(number).to_string(), "-J", "-t", &seconds(talk)]);
    if talk.kind == TrafficKind::Iperf3Reverse {
        command.arg("-R");
    }
    let at = Placement { priority: 0, ..at };
    let since = Instant::now();
    loop {
        let (said, _) = run(&mut command, at, interrupt)?;
        match received(&said) {
            Some(value) => return Ok(value),
            // iperf3's server needs a moment between clients
            None if since.elapsed() < PATIENCE => thread::sleep(TICK),
            None => bail!("iperf3: {}", complaint(&said)),
        }
    }
}

/// Returns the error message in iperf3's JSON.
fn complaint(said: &str) -> String {
    let json: Option<serde_json::Value> = serde_json::from_str(said).ok();
    let error = json.as_ref().and_then(|json| json.get("error")?.as_str());
    error.unwrap_or("no figure in its output").to_owned()
}

/// Returns the receiver's megabits per second from iperf3's JSON.
fn received(said: &str) -> Option<f64> {
    let said: serde_json::Value = serde_json::from_str(said).ok()?;
    Some(said.pointer("/end/sum_received/bits_per_second")?.as_f64()? / 1e6)
}

/// Runs netperf and returns transactions per second, its only output at verbosity 0.
pub(super) fn netperf(talk: &Talk, at: Placement, interrupt: &Interrupt) -> anyhow::Result<f64> {
    let test = match (talk.kind, talk.transport) {
        (TrafficKind::NetperfCrr, _) => "TCP_CRR",
        (_, Transport::Tcp) => "TCP_RR",
        (_, Transport::Udp) => "UDP_RR",
    };
    let server = talk.way.address(talk.to, talk.family).to_string();
    let sizes = format!("{size},{size}", size = talk.size);
    let mut command = Command::new("netperf");
    command.args(["-H", &server, "-t", test, "-l", &seconds(talk), "-P", "0", "-v", "0"]);
    let at = Placement { priority: 0, ..at };
    let (said, complaint) = run(command.args(["--", "-r", &sizes]), at, interrupt)?;
    said.trim()
        .parse()
        .with_context(|| format!("netperf said: {} {}", said.trim(), complaint.trim()))
}

/// Runs a client to its end, or until an interrupt. Returns its standard output and standard error.
fn run(
    command: &mut Command,
    at: Placement,
    interrupt: &Interrupt,
) -> anyhow::Result<(String, String)> {
    let name = command.get_program().to_string_lossy().into_owned();
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = at.run(|| command.spawn())?.with_context(|| name.clone())?;
    let pipes = child.stdout.take().zip(child.stderr.take());
    let (mut out, mut err) = pipes.context("no pipes to a client")?;
    thread::scope(|scope| {
        let said = scope.spawn(move || read_all(&mut out));
        let complaint = scope.spawn(move || read_all(&mut err));
        while child.try_wait().context("wait")?.is_none() {
            if interrupt.came() {
                child.kill().and_then(|()| child.wait()).with_context(|| name.clone())?;
                break;
            }
            thread::sleep(TICK);
        }
        interrupt.check()?;
        let text = |reader: ScopedJoinHandle<'_, String>| {
            reader.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        Ok((text(said), text(complaint)))
    })
}

/// Reads a pipe to its end. A read error counts as the end.
fn read_all(pipe: &mut dyn Read) -> String {
    let mut bytes = Vec::new();
    let _ = pipe.read_to_end(&mut bytes);
    String::from_utf8_lossy(&bytes).into_owned()
}

fn seconds(talk: &Talk) -> String {
    talk.duration.as_secs_f64().ceil().to_string()
}

#[cfg(test)]
mod tests {
    use std::net::TcpStream;

    use super::*;

    #[test]
    fn iperf3_output_is_parsed() {
        let said = r#"{"start":{},"end":{"sum_sent":{"bits_per_second":9e9},"sum_received":{"bits_per_second":8.5e9}}}"#;
        assert_eq!(received(said), Some(8500.0));
        assert_eq!(received(r#"{"error":"unable to connect"}"#), None);
        assert_eq!(received(""), None);
        assert_eq!(complaint(r#"{"error":"unable to connect"}"#), "unable to connect");
    }

    #[test]
    fn a_listening_port_is_seen_without_taking_it() {
        for address in ["127.0.0.1", "::1"] {
            let address: IpAddr = address.parse().unwrap();
            let listener = TcpListener::bind((address, 0)).unwrap();
            let served = listener.local_addr().unwrap();
            let client = TcpStream::connect(served).unwrap();
            assert!(is_listened_at(address, served.port()).unwrap());
            assert!(!is_listened_at(address, client.local_addr().unwrap().port()).unwrap());
        }
        let line = "   0: 0200000A:1451 00000000:0000 0A 00000000:00000000 00:00000000 00000000";
        assert!(line_listens_at(line, 5201));
        assert!(!line_listens_at(line, 5202));
        assert!(!line_listens_at(&line.replace(" 0A ", " 01 "), 5201));
    }
}
