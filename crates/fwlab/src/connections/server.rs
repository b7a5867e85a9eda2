//! The server: takes every connection and gives a page to who asks for one.

use std::collections::HashMap;
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv6Addr, TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};

use anyhow::Context;
use nix::errno::Errno;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags};
use nix::sys::socket::{Backlog, listen};

/// What everybody gets: a head and a page of 64 bytes.
pub(super) const ANSWER: [u8; 103] = *b"HTTP/1.1 200 OK\r\nContent-Length: 64\r\n\r\n\
    A page of sixty-four bytes, which is all that a client wants....";

/// How long it sleeps at most, in milliseconds.
const TURN: u16 = 50;

/// Connections that are looked after at once.
const EVENTS: usize = 256;

/// A server in a thread, which ends when this goes.
pub struct Service {
    over: Arc<AtomicBool>,
    most: Arc<AtomicUsize>,
    port: u16,
    thread: Option<JoinHandle<anyhow::Result<()>>>,
}

impl Service {
    /// Serves at these ports, in the network namespace and at the place of the calling thread.
    ///
    /// # Errors
    /// A port is taken.
    pub fn begin(ports: &[u16]) -> anyhow::Result<Service> {
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).context("epoll")?;
        let mut listeners = HashMap::new();
        let mut port = 0;
        for &wanted in ports {
            let what = || format!("tcp port {wanted}");
            let listener = TcpListener::bind((Ipv6Addr::UNSPECIFIED, wanted)).with_context(what)?;
            listener.set_nonblocking(true).with_context(what)?;
            // as many as the host allows may wait
            listen(&listener, Backlog::MAXALLOWABLE).with_context(what)?;
            let number = listener.as_raw_fd();
            epoll.add(&listener, EpollEvent::new(EpollFlags::EPOLLIN, number as u64))?;
            port = listener.local_addr().with_context(what)?.port();
            listeners.insert(number as u64, listener);
        }
        let over = Arc::new(AtomicBool::new(false));
        let most = Arc::new(AtomicUsize::new(0));
        let (end, highest) = (over.clone(), most.clone());
        let thread = thread::spawn(move || serve(&epoll, &listeners, &end, &highest));
        Ok(Service { over, most, port, thread: Some(thread) })
    }

    /// The last of its ports.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The most connections that were open at once since it began.
    pub fn most_at_once(&self) -> usize {
        self.most.load(Ordering::Relaxed)
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        // a panic has said so itself
        if let Some(Ok(Err(error))) = self.thread.take().map(JoinHandle::join) {
            eprintln!("fwlab: server: {error:#}");
        }
    }
}

fn serve(
    epoll: &Epoll,
    listeners: &HashMap<u64, TcpListener>,
    over: &AtomicBool,
    most: &AtomicUsize,
) -> anyhow::Result<()> {
    let mut clients: HashMap<u64, TcpStream> = HashMap::new();
    let mut events = [EpollEvent::empty(); EVENTS];
    while !over.load(Ordering::Relaxed) {
        let count = match epoll.wait(&mut events, TURN) {
            Err(Errno::EINTR) => 0,
            other => other.context("epoll")?,
        };
        for event in &events[..count] {
            let number = event.data();
            if let Some(listener) = listeners.get(&number) {
                accept(listener, epoll, &mut clients)?;
                most.fetch_max(clients.len(), Ordering::Relaxed);
            } else if clients.get_mut(&number).is_some_and(|client| !answer(client)) {
                clients.remove(&number);
            }
        }
    }
    Ok(())
}

/// Takes all who wait.
fn accept(
    listener: &TcpListener,
    epoll: &Epoll,
    clients: &mut HashMap<u64, TcpStream>,
) -> anyhow::Result<()> {
    loop {
        match listener.accept() {
            Ok((client, _)) => {
                client.set_nonblocking(true).context("a client")?;
                let number = client.as_raw_fd() as u64;
                let wanted = EpollFlags::EPOLLIN | EpollFlags::EPOLLRDHUP;
                epoll.add(&client, EpollEvent::new(wanted, number)).context("epoll")?;
                clients.insert(number, client);
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
            // one that has gone again
            Err(error) if error.kind() == ErrorKind::ConnectionAborted => {}
            Err(error) => return Err(error).context("accept"),
        }
    }
}

/// Answers a request, which comes in one piece; whether the client is still there.
fn answer(client: &mut TcpStream) -> bool {
    let mut request = [0; 512];
    match client.read(&mut request) {
        Ok(0) => false,
        Ok(length) => {
            !request[..length].ends_with(b"\r\n\r\n")
                || matches!(client.write(&ANSWER), Ok(all) if all == ANSWER.len())
        }
        Err(error) => error.kind() == ErrorKind::WouldBlock,
    }
}
