//! The services of a server at their traditional ports: echo, discard, chargen, FTP and HTTP, and
//! one that answers once. Each service has a thread for each simultaneous client. A thread serves
//! one connection after the other, so no connection needs a new thread.

use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv6Addr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::Context;
use fwlab_net::host::Host;
use fwlab_net::placement::Placement;
use fwlab_net::traffic::{CHARGEN, DISCARD, ECHO, FTP, HTTP, ONCE, TrafficKind};
use fwlab_net::transport::Transport;
use nix::sys::socket::{Shutdown, shutdown};

use super::listener::PATIENCE;
use super::{Talk, ftp_session};

/// Lowest port of clients. A datagram from a lower port may be forged, to make two echo servers
/// answer each other endlessly.
const FIRST_OF_CLIENTS: u16 = 1024;

/// Size of a read or write in bytes.
pub(super) const BLOCK: usize = 128 * 1024;

/// Most bytes of a request that is sent back as a whole.
const LONGEST_REQUEST: usize = 64 << 20;

/// Interval at which the datagram thread checks if it should end.
const TURN: Duration = Duration::from_millis(100);

/// A server. Its threads end when this value is dropped.
pub struct Server {
    over: Arc<AtomicBool>,
    listeners: Vec<TcpListener>,
    threads: Vec<JoinHandle<()>>,
}

type Serve = fn(&mut TcpStream, &mut [u8]) -> std::io::Result<()>;

/// A port and the function that serves its connections.
type Service = (u16, Serve);

const SERVICES: [Service; 6] = [
    (ECHO, echo),
    (DISCARD, discard),
    (ONCE, once),
    (CHARGEN, chargen),
    (FTP, ftp_session::serve),
    (HTTP, page),
];

impl Server {
    /// Starts all services on a host of the lab, for `clients` simultaneous clients, in threads at
    /// the given placement.
    ///
    /// # Errors
    /// Fails if a port is taken.
    pub fn start(host: &Host, at: Placement, clients: usize) -> anyhow::Result<Server> {
        let address = Ipv6Addr::UNSPECIFIED.into();
        Server::open(host, at, clients, address, &SERVICES, true)
    }

    /// Starts FTP services at other ports, each for one session at a time.
    ///
    /// # Errors
    /// Fails if a port is taken.
    pub(super) fn of_sessions(host: &Host, at: Placement, ports: &[u16]) -> anyhow::Result<Server> {
        let services: Vec<Service> =
            ports.iter().map(|&port| (port, ftp_session::serve as Serve)).collect();
        Server::open(host, at, 1, Ipv6Addr::UNSPECIFIED.into(), &services, false)
    }

    /// Starts only the services that one load needs, at one address. A host with other neighbours
    /// than the clients uses this function.
    ///
    /// # Errors
    /// Fails if a port is taken, or if the host does not have the address.
    pub fn start_for(
        talk: &Talk,
        host: &Host,
        at: Placement,
        address: IpAddr,
    ) -> anyhow::Result<Server> {
        let is_udp = talk.transport == Transport::Udp;
        let ports: &[u16] = match talk.kind {
            TrafficKind::Rr | TrafficKind::Ping if is_udp => &[],
            TrafficKind::Rr | TrafficKind::Ping => &[ECHO],
            TrafficKind::Crr => &[ONCE],
            TrafficKind::Send => &[DISCARD],
            TrafficKind::Receive => &[CHARGEN],
            TrafficKind::Both => &[DISCARD, CHARGEN],
            TrafficKind::Http => &[HTTP],
            TrafficKind::Ftp | TrafficKind::FtpBulk => &[FTP],
            TrafficKind::Iperf3
            | TrafficKind::Iperf3Reverse
            | TrafficKind::NetperfRr
            | TrafficKind::NetperfCrr => &[],
        };
        let wanted = SERVICES.into_iter().filter(|(port, _)| ports.contains(port));
        Server::open(host, at, talk.clients, address, &wanted.collect::<Vec<_>>(), is_udp)
    }

