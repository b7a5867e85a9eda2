//! The ports of `divert-packet`. Each has a socket, through which one program at a time receives
//! packets and writes them back. Packets that a program does not take in time are dropped and
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

/// Bytes of the longest valid message.
const LONGEST: usize = 65_535 + size_of::<Envelope>();

/// Bytes that may wait for a program.
pub const WAITING: usize = 4 << 20;

/// Most packets that are taken from a program before the other programs are served.
const TURN: usize = 64;

/// A port and its connected program, if any.
struct Port {
    listener: UnixListener,
    program: Option<UnixStream>,
    /// True if the program has connected since the last [`Ports::new_programs`].
    is_new: bool,
}

/// The open ports of an instance.
pub struct Ports {
    ports: BTreeMap<u16, Port>,
    counters: DivertCounters,
    buffer: Vec<u8>,
    nonce: u64,
}

impl Ports {
    /// Makes an empty set of ports. Frames of the data plane carry `nonce`.
    pub fn new(nonce: u64) -> Self {
        // one byte more than a message may have, to recognize longer ones
        let buffer = vec![0; LONGEST + 1];
        Ports { ports: BTreeMap::new(), counters: DivertCounters::default(), buffer, nonce }
    }

    /// Opens a port, to which programs connect through `listener`.
    pub fn open(&mut self, number: u16, listener: UnixListener) {
        self.ports.insert(number, Port { listener, program: None, is_new: false });
    }

    /// Closes a port unless a program is connected. Returns true if the port is closed now.
    pub fn close(&mut self, number: u16) -> bool {
        if self.ports.get(&number).is_some_and(|port| port.program.is_some()) {
            return false;
        }
        self.ports.remove(&number).is_some()
    }

    /// Returns the sockets of programs that have connected since the last call.
    pub fn new_programs(&mut self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.ports.values_mut().filter_map(|port| {
            let is_new = std::mem::take(&mut port.is_new);
            port.program.as_ref().filter(|_| is_new).map(AsFd::as_fd)
        })
    }

    /// Returns the sockets that become readable when a program connects or writes.
    pub fn sources(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let listeners = self.ports.values().map(|port| port.listener.as_fd());
        let programs = self.ports.values().filter_map(|port| Some(port.program.as_ref()?.as_fd()));
        listeners.chain(programs)
    }

    /// Returns the counters since the start.
    pub fn counters(&self) -> DivertCounters {
        self.counters
    }

    /// Sends the packet of a frame to the program of its port. A frame without the nonce is not the
    /// data plane's, so it is only counted.
    // Differs from OpenBSD: linux.md, "A program instead of divert(4)"
    pub fn deliver(&mut self, frame: &[u8]) {
        let Some((mut envelope, packet)) = envelope::from_frame(frame, self.nonce) else {
            self.counters.foreign += 1;
            return;
        };
        let Some(port) = self.ports.get_mut(&envelope.port) else {
            self.counters.no_program += 1;
            return;
        };
        // a program may have connected before it was accepted
        if port.program.is_none() {
            port.accept_programs();
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

    /// Accepts programs, and passes the packets that they have written to `send`, as frames.
    pub fn serve(&mut self, mut send: impl FnMut(&[u8])) {
        let Ports { ports, counters, buffer, nonce } = self;
        for port in ports.values_mut() {
            port.accept_programs();
            for _ in 0..TURN {
                let Some(program) = &mut port.program else { break };
                match program.read(buffer) {
                    Ok(0) => port.program = None,
                    Ok(length) => match envelope::to_frame(&buffer[..length], *nonce) {
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
    /// Accepts connections. The first program gets the port; others are disconnected until it
    /// leaves.
    fn accept_programs(&mut self) {
        while let Ok((program, _)) = self.listener.accept() {
            let ready = program.set_nonblocking(true).is_ok()
                && setsockopt(&program, sockopt::SndBuf, &WAITING).is_ok();
            // the previous program may have left without being noticed yet
            if ready && self.program.as_ref().is_none_or(has_gone) {
                self.program = Some(program);
                self.is_new = true;
            }
        }
    }
}

/// True if the other end of the socket is closed.
fn has_gone(program: &UnixStream) -> bool {
    let mut ends = [PollFd::new(program.as_fd(), PollFlags::empty())];
    let asked = poll(&mut ends, PollTimeout::ZERO);
    asked.is_ok() && ends[0].revents().is_some_and(|events| events.contains(PollFlags::POLLHUP))
}
