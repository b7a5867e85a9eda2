//! The ports of `divert-packet`: a socket for each, where one program at a time gets packets and
//! writes them back. Nobody waits for a program: what it does not take in time is dropped and
//! counted.

use std::collections::BTreeMap;
use std::io::{ErrorKind, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::{UnixListener, UnixStream};

use nix::net::if_::if_indextoname;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{setsockopt, sockopt};
use skipstep_kernel::DivertCounters;
use zerocopy::IntoBytes;

use crate::envelope::{self, Envelope};

/// The longest message that is one.
const LONGEST: usize = 65_535 + size_of::<Envelope>();

/// Bytes that may wait for a program.
pub const WAITING: usize = 4 << 20;

/// Packets that are taken from a program before the others have their turn.
const TURN: usize = 64;

/// A port and its program, if one is there.
struct Port {
    listener: UnixListener,
    program: Option<UnixStream>,
    /// The program was let in since somebody asked.
    is_new: bool,
}

/// The ports of an instance.
pub struct Ports {
    ports: BTreeMap<u16, Port>,
    counters: DivertCounters,
    buffer: Vec<u8>,
    nonce: u64,
}

impl Ports {
    /// None yet. Frames of the data plane have `nonce`.
    pub fn new(nonce: u64) -> Self {
        // one more, to see what is too long
        let buffer = vec![0; LONGEST + 1];
        Ports { ports: BTreeMap::new(), counters: DivertCounters::default(), buffer, nonce }
    }

    /// Opens a port: programs connect to `listener`.
    pub fn open(&mut self, number: u16, listener: UnixListener) {
        self.ports.insert(number, Port { listener, program: None, is_new: false });
    }

    /// Closes a port unless a program is there. Returns true if the port is closed now.
    pub fn close(&mut self, number: u16) -> bool {
        if self.ports.get(&number).is_some_and(|port| port.program.is_some()) {
            return false;
        }
        self.ports.remove(&number).is_some()
    }

    /// The sockets of programs that were let in since the last call.
    pub fn new_programs(&mut self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.ports.values_mut().filter_map(|port| {
            let is_new = std::mem::take(&mut port.is_new);
            port.program.as_ref().filter(|_| is_new).map(AsFd::as_fd)
        })
    }

    /// The sockets that can be read when a program comes, or writes.
    pub fn sources(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let listeners = self.ports.values().map(|port| port.listener.as_fd());
        let programs = self.ports.values().filter_map(|port| Some(port.program.as_ref()?.as_fd()));
        listeners.chain(programs)
    }

    /// What was done so far.
    pub fn counters(&self) -> DivertCounters {
        self.counters
    }

    /// Gives the packet of a frame to its program. A frame that the data plane has not sent is
    /// counted.
    pub fn deliver(&mut self, frame: &[u8]) {
        let Some((mut envelope, packet)) = envelope::open(frame, self.nonce) else {
            self.counters.foreign += 1;
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
        let Ports { ports, counters, buffer, nonce } = self;
        for port in ports.values_mut() {
            port.let_in();
            for _ in 0..TURN {
                let Some(program) = &mut port.program else { break };
                match program.read(buffer) {
                    Ok(0) => port.program = None,
                    Ok(length) => match envelope::close(&buffer[..length], *nonce) {
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
                self.program = Some(program);
                self.is_new = true;
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
