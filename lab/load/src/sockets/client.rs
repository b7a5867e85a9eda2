//! The clients of each kind of load.

use std::io::{Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use fwlab_net::interrupt::Interrupt;
use fwlab_net::placement::Placement;
use fwlab_net::traffic::{CHARGEN, DISCARD, ECHO, FTP, HTTP, ONCE, TrafficKind};
use fwlab_net::transport::Transport;
use fwlab_results::Latency;

use super::server::BLOCK;
use super::{Talk, external};
use crate::ftp::Session;
use crate::request_response::{self, Protocol};

/// Time without an answer after which a client fails.
const PATIENCE: Duration = Duration::from_secs(2);

/// Bytes of the large file that an FTP bulk session fetches repeatedly.
const LARGE_FILE: usize = 16 << 20;

/// The result of a client.
#[derive(Clone)]
pub(super) struct ClientResult {
    pub value: f64,
    pub latency: Option<Latency>,
}

/// Runs a load as client `number`.
pub(super) fn run(
    talk: &Talk,
    number: usize,
    at: Placement,
    interrupt: &Interrupt,
) -> anyhow::Result<ClientResult> {
    let talk = &talk.of_client(number);
    let server = talk.way.address(talk.to, talk.family);
    let rate = |value| Ok(ClientResult { value, latency: None });
    match talk.kind {
        TrafficKind::Rr | TrafficKind::Ping => measure_requests(talk, server, interrupt),
        TrafficKind::Crr => {
            again_and_again(talk, interrupt, || connect_and_ask((server, ONCE).into(), talk.size))
        }
        TrafficKind::Http => {
            again_and_again(talk, interrupt, || fetch((server, HTTP).into(), talk.size))
        }
        TrafficKind::Ftp => {
            let mut block = vec![0; BLOCK];
            again_and_again(talk, interrupt, || {
                let mut session = begin_ftp(talk)?;
                session.fetch(&talk.size.to_string(), &mut block)?;
                session.end()
            })
        }
        TrafficKind::FtpBulk => rate(fetch_files(talk, interrupt)?),
        TrafficKind::Iperf3 | TrafficKind::Iperf3Reverse => {
            rate(external::iperf3(talk, number, at, interrupt)?)
        }
        TrafficKind::NetperfRr | TrafficKind::NetperfCrr => {
            rate(external::netperf(talk, at, interrupt)?)
        }
        TrafficKind::Send => rate(send((server, DISCARD).into(), talk.duration, interrupt)?),
        TrafficKind::Receive => rate(receive((server, CHARGEN).into(), talk.duration, interrupt)?),
        TrafficKind::Both => thread::scope(|scope| {
            let receiver =
                scope.spawn(|| receive((server, CHARGEN).into(), talk.duration, interrupt));
            let sent = send((server, DISCARD).into(), talk.duration, interrupt)?;
            let received =
                receiver.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
            rate(sent + received)
        }),
    }
}

/// Measures requests and answers over one connection, or with datagrams.
fn measure_requests(
    talk: &Talk,
    server: IpAddr,
    interrupt: &Interrupt,
) -> anyhow::Result<ClientResult> {
    let protocol = match talk.transport {
        Transport::Tcp => Protocol::Tcp,
        Transport::Udp => Protocol::Udp,
    };
    let server = (server, ECHO).into();
    let outcome = request_response::measure(protocol, server, talk.size, talk.duration, interrupt)?;
    let latency = Latency::from_times(outcome.times().iter().map(|&ns| (ns, 1)));
    let value = match talk.kind {
        TrafficKind::Ping => latency.quantile(0.5).unwrap_or_default() as f64,
        _ => outcome.rate(),
    };
    Ok(ClientResult { value, latency: Some(latency) })
}

/// Repeats a transaction and returns the transactions per second.
fn again_and_again(
    talk: &Talk,
    interrupt: &Interrupt,
    mut transaction: impl FnMut() -> anyhow::Result<()>,
) -> anyhow::Result<ClientResult> {
    let start = Instant::now();
    let mut times = Vec::new();
    let mut now = start;
    while now - start < talk.duration {
        interrupt.check()?;
        transaction()?;
        let then = std::mem::replace(&mut now, Instant::now());
        times.push((u64::try_from((now - then).as_nanos()).unwrap_or(u64::MAX), 1));
    }
    let value = times.len() as f64 / (now - start).as_secs_f64();
    Ok(ClientResult { value, latency: Some(Latency::from_times(times)) })
}

fn connect(server: SocketAddr) -> anyhow::Result<TcpStream> {
    let connect = || {
        let stream = TcpStream::connect_timeout(&server, PATIENCE)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        std::io::Result::Ok(stream)
    };
    connect().with_context(|| format!("no connection to {server}"))
}

/// Makes one connection with one request. The server closes first, so that the client has no ports
/// in TIME-WAIT.
fn connect_and_ask(server: SocketAddr, size: usize) -> anyhow::Result<()> {
    let mut stream = connect(server)?;
    let mut request = vec![b'q'; size.max(4)];
    let length = u32::try_from(request.len()).context("size")?;
    request[..4].copy_from_slice(&length.to_be_bytes());
    stream.write_all(&request)?;
    let mut answer = Vec::with_capacity(request.len());
    stream.read_to_end(&mut answer)?;
    ensure!(answer == request, "{server}: the response differs from the request");
    Ok(())
}

/// Fetches one page.
fn fetch(server: SocketAddr, size: usize) -> anyhow::Result<()> {
    let mut stream = connect(server)?;
    stream.write_all(format!("GET /{size} HTTP/1.0\r\n\r\n").as_bytes())?;
    let mut answer = Vec::with_capacity(size + 128);
    stream.read_to_end(&mut answer)?;
    let head = answer.windows(4).position(|window| window == b"\r\n\r\n");
    let head = head.with_context(|| format!("{server}: not an answer in HTTP"))? + 4;
    ensure!(answer.len() - head == size, "{server}: got {} of {size} bytes", answer.len() - head);
    Ok(())
}

fn begin_ftp(talk: &Talk) -> anyhow::Result<Session> {
    let server = talk.to.address(talk.family);
    let door = talk.way.address(talk.to, talk.family);
    let mut session = Session::begin((door, FTP).into(), &talk.way.user(server))?;
    session.active = talk.active;
    Ok(session)
}

/// Fetches large files in one session; returns megabits per second.
fn fetch_files(talk: &Talk, interrupt: &Interrupt) -> anyhow::Result<f64> {
    let mut block = vec![0; BLOCK];
    let mut session = begin_ftp(talk)?;
    let start = Instant::now();
    let mut total = 0;
    while start.elapsed() < talk.duration {
        interrupt.check()?;
        total += session.fetch(&LARGE_FILE.to_string(), &mut block)?;
    }
    let value = megabits(total, start.elapsed());
    session.end()?;
    Ok(value)
}

/// Sends bytes to the server, which counts them; returns megabits per second.
fn send(server: SocketAddr, duration: Duration, interrupt: &Interrupt) -> anyhow::Result<f64> {
    let mut stream = connect(server)?;
    let block = vec![b's'; BLOCK];
    let start = Instant::now();
    while start.elapsed() < duration {
        interrupt.check()?;
        stream.write_all(&block).with_context(|| format!("{server}: write"))?;
    }
    stream.shutdown(Shutdown::Write)?;
    let mut total = [0; 8];
    stream.read_exact(&mut total).with_context(|| format!("{server}: no count"))?;
    Ok(megabits(u64::from_be_bytes(total), start.elapsed()))
}

/// Receives bytes from the server; returns megabits per second.
fn receive(server: SocketAddr, duration: Duration, interrupt: &Interrupt) -> anyhow::Result<f64> {
    let mut stream = connect(server)?;
    let mut block = vec![0; BLOCK];
    let start = Instant::now();
    let mut total = 0;
    while start.elapsed() < duration {
        interrupt.check()?;
        let length = stream.read(&mut block).with_context(|| format!("{server}: read"))?;
        ensure!(length > 0, "{server}: closed");
        total += length as u64;
    }
    Ok(megabits(total, start.elapsed()))
}

fn megabits(bytes: u64, elapsed: Duration) -> f64 {
    bytes as f64 * 8.0 / 1e6 / elapsed.as_secs_f64()
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, TcpListener};
    use std::thread;

    use super::super::server::{once, page};
    use super::*;

    /// Serves one connection for each size, and has it used.
    fn with_sizes(
        serve: fn(&mut TcpStream, &mut [u8]) -> std::io::Result<()>,
        ask: fn(SocketAddr, usize) -> anyhow::Result<()>,
    ) {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let sizes = [0, 1, BLOCK, BLOCK + 1, 1_000_000];
        let server = thread::spawn(move || {
            for _ in sizes {
                serve(&mut listener.accept().unwrap().0, &mut vec![0; BLOCK]).unwrap();
            }
        });
        for size in sizes {
            ask(address, size).unwrap();
        }
        server.join().unwrap();
    }

    #[test]
    fn a_page_may_be_longer_than_a_block() {
        with_sizes(page, fetch);
    }

    #[test]
    fn a_request_may_be_longer_than_a_block() {
        with_sizes(once, connect_and_ask);
    }
}
