//! The server: accepts every connection and serves pages of the size that the request names.

use std::collections::HashMap;
use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use anyhow::Context;
use nix::errno::Errno;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags};
use nix::sys::socket::{Backlog, listen};

/// The text that pages repeat.
const TEXT: &[u8; 64] = b"A page of sixty-four bytes, which is all that a client wants....";

/// Bytes of the largest page.
pub const MOST_BYTES: u32 = 16 << 20;

/// Longest sleep in milliseconds.
const TURN: u16 = 50;

/// Largest number of epoll events handled at once.
const EVENTS: usize = 256;

/// A server in a thread, which ends when this value is dropped.
pub struct Service {
    over: Arc<AtomicBool>,
    most: Arc<AtomicUsize>,
    came: HashMap<u16, Arc<AtomicU64>>,
    last: Arc<Mutex<Option<IpAddr>>>,
    port: u16,
    thread: Option<JoinHandle<anyhow::Result<()>>>,
}

impl Service {
    /// Serves at these ports of an address, in the network namespace and on the CPU of the calling
    /// thread. Port 0 means a free port.
    ///
    /// # Errors
    /// Fails if a port is taken, or if the host does not have the address.
    pub fn begin(address: IpAddr, ports: &[u16]) -> anyhow::Result<Service> {
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).context("epoll")?;
        let (mut listeners, mut came) = (HashMap::new(), HashMap::new());
        let mut port = 0;
        let last = Arc::new(Mutex::new(None));
        for &wanted in ports {
            let what = || format!("tcp port {wanted}");
            let listener = TcpListener::bind((address, wanted)).with_context(what)?;
            listener.set_nonblocking(true).with_context(what)?;
            // the longest queue of new connections that the host allows
            listen(&listener, Backlog::MAXALLOWABLE).with_context(what)?;
            let number = listener.as_raw_fd();
            epoll.add(&listener, EpollEvent::new(EpollFlags::EPOLLIN, number as u64))?;
            port = listener.local_addr().with_context(what)?.port();
            let count = Arc::new(AtomicU64::new(0));
            came.insert(port, count.clone());
            let last = last.clone();
            listeners.insert(number as u64, Door { listener, count, last });
        }
        let over = Arc::new(AtomicBool::new(false));
        let most = Arc::new(AtomicUsize::new(0));
        let (end, highest) = (over.clone(), most.clone());
        let thread = thread::spawn(move || serve(&epoll, &listeners, &end, &highest));
        Ok(Service { over, most, came, last, port, thread: Some(thread) })
    }

    /// Returns the last of its ports.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Returns the number of connections accepted at a port.
    pub fn came(&self, port: u16) -> u64 {
        self.came.get(&port).map_or(0, |count| count.load(Ordering::Relaxed))
    }

    /// Returns the source address of the last connection, or None if there was none.
    pub fn last_visitor(&self) -> Option<IpAddr> {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Checks that the server's thread still runs.
    ///
    /// # Errors
    /// Returns the error that ended the thread.
    pub fn ensure_running(&mut self) -> anyhow::Result<()> {
        match self.thread.take_if(|thread| thread.is_finished()).map(JoinHandle::join) {
            Some(Ok(ended)) => ended,
            Some(Err(panic)) => std::panic::resume_unwind(panic),
            None => Ok(()),
        }
    }

    /// Returns the largest number of simultaneous connections so far.
    pub fn most_at_once(&self) -> usize {
        self.most.load(Ordering::Relaxed)
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        // a panic has printed its own message
        if let Some(Ok(Err(error))) = self.thread.take().map(JoinHandle::join) {
            eprintln!("fwlab: server: {error:#}");
        }
    }
}

/// A listening socket, with the number of its connections and the source of the last one.
struct Door {
    listener: TcpListener,
    count: Arc<AtomicU64>,
    last: Arc<Mutex<Option<IpAddr>>>,
}

