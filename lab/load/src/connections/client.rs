//! The virtual clients. Connections begin at their scheduled times, independent of the success of
//! earlier ones.

use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

use anyhow::Context;
use fwlab_net::interrupt::Interrupt;
use nix::errno::Errno;
use nix::libc;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags};
use nix::sys::socket::{
    AddressFamily, SockFlag, SockType, SockaddrStorage, bind, connect, setsockopt, socket, sockopt,
};

use super::server::answer;
use super::{Answers, Calls, PATIENCE};

/// Shortest and longest sleep in milliseconds. Attempts that fall due during a sleep are made one
/// right after the other.
const SHORTEST: u16 = 1;
const LONGEST: u16 = 10;

/// Largest number of epoll events handled at once.
const EVENTS: usize = 256;

/// Size of a read in bytes.
const PIECE: usize = 16_384;

/// The stage of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Connecting,
    /// The connection is open, and the client waits for nothing.
    Held,
    /// The request was sent, and this many bytes of the answer have arrived.
    Asked(usize),
    /// The client has closed its side and waits for the server to close.
    Closing,
}

struct Connection {
    stream: TcpStream,
    stage: Stage,
    /// The time at which the connection entered its stage.
    since: Instant,
    forbidden: bool,
    /// Number of pages that are still to be requested.
    left: u32,
}

struct Client<'c> {
    calls: &'c Calls,
    /// The request that each client sends.
    request: String,
    expected_answer: Vec<u8>,
    interrupt: &'c Interrupt,
    epoll: Epoll,
    connections: Vec<Option<Connection>>,
    /// Number of connections that the client waits for.
    expected: u64,
    /// Times at which a connection may time out, with the connection's index, in order of time.
    deadlines: VecDeque<(Instant, usize)>,
    /// Total time spent asleep.
    idle: Duration,
    answers: Answers,
}

/// Makes the calls from the network namespace of the calling thread.
///
/// # Errors
/// Fails if local ports or files run out, if a client's address cannot be bound, or if a signal
/// arrives.
pub fn call(calls: &Calls, interrupt: &Interrupt) -> anyhow::Result<Answers> {
    let began = Instant::now();
    let mut client = Client {
        calls,
        request: format!("GET /{} HTTP/1.1\r\nHost: fwlab\r\n\r\n", calls.pages.bytes),
        expected_answer: answer(calls.pages.bytes),
        interrupt,
        epoll: Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).context("epoll")?,
        connections: Vec::new(),
        expected: 0,
        deadlines: VecDeque::new(),
        idle: Duration::ZERO,
        answers: Answers::default(),
    };
    client.answers.took = client.at_rate(calls.rate, Client::begin)?;
    client.until_nothing_is_expected()?;
    if calls.hold {
        client.at_rate(calls.rate, |client, number| {
            client.request_page(number as usize);
            Ok(())
        })?;
        client.until_nothing_is_expected()?;
    }
    if let Some(rate) = calls.close {
        client.answers.closing = client.at_rate(rate, |client, number| {
            client.close(number as usize);
            Ok(())
        })?;
        client.until_nothing_is_expected()?;
    }
    client.answers.busy = began.elapsed().saturating_sub(client.idle);
    Ok(std::mem::take(&mut client.answers))
}

