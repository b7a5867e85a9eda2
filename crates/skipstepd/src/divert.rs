//! The ports of `divert-packet`: a socket for each, where one program at a time gets packets and
//! writes them back. Nobody waits for a program: what it does not take in time is dropped and
//! counted.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::net::if_::if_indextoname;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{
    AddressFamily, Backlog, SockFlag, SockType, UnixAddr, bind, listen, setsockopt, socket, sockopt,
};
use skipstep_kernel::{DivertCounters, private};
use zerocopy::IntoBytes;

use crate::envelope::{self, Envelope};

/// The longest message that is one.
const LONGEST: usize = 65_535 + size_of::<Envelope>();

/// Bytes that may wait for a program.
const WAITING: usize = 4 << 20;

/// Packets that are taken from a program before the others have their turn.
const TURN: usize = 64;

/// A port and its program, if one is there.
struct Port {
    listener: UnixListener,
    program: Option<UnixStream>,
}

/// The ports of an instance.
pub struct Ports {
    directory: PathBuf,
    ports: BTreeMap<u16, Port>,
    counters: DivertCounters,
    buffer: Vec<u8>,
}

impl Ports {
    /// None yet; their sockets will be in `directory`.
    pub fn new(directory: &Path) -> Self {
        Ports {
            directory: directory.to_owned(),
            ports: BTreeMap::new(),
            counters: DivertCounters::default(),
            // one more, to see what is too long
            buffer: vec![0; LONGEST + 1],
        }
    }

    /// Opens the ports that rules name. Others stay as long as a program is there, since states may
    /// still divert to it.
    ///
    /// # Errors
    /// Those of the system; other ports are open nevertheless.
    pub fn open(&mut self, wanted: &BTreeSet<u16>) -> io::Result<()> {
        let directory = &self.directory;
        self.ports.retain(|number, port| {
            let stays = port.program.is_some() || wanted.contains(number);
            if !stays {
                // without it nobody can connect; who removed it before us has done the same
                let _ = fs::remove_file(directory.join(number.to_string()));
            }
            stays
        });
        let mut result = Ok(());
        for number in wanted
            .iter()
            .filter(|number| !self.ports.contains_key(number))
            .copied()
            .collect::<Vec<_>>()
        {
            match listener(&self.directory, number) {
                Ok(listener) => {
                    self.ports.insert(number, Port { listener, program: None });
                }
                Err(error) => result = Err(error),
            }
        }
        result
    }

    /// What was done so far.
    pub fn counters(&self) -> DivertCounters {
        self.counters
    }

    /// Waits at most `timeout` for a program, or for `device`.
    ///
    /// # Errors
    /// Those of poll(2).
    pub fn wait(&self, device: &impl AsFd, timeout: Duration) -> io::Result<()> {
        let readable = |fd| PollFd::new(fd, PollFlags::POLLIN);
        let listeners = self.ports.values().map(|port| port.listener.as_fd());
        let programs = self.ports.values().filter_map(|port| Some(port.program.as_ref()?.as_fd()));
        let mut all: Vec<PollFd> =
            [device.as_fd()].into_iter().chain(listeners).chain(programs).map(readable).collect();
        let timeout = PollTimeout::try_from(timeout).unwrap_or(PollTimeout::MAX);
        match poll(&mut all, timeout) {
            Ok(_) | Err(nix::errno::Errno::EINTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Gives the packet of a frame to its program.
    pub fn deliver(&mut self, frame: &[u8]) {
        let Some((mut envelope, packet)) = envelope::open(frame) else {
            return;
        };
        let Some(port) = self.ports.get_mut(&envelope.port) else {
            self.counters.no_program += 1;
            return;
        };
        // one that has connected is served, though nobody has let it in yet
        if port.program.is_none() {
            port.let_in();
        }
        let Some(program) = &mut port.program else {
            self.counters.no_program += 1;
            return;
        };
        if let Ok(name) = if_indextoname(envelope.ifindex) {
            let name = name.to_bytes();
            envelope.interface[..name.len()].copy_from_slice(name);
        }
        match program.write(&[envelope.as_bytes(), packet].concat()) {
            Ok(_) => self.counters.delivered += 1,
            Err(error) if error.kind() == ErrorKind::WouldBlock => self.counters.full += 1,
            Err(_) => {
                self.counters.no_program += 1;
                port.program = None;
            }
        }
    }

    /// Lets programs in, and gives the frames of what they wrote to `send`.
    pub fn serve(&mut self, mut send: impl FnMut(&[u8])) {
        let Ports { ports, counters, buffer, .. } = self;
        for port in ports.values_mut() {
            port.let_in();
            for _ in 0..TURN {
                let Some(program) = &mut port.program else { break };
                match program.read(buffer) {
                    Ok(0) => port.program = None,
                    Ok(length) => match envelope::close(&buffer[..length]) {
                        Some(frame) => {
                            counters.returned += 1;
                            send(&frame);
                        }
                        None => counters.malformed += 1,
                    },
                    Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                    Err(_) => port.program = None,
                }
            }
        }
    }
}

impl Port {
    /// The first program that comes has the port, and others are sent away until it goes.
    fn let_in(&mut self) {
        while let Ok((program, _)) = self.listener.accept() {
            let ready = program.set_nonblocking(true).is_ok()
                && setsockopt(&program, sockopt::SndBuf, &WAITING).is_ok();
            // one that has gone may not have been heard of yet
            if ready && self.program.as_ref().is_none_or(has_gone) {
                // beyond the limit of others; without the right to it the limit is kept
                let _ = setsockopt(&program, sockopt::SndBufForce, &WAITING);
                self.program = Some(program);
            }
        }
    }
}

/// Whether nobody holds the other end.
fn has_gone(program: &UnixStream) -> bool {
    let mut ends = [PollFd::new(program.as_fd(), PollFlags::empty())];
    let asked = poll(&mut ends, PollTimeout::ZERO);
    asked.is_ok() && ends[0].revents().is_some_and(|events| events.contains(PollFlags::POLLHUP))
}

impl Drop for Ports {
    fn drop(&mut self) {
        for number in self.ports.keys() {
            let _ = fs::remove_file(self.directory.join(number.to_string()));
        }
    }
}

/// A socket where messages keep their bounds.
fn listener(directory: &Path, port: u16) -> io::Result<UnixListener> {
    private::folder(directory).map_err(io::Error::other)?;
    let path = directory.join(port.to_string());
    match fs::remove_file(&path) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    let socket = socket(AddressFamily::Unix, SockType::SeqPacket, flags, None)?;
    bind(socket.as_raw_fd(), &UnixAddr::new(&path)?)?;
    private::narrow_socket(&path)?;
    listen(&socket, Backlog::new(1)?)?;
    Ok(UnixListener::from(socket))
}