fn serve(
    epoll: &Epoll,
    doors: &HashMap<u64, Door>,
    over: &AtomicBool,
    most: &AtomicUsize,
) -> anyhow::Result<()> {
    let mut clients: HashMap<u64, Visitor> = HashMap::new();
    let mut pages = HashMap::new();
    let mut events = [EpollEvent::empty(); EVENTS];
    while !over.load(Ordering::Relaxed) {
        let count = match epoll.wait(&mut events, TURN) {
            Err(Errno::EINTR) => 0,
            other => other.context("epoll")?,
        };
        for event in &events[..count] {
            let number = event.data();
            if let Some(door) = doors.get(&number) {
                accept(door, epoll, &mut clients)?;
                most.fetch_max(clients.len(), Ordering::Relaxed);
            } else if clients
                .get_mut(&number)
                .is_some_and(|client| !client.go_on(epoll, &mut pages))
            {
                clients.remove(&number);
            }
        }
    }
    Ok(())
}

/// Accepts all waiting connections.
fn accept(door: &Door, epoll: &Epoll, clients: &mut HashMap<u64, Visitor>) -> anyhow::Result<()> {
    loop {
        match door.listener.accept() {
            Ok((client, from)) => {
                let mut last = door.last.lock().unwrap_or_else(PoisonError::into_inner);
                *last = Some(from.ip().to_canonical());
                door.count.fetch_add(1, Ordering::Relaxed);
                client.set_nonblocking(true).context("a client")?;
                watch(epoll, &client, false, false)?;
                let visitor = Visitor { answer: Rc::default(), sent: 0, stream: client };
                clients.insert(visitor.stream.as_raw_fd() as u64, visitor);
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
            // the client has closed before the accept
            Err(error) if error.kind() == ErrorKind::ConnectionAborted => {}
            Err(error) => return Err(error).context("accept"),
        }
    }
}

/// Returns the answer to a request for a page of `bytes` bytes.
pub(super) fn answer(bytes: u32) -> Vec<u8> {
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {bytes}\r\n\r\n");
    head.into_bytes().into_iter().chain(TEXT.iter().copied().cycle().take(bytes as usize)).collect()
}

/// Returns the page size in a request of the form `GET /BYTES HTTP/1.1`.
fn wanted(request: &[u8]) -> Option<u32> {
    let line = std::str::from_utf8(request).ok()?.strip_prefix("GET /")?;
    line.split(' ').next()?.parse().ok().filter(|&bytes| bytes <= MOST_BYTES)
}

/// A client, with its answer and the number of bytes of it sent so far.
struct Visitor {
    stream: TcpStream,
    answer: Rc<Vec<u8>>,
    sent: usize,
}

impl Visitor {
    /// Reads a request, which comes in one piece, and sends as much of the answer as fits. Returns
    /// false if the client is to be removed.
    fn go_on(&mut self, epoll: &Epoll, pages: &mut HashMap<u32, Rc<Vec<u8>>>) -> bool {
        let mut request = [0; 512];
        match self.stream.read(&mut request) {
            Ok(0) => return false,
            Ok(length) => {
                let Some(bytes) = wanted(&request[..length]) else { return false };
                self.answer = pages.entry(bytes).or_insert_with(|| Rc::new(answer(bytes))).clone();
                self.sent = 0;
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(_) => return false,
        }
        let waited = self.sent > 0;
        while self.sent < self.answer.len() {
            match self.stream.write(&self.answer[self.sent..]) {
                Ok(length) => self.sent += length,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(_) => return false,
            }
        }
        let done = self.sent == self.answer.len();
        // wait for room only in the middle of a page
        (done && !waited) || watch(epoll, &self.stream, !done, true).is_ok()
    }
}

/// Watches a client for data, and for room in its send buffer if `room` is true.
fn watch(epoll: &Epoll, client: &TcpStream, room: bool, known: bool) -> anyhow::Result<()> {
    let mut wanted = EpollFlags::EPOLLIN | EpollFlags::EPOLLRDHUP;
    wanted.set(EpollFlags::EPOLLOUT, room);
    let mut event = EpollEvent::new(wanted, client.as_raw_fd() as u64);
    let done = if known { epoll.modify(client, &mut event) } else { epoll.add(client, event) };
    done.context("a client")
}