    fn open(
        host: &Host,
        at: Placement,
        clients: usize,
        address: IpAddr,
        services: &[Service],
        echoes_datagrams: bool,
    ) -> anyhow::Result<Server> {
        let over = Arc::new(AtomicBool::new(false));
        let mut server = Server { over, listeners: Vec::new(), threads: Vec::new() };
        // new threads inherit the host and the CPU of the thread that makes them
        host.inside(|| -> anyhow::Result<()> {
            at.take()?;
            for &(port, serve) in services {
                let listener = TcpListener::bind((address, port));
                let listener = listener.with_context(|| format!("{address}, tcp port {port}"))?;
                for _ in 0..clients {
                    let (listener, over) = (listener.try_clone()?, server.over.clone());
                    server.threads.push(thread::spawn(move || accept(&listener, serve, &over)));
                }
                server.listeners.push(listener);
            }
            if echoes_datagrams {
                let context = || format!("{address}, udp port {ECHO}");
                let socket = UdpSocket::bind((address, ECHO)).with_context(context)?;
                socket.set_read_timeout(Some(TURN)).with_context(context)?;
                let over = server.over.clone();
                server.threads.push(thread::spawn(move || answer(&socket, &over)));
            }
            Ok(())
        })??;
        Ok(server)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        for listener in &self.listeners {
            // wakes threads that wait for a client; an error means that they were woken already
            let _ = shutdown(listener.as_raw_fd(), Shutdown::Both);
        }
        for thread in self.threads.drain(..) {
            // a panic has printed its own message
            let _ = thread.join();
        }
    }
}

fn accept(listener: &TcpListener, serve: Serve, over: &AtomicBool) {
    let mut buffer = vec![0; BLOCK];
    while let Ok((mut client, _)) = listener.accept() {
        if over.load(Ordering::Relaxed) {
            return;
        }
        let ready = client
            .set_nodelay(true)
            .and_then(|()| client.set_read_timeout(Some(PATIENCE)))
            .and_then(|()| client.set_write_timeout(Some(PATIENCE)));
        // a broken connection concerns its client, which sees the error, too
        let _ = ready.and_then(|()| serve(&mut client, &mut buffer));
    }
}

fn echo(client: &mut TcpStream, buffer: &mut [u8]) -> std::io::Result<()> {
    loop {
        match client.read(buffer)? {
            0 => return Ok(()),
            length => client.write_all(&buffer[..length])?,
        }
    }
}

fn discard(client: &mut TcpStream, buffer: &mut [u8]) -> std::io::Result<()> {
    let mut total = 0u64;
    loop {
        match client.read(buffer)? {
            0 => return client.write_all(&total.to_be_bytes()),
            length => total += length as u64,
        }
    }
}

pub(super) fn once(client: &mut TcpStream, buffer: &mut [u8]) -> std::io::Result<()> {
    client.read_exact(&mut buffer[..4])?;
    let length = u32::from_be_bytes([buffer[0], buffer[1], buffer[2], buffer[3]]) as usize;
    let mut request = vec![0; length.clamp(4, LONGEST_REQUEST)];
    request[..4].copy_from_slice(&buffer[..4]);
    client.read_exact(&mut request[4..])?;
    client.write_all(&request)
}

fn chargen(client: &mut TcpStream, buffer: &mut [u8]) -> std::io::Result<()> {
    loop {
        client.write_all(buffer)?;
    }
}

pub(super) fn page(client: &mut TcpStream, buffer: &mut [u8]) -> std::io::Result<()> {
    let mut length = 0;
    while !buffer[..length].ends_with(b"\r\n\r\n") {
        match client.read(&mut buffer[length..])? {
            0 => return Err(ErrorKind::UnexpectedEof.into()),
            more => length += more,
        }
    }
    let request = String::from_utf8_lossy(&buffer[..length]).into_owned();
    let size = request.strip_prefix("GET /").and_then(|rest| rest.split(' ').next()?.parse().ok());
    let mut left = size.unwrap_or(0u32) as usize;
    let head = format!("HTTP/1.0 200 OK\r\nContent-Length: {left}\r\n\r\n");
    client.write_all(head.as_bytes())?;
    while left > 0 {
        let block = left.min(buffer.len());
        client.write_all(&buffer[..block])?;
        left -= block;
    }
    Ok(())
}

fn answer(socket: &UdpSocket, over: &AtomicBool) {
    let mut buffer = vec![0; BLOCK];
    while !over.load(Ordering::Relaxed) {
        // a timeout, or an ICMP error for an answer: read on
        if let Ok((length, client)) = socket.recv_from(&mut buffer)
            && client.port() >= FIRST_OF_CLIENTS
        {
            let _ = socket.send_to(&buffer[..length], client);
        }
    }
}
