//! The request/response test of netperf: TCP_RR and UDP_RR, with requests and responses of equal
//! size.

use std::fmt;
use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream, UdpSocket};
use std::time::{Duration, Instant};

use anyhow::Context;
use clap::ValueEnum;
use fwlab_net::interrupt::Interrupt;

/// Time after which a datagram or a connection attempt counts as lost.
const PATIENCE: Duration = Duration::from_millis(500);

/// Transport protocol of a test.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum Protocol {
    /// one connection for the whole test
    Tcp,
    /// one socket for the whole test, serial numbers in the datagrams
    Udp,
}

/// The result of a test.
pub struct Transactions {
    /// Time of each transaction in nanoseconds, ascending.
    times: Vec<u64>,
    /// Time from the first request to the last response.
    elapsed: Duration,
    /// Number of requests without a response (UDP only).
    lost: u64,
}

/// Sends requests of `size` bytes to `server` for `duration`, after a warm-up of a tenth of that.
///
/// # Errors
/// Fails if the server does not answer, or if a signal arrives.
pub fn measure(
    protocol: Protocol,
    server: SocketAddr,
    size: usize,
    duration: Duration,
    interrupt: &Interrupt,
) -> anyhow::Result<Transactions> {
    let context = || format!("no answer from {server}");
    match protocol {
        Protocol::Tcp => {
            let mut asker = TcpAsker::connect(server, size).with_context(context)?;
            repeat(duration, server, interrupt, || asker.exchange().with_context(context))
        }
        Protocol::Udp => {
            let mut asker = UdpAsker::connect(server, size).with_context(context)?;
            repeat(duration, server, interrupt, || asker.exchange().with_context(context))
        }
    }
}

/// Repeats `exchange`, which returns true if the response arrived.
fn repeat(
    duration: Duration,
    server: SocketAddr,
    interrupt: &Interrupt,
    mut exchange: impl FnMut() -> anyhow::Result<bool>,
) -> anyhow::Result<Transactions> {
    let warm = Instant::now();
    while warm.elapsed() < duration / 10 {
        exchange()?;
    }
    let mut times = Vec::with_capacity(1 << 18);
    let mut lost = 0;
    let start = Instant::now();
    let mut now = start;
    while now - start < duration {
        interrupt.check()?;
        let answered = exchange()?;
        let then = std::mem::replace(&mut now, Instant::now());
        if answered {
            times.push(u64::try_from((now - then).as_nanos()).unwrap_or(u64::MAX));
        } else {
            lost += 1;
        }
    }
    anyhow::ensure!(!times.is_empty(), "no answer from {server} to {lost} requests");
    times.sort_unstable();
    Ok(Transactions { times, elapsed: now - start, lost })
}

struct TcpAsker {
    stream: TcpStream,
    request: Vec<u8>,
    response: Vec<u8>,
}

impl TcpAsker {
    fn connect(server: SocketAddr, size: usize) -> std::io::Result<TcpAsker> {
        let stream = TcpStream::connect_timeout(&server, PATIENCE)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE * 10))?;
        Ok(TcpAsker { stream, request: vec![b'q'; size], response: vec![0; size] })
    }

    fn exchange(&mut self) -> std::io::Result<bool> {
        self.stream.write_all(&self.request)?;
        self.stream.read_exact(&mut self.response)?;
        Ok(true)
    }
}

struct UdpAsker {
    socket: UdpSocket,
    serial: u64,
    request: Vec<u8>,
    response: Vec<u8>,
}

impl UdpAsker {
    fn connect(server: SocketAddr, size: usize) -> std::io::Result<UdpAsker> {
        let any = match server.ip() {
            IpAddr::V4(_) => IpAddr::from(Ipv4Addr::UNSPECIFIED),
            IpAddr::V6(_) => IpAddr::from(Ipv6Addr::UNSPECIFIED),
        };
        let socket = UdpSocket::bind((any, 0))?;
        socket.connect(server)?;
        socket.set_read_timeout(Some(PATIENCE))?;
        Ok(UdpAsker { socket, serial: 0, request: vec![b'q'; size], response: vec![0; size] })
    }

    fn exchange(&mut self) -> std::io::Result<bool> {
        self.serial += 1;
        self.request[..8].copy_from_slice(&self.serial.to_be_bytes());
        self.socket.send(&self.request)?;
        loop {
            match self.socket.recv(&mut self.response) {
                // a late response to an earlier request has a smaller serial number
                Ok(length) if self.response[..length] == self.request[..] => return Ok(true),
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(error),
            }
        }
    }
}

impl Transactions {
    /// Returns the times of the transactions in nanoseconds, ascending.
    pub fn times(&self) -> &[u64] {
        &self.times
    }

    /// Returns the transactions per second.
    pub fn rate(&self) -> f64 {
        self.times.len() as f64 / self.elapsed.as_secs_f64()
    }
}

impl fmt::Display for Transactions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let microseconds = |share: f64| {
            let last = self.times.len() - 1;
            self.times[(last as f64 * share) as usize] as f64 / 1000.0
        };
        write!(
            f,
            "rate={:.0} transactions={} lost={} median_us={:.1} p99_us={:.1}",
            self.rate(),
            self.times.len(),
            self.lost,
            microseconds(0.5),
            microseconds(0.99),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;
    use std::thread;

    const MOMENT: Duration = Duration::from_millis(20);

    #[test]
    fn tcp_transactions_are_counted() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let server = listener.local_addr().unwrap();
        thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut buffer = [0; 64];
            while stream.read_exact(&mut buffer).is_ok() && stream.write_all(&buffer).is_ok() {}
        });
        let outcome = measure(Protocol::Tcp, server, 64, MOMENT, &Interrupt::never()).unwrap();
        assert!(outcome.elapsed >= MOMENT);
        assert!(!outcome.times.is_empty());
        assert_eq!(outcome.lost, 0);
    }

    #[test]
    fn an_unanswered_datagram_is_lost_and_its_late_answer_is_not_the_next_ones() {
        let server = UdpSocket::bind("127.0.0.1:0").unwrap();
        let mut asker = UdpAsker::connect(server.local_addr().unwrap(), 8).unwrap();
        asker.socket.set_read_timeout(Some(MOMENT)).unwrap();
        assert!(!asker.exchange().unwrap());
        let mut buffer = [0; 8];
        let (length, client) = server.recv_from(&mut buffer).unwrap();
        server.send_to(&buffer[..length], client).unwrap();
        assert!(!asker.exchange().unwrap());
    }

    #[test]
    fn a_closed_port_is_an_error() {
        let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        assert!(measure(Protocol::Tcp, closed, 64, MOMENT, &Interrupt::never()).is_err());
    }
}