impl Client<'_> {
    /// Calls `work` with each number when that attempt is due, and handles events in between.
    /// Returns the elapsed time.
    fn at_rate(
        &mut self,
        rate: f64,
        mut work: impl FnMut(&mut Self, u64) -> anyhow::Result<()>,
    ) -> anyhow::Result<Duration> {
        let start = Instant::now();
        for number in 0..self.calls.count {
            let due = start + Duration::from_secs_f64(number as f64 / rate);
            let mut left = due.saturating_duration_since(Instant::now());
            while !left.is_zero() {
                let turn = (left.as_millis() as u16).clamp(SHORTEST, LONGEST);
                self.look_after(turn)?;
                left = due.saturating_duration_since(Instant::now());
            }
            if number % EVENTS as u64 == 0 {
                // a client that is behind schedule does not sleep, so handle events here
                self.look_after(0)?;
            }
            work(self, number)?;
        }
        Ok(start.elapsed())
    }

    fn until_nothing_is_expected(&mut self) -> anyhow::Result<()> {
        while self.expected > 0 {
            self.look_after(LONGEST)?;
        }
        Ok(())
    }

    /// Begins the connection of attempt `number`.
    fn begin(&mut self, number: u64) -> anyhow::Result<()> {
        let forbidden = self.calls.is_forbidden(number);
        *(if forbidden { &mut self.answers.forbidden } else { &mut self.answers.attempted }) += 1;
        let mut server = self.calls.server_of(number);
        if forbidden {
            server.set_port(self.calls.forbidden_port);
        }
        let family = if server.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 };
        let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
        let socket = socket(family, SockType::Stream, flags, None).context("a client's socket")?;
        let own = self.calls.client(number);
        if let Some(own) = own {
            // the kernel chooses the port at connect: a port may be in use towards another
            // destination
            setsockopt(&socket, sockopt::IpBindAddressNoPort, &true)
                .context("a client's socket")?;
            bind(socket.as_raw_fd(), &SockaddrStorage::from(SocketAddr::new(own, 0)))
                .with_context(|| format!("{own} is not an address of the client"))?;
        }
        let since = Instant::now();
        match connect(socket.as_raw_fd(), &SockaddrStorage::from(server)) {
            Ok(()) | Err(Errno::EINPROGRESS) => {}
            Err(error @ (Errno::EADDRNOTAVAIL | Errno::ENETUNREACH)) => {
                let from = own.map_or(String::new(), |own| format!("from {own} "));
                return Err(error).with_context(|| match error {
                    Errno::ENETUNREACH => format!("{from}to {server}"),
                    _ => format!(
                        "{from}to {server}: all ports are taken (net.ipv4.ip_local_port_range)"
                    ),
                });
            }
            // the connection was refused at once
            Err(_) => {
                self.connections.push(None);
                return Ok(());
            }
        }
        let place = self.connections.len();
        let stream = TcpStream::from(socket);
        let all = EpollFlags::EPOLLIN | EpollFlags::EPOLLOUT | EpollFlags::EPOLLRDHUP;
        let event = EpollEvent::new(all | EpollFlags::EPOLLET, place as u64);
        self.epoll.add(&stream, event).context("epoll")?;
        let stage = Stage::Connecting;
        let left = if self.calls.hold { 1 } else { self.calls.pages.requests };
        self.connections.push(Some(Connection { stream, stage, since, forbidden, left }));
        self.expect(place, since);
        Ok(())
    }

    /// Marks a connection as one that the client waits for.
    fn expect(&mut self, place: usize, since: Instant) {
        self.expected += 1;
        self.deadlines.push_back((since + PATIENCE, place));
    }

    /// Requests a page, if the connection exists.
    fn request_page(&mut self, place: usize) {
        let Some(connection) = &mut self.connections[place] else { return };
        connection.stage = Stage::Asked(0);
        connection.since = Instant::now();
        connection.left -= 1;
        let request = self.request.as_bytes();
        let (since, sent) = (connection.since, connection.stream.write(request));
        self.expect(place, since);
        if !matches!(sent, Ok(length) if length == self.request.len()) {
            self.fail(place);
        }
    }

    /// Closes the client's side of a connection, if the connection exists.
    fn close(&mut self, place: usize) {
        let Some(connection) = &mut self.connections[place] else { return };
        connection.stage = Stage::Closing;
        connection.since = Instant::now();
        let (since, closed) = (connection.since, connection.stream.shutdown(Shutdown::Write));
        self.expect(place, since);
        if closed.is_err() {
            self.fail(place);
        }
    }

    /// Waits for events at most `milliseconds`, handles them, and fails connections that timed out.
    fn look_after(&mut self, milliseconds: u16) -> anyhow::Result<()> {
        self.interrupt.check()?;
        let mut events = [EpollEvent::empty(); EVENTS];
        let since = Instant::now();
        let count = match self.epoll.wait(&mut events, milliseconds) {
            Err(Errno::EINTR) => 0,
            other => other.context("epoll")?,
        };
        if milliseconds > 0 {
            self.idle += since.elapsed();
        }
        for event in &events[..count] {
            self.on_event(event.data() as usize);
        }
        let now = Instant::now();
        while let Some(&(deadline, place)) = self.deadlines.front()
            && deadline <= now
        {
            self.deadlines.pop_front();
            let waits = |connection: &Connection| {
                connection.stage != Stage::Held && connection.since + PATIENCE <= now
            };
            if self.connections[place].as_ref().is_some_and(waits) {
                self.fail(place);
            }
        }
        Ok(())
    }

    fn on_event(&mut self, place: usize) {
        let Some(connection) = &mut self.connections[place] else { return };
        match connection.stage {
            Stage::Connecting => {
                let broken = !matches!(connection.stream.take_error(), Ok(None));
                if broken {
                    self.fail(place);
                } else if connection.stream.peer_addr().is_ok() {
                    self.on_connected(place);
                }
            }
            // an error shows when the client sends a request
            Stage::Held => {}
            Stage::Asked(got) => self.read(place, got),
            Stage::Closing => match connection.stream.read(&mut [0; 1]) {
                Ok(0) => {
                    self.answers.closed.push(nanoseconds(connection.since.elapsed()));
                    self.expected -= 1;
                    self.connections[place] = None;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                _ => self.fail(place),
            },
        }
    }

    fn on_connected(&mut self, place: usize) {
        let Some(connection) = &mut self.connections[place] else { return };
        if connection.forbidden {
            // the server knows if the attempt passed the filter: some filters complete the
            // handshake in the server's place
            self.fail(place);
            return;
        }
        self.answers.setup.push(nanoseconds(connection.since.elapsed()));
        self.answers.established += 1;
        connection.stage = Stage::Held;
        self.expected -= 1;
        if !self.calls.hold {
            self.request_page(place);
        }
    }

    fn read(&mut self, place: usize, mut got: usize) {
        let Some(connection) = &mut self.connections[place] else { return };
        let mut buffer = [0; PIECE];
        loop {
            match connection.stream.read(&mut buffer) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    connection.stage = Stage::Asked(got);
                    return;
                }
                Ok(length)
                    if length > 0 && self.expected_answer[got..].starts_with(&buffer[..length]) =>
                {
                    got += length;
                }
                // the server closed too early, or sent other bytes
                _ => return self.fail(place),
            }
            if got == self.expected_answer.len() {
                self.answers.fetched.push(nanoseconds(connection.since.elapsed()));
                self.expected -= 1;
                connection.stage = Stage::Held;
                if connection.left > 0 {
                    return self.request_page(place);
                }
                self.answers.served += 1;
                if !self.calls.hold {
                    // an ordinary close: four segments
                    self.connections[place] = None;
                }
                return;
            }
        }
    }

    /// Gives up a connection that the client waits for.
    fn fail(&mut self, place: usize) {
        self.expected -= 1;
        reset(self.connections[place].take());
    }
}

impl Drop for Client<'_> {
    fn drop(&mut self) {
        self.connections.drain(..).for_each(reset);
    }
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// Resets a connection, as RFC 3511 recommends between trials.
fn reset(connection: Option<Connection>) {
    if let Some(Connection { stream, .. }) = connection {
        let at_once = libc::linger { l_onoff: 1, l_linger: 0 };
        // if the option fails, the connection is closed in the ordinary way
        let _ = setsockopt(&stream, sockopt::Linger, &at_once);
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv6Addr};

    use super::*;
    use crate::connections::Pages;
    use crate::connections::server::Service;

    const ANY: IpAddr = IpAddr::V6(Ipv6Addr::UNSPECIFIED);

    fn calls(count: u64, hold: bool, service: &Service) -> Calls {
        let server = SocketAddr::new("127.0.0.1".parse().unwrap(), service.port());
        Calls {
            server,
            ports: 1,
            clients: (1..=250).map(|host| [127, 0, 0, host].into()).collect(),
            count,
            rate: 2000.0,
            hold,
            close: None,
            forbidden: 0,
            forbidden_port: 1,
            pages: Pages::ONE,
        }
    }

    #[test]
    fn every_call_is_answered_and_all_are_open_at_once_if_they_are_held() {
        let interrupt = Interrupt::watch().unwrap();
        for hold in [false, true] {
            let service = Service::begin(ANY, &[0]).unwrap();
            let answers = call(&calls(100, hold, &service), &interrupt).unwrap();
            assert_eq!((answers.attempted, answers.established, answers.served), (100, 100, 100));
            assert!(answers.took >= Duration::from_millis(49), "{:?}", answers.took);
            assert!(answers.busy < answers.took, "{answers:?}");
            assert_eq!(answers.setup.len(), 100);
            assert_eq!(service.most_at_once() == 100, hold, "{}", service.most_at_once());
        }
    }

    #[test]
    fn the_route_has_an_address_and_ports_of_the_server_take_turns() {
        let interrupt = Interrupt::watch().unwrap();
        // two consecutive free ports
        let (first, service) = (20_000..30_000)
            .step_by(2)
            .find_map(|port| Some((port, Service::begin(ANY, &[port, port + 1]).ok()?)))
            .unwrap();
        let calls = calls(10, false, &service);
        let server = SocketAddr::new(calls.server.ip(), first);
        let calls = Calls { server, ports: 2, clients: Vec::new(), ..calls };
        assert_eq!(call(&calls, &interrupt).unwrap().served, 10);
        assert_eq!([service.came(first), service.came(first + 1)], [5, 5]);
        let strange = Calls { clients: vec![[192, 0, 2, 1].into()], ..calls };
        let why = call(&strange, &interrupt).unwrap_err();
        assert!(
            format!("{why:#}").contains("192.0.2.1 is not an address of the client"),
            "{why:#}"
        );
    }

    #[test]
    fn pages_of_any_size_come_one_after_the_other() {
        let interrupt = Interrupt::watch().unwrap();
        for bytes in [0, 1, 64, 5_000_000] {
            let service = Service::begin(ANY, &[0]).unwrap();
            let pages = Pages { requests: 3, bytes };
            let answers = call(&Calls { pages, ..calls(4, false, &service) }, &interrupt).unwrap();
            assert_eq!((answers.served, answers.fetched.len()), (4, 12), "{bytes}");
        }
    }

    #[test]
    fn connections_are_closed_by_both_sides_at_a_rate_of_their_own() {
        let interrupt = Interrupt::watch().unwrap();
        let service = Service::begin(ANY, &[0]).unwrap();
        let calls = Calls { close: Some(500.0), ..calls(50, true, &service) };
        let answers = call(&calls, &interrupt).unwrap();
        assert_eq!((answers.served, answers.closed.len()), (50, 50));
        assert!(answers.closing >= Duration::from_millis(97), "{:?}", answers.closing);
        assert!(answers.took < answers.closing, "{answers:?}");
    }

    #[test]
    fn refused_and_unanswered_connections_fail() {
        let interrupt = Interrupt::watch().unwrap();
        let service = Service::begin(ANY, &[0]).unwrap();
        // nobody listens at port 1
        let half = Calls { forbidden: 50, ..calls(20, false, &service) };
        let answers = call(&half, &interrupt).unwrap();
        assert_eq!((answers.attempted, answers.served), (10, 10));
        assert_eq!((answers.forbidden, service.came(service.port())), (10, 10));
        // a socket that listens and never answers
        let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let silent = Calls { server: silent.local_addr().unwrap(), ..calls(3, true, &service) };
        let answers = call(&silent, &interrupt).unwrap();
        assert_eq!((answers.attempted, answers.established, answers.served), (3, 3, 0));
    }
}
