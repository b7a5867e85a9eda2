//! The control connection after the handshake. Both directions carry encrypted messages in order. A
//! wait for a message ends also with a signal, or with the end of the connection.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use fwlab_net::interrupt::Interrupt;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::envelope::{Envelopes, Malformed};
use super::handshake::{
    Greeting, HELLO, Hello, OPENING, PROOF, Refusal, VERDICT, read_verdict, verdict,
};
use super::key::{self, Key};

/// The time limit of a whole handshake.
const HANDSHAKE: Duration = Duration::from_secs(5);

/// The interval at which a waiting thread checks for signals.
const TURN: Duration = Duration::from_millis(100);

/// The time limit for the peer to take a message.
const TAKING: Duration = Duration::from_secs(10);

/// The reason for which the connection cannot be used any further.
#[derive(Debug, thiserror::Error)]
pub enum Broken {
    /// The peer has closed the connection.
    #[error("the connection was closed")]
    Closed,
    /// The peer has not sent a message within this time, but may still be there.
    #[error("no message for {} s", .0.as_secs())]
    Silent(Duration),
    /// The handshake failed.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The peer sent bytes that are no valid message.
    #[error(transparent)]
    Malformed(#[from] Malformed),
    /// A system call failed.
    #[error("the connection broke: {0}")]
    Io(io::Error),
    /// A signal came to this process.
    #[error("interrupted")]
    Interrupted,
}

impl From<io::Error> for Broken {
    fn from(error: io::Error) -> Broken {
        match error.kind() {
            ErrorKind::ConnectionReset | ErrorKind::BrokenPipe | ErrorKind::UnexpectedEof => {
                Broken::Closed
            }
            _ => Broken::Io(error),
        }
    }
}

/// An encrypted control connection.
pub struct Channel {
    stream: TcpStream,
    peer: SocketAddr,
    envelopes: Envelopes,
}

impl Channel {
    /// Makes the handshake with an agent, over a connection to it.
    ///
    /// # Errors
    /// Fails if the peer is no agent, has another key or version, or does not answer in time.
    pub fn to_agent(
        mut stream: TcpStream,
        key: &Key,
        interrupt: &Interrupt,
    ) -> anyhow::Result<Channel> {
        let number = key::random()?;
        let until = prepare(&stream)?;
        let own = Hello::new(number);
        let agent = match Hello::read(&read::<HELLO>(&mut stream, until, interrupt)?) {
            Ok(agent) => agent,
            Err(refusal) => {
                // an agent of another version gets this version, so that it can report the
                // difference
                let _ = stream.write_all(&[&own.bytes()[..], &[0; PROOF]].concat());
                return Err(refusal.into());
            }
        };
        let mut greeting = Greeting::for_controller(key, &agent, &own);
        let opening = [&own.bytes()[..], &greeting.proof()].concat();
        stream.write_all(&opening).map_err(Broken::from)?;
        let verdict = read::<VERDICT>(&mut stream, until, interrupt)?;
        read_verdict(&verdict, &mut greeting).map_err(Broken::from)?;
        Ok(Channel::open(stream, greeting)?)
    }

    /// Makes the handshake with a controller that has connected.
    ///
    /// # Errors
    /// Fails as [`Channel::to_agent`] does. The controller gets the reason in the verdict.
    pub fn to_controller(
        mut stream: TcpStream,
        key: &Key,
        interrupt: &Interrupt,
    ) -> anyhow::Result<Channel> {
        let until = prepare(&stream)?;
        let own = Hello::new(key::random()?);
        stream.write_all(own.bytes()).map_err(Broken::from)?;
        let opening = read::<OPENING>(&mut stream, until, interrupt)?;
        let (hello, proof) = opening.split_at(HELLO);
        let hello = hello.first_chunk::<HELLO>().ok_or(Refusal::Stranger);
        let mut greeting = hello.and_then(Hello::read).and_then(|controller| {
            let mut greeting = Greeting::for_agent(key, &own, &controller);
            greeting.check(proof).map(|()| greeting)
        });
        stream.write_all(&verdict(greeting.as_mut().map_err(|e| &*e))).map_err(Broken::from)?;
        Ok(Channel::open(stream, greeting?)?)
    }

    fn open(stream: TcpStream, greeting: Greeting) -> Result<Channel, Broken> {
        stream.set_write_timeout(Some(TAKING))?;
        let peer = plain(stream.peer_addr()?);
        Ok(Channel { peer, stream, envelopes: Envelopes::new(greeting.encryption()) })
    }

    /// Returns the address of the peer.
    pub fn peer(&self) -> SocketAddr {
        self.peer
    }

    /// Sends a message.
    ///
    /// # Errors
    /// Fails if the peer is gone, if it does not take the message within 10 seconds, or if the
    /// message is longer than 4 MiB.
    pub fn send(&mut self, message: &impl Serialize) -> Result<(), Broken> {
        let message = serde_json::to_vec(message).map_err(io::Error::from)?;
        Ok(self.stream.write_all(&self.envelopes.seal(&message)?)?)
    }

    /// Waits up to `patience` for the next message.
    ///
    /// # Errors
    /// Fails if no message comes in time, if it is malformed, if the peer is gone, or if a signal
    /// came.
    pub fn receive<T: DeserializeOwned>(
        &mut self,
        patience: Duration,
        interrupt: &Interrupt,
    ) -> Result<T, Broken> {
        let until = Instant::now() + patience;
        let mut bytes = [0; 16 * 1024];
        loop {
            if let Some(message) = self.envelopes.open()? {
                return serde_json::from_slice(&message).map_err(|_| Malformed::Meaningless.into());
            }
            match some(&mut self.stream, &mut bytes, until, interrupt) {
                Ok(count) => self.envelopes.take(&bytes[..count]),
                Err(Broken::Silent(_)) => return Err(Broken::Silent(patience)),
                Err(error) => return Err(error),
            }
        }
    }

    /// Returns the number of received bytes that are still unread, up to 1,024. They stay unread.
    ///
    /// # Errors
    /// Fails if the peer is gone.
    pub fn unread_bytes(&self) -> Result<usize, Broken> {
        let mut bytes = [0; 1024];
        self.stream.set_nonblocking(true)?;
        let seen = self.stream.peek(&mut bytes);
        self.stream.set_nonblocking(false)?;
        match seen {
            Ok(0) => Err(Broken::Closed),
            Ok(count) => Ok(count),
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(0),
            Err(error) => Err(error.into()),
        }
    }
}

/// Returns an address in its usual form: a socket for both families reports IPv4 addresses as IPv6.
pub(super) fn plain(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

/// Sets the options of a connection for a handshake, and returns the deadline of the handshake.
fn prepare(stream: &TcpStream) -> Result<Instant, Broken> {
    stream.set_nodelay(true)?;
    stream.set_write_timeout(Some(HANDSHAKE))?;
    stream.set_read_timeout(Some(TURN))?;
    Ok(Instant::now() + HANDSHAKE)
}

/// Reads `LENGTH` bytes.
fn read<const LENGTH: usize>(
    stream: &mut TcpStream,
    until: Instant,
    interrupt: &Interrupt,
) -> Result<[u8; LENGTH], Broken> {
    let mut bytes = [0; LENGTH];
    let mut filled = 0;
    while filled < LENGTH {
        filled += some(stream, &mut bytes[filled..], until, interrupt)?;
    }
    Ok(bytes)
}

/// Waits for at least one byte, and returns the number of bytes read.
fn some(
    stream: &mut TcpStream,
    bytes: &mut [u8],
    until: Instant,
    interrupt: &Interrupt,
) -> Result<usize, Broken> {
    loop {
        if interrupt.came() {
            return Err(Broken::Interrupted);
        }
        // checked in each round, because a peer may send single bytes for ever
        if Instant::now() >= until {
            return Err(Broken::Silent(HANDSHAKE));
        }
        match stream.read(bytes) {
            Ok(0) => return Err(Broken::Closed),
            Ok(count) => return Ok(count),
            Err(error)
                if [ErrorKind::WouldBlock, ErrorKind::Interrupted].contains(&error.kind()) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;
    use std::thread;

    const MOMENT: Duration = Duration::from_secs(5);

    /// Returns the results of both sides of a handshake between an agent and a controller.
    fn greet(agent: Key, controller: Key) -> (anyhow::Result<Channel>, anyhow::Result<Channel>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let other = thread::spawn(move || {
            let stream = TcpStream::connect(address).unwrap();
            Channel::to_agent(stream, &controller, &Interrupt::never())
        });
        let (stream, _) = listener.accept().unwrap();
        let own = Channel::to_controller(stream, &agent, &Interrupt::never());
        (own, other.join().unwrap())
    }

    fn pair() -> (Channel, Channel) {
        let (agent, controller) = greet(Key::new([1; 32]), Key::new([1; 32]));
        (agent.unwrap(), controller.unwrap())
    }

    #[test]
    fn both_sides_speak_and_hear() {
        let (mut agent, mut controller) = pair();
        let never = Interrupt::never();
        assert_eq!(agent.unread_bytes().unwrap(), 0);
        let long = "x".repeat(1 << 20);
        thread::scope(|scope| {
            scope.spawn(|| controller.send(&long).unwrap());
            assert_eq!(agent.receive::<String>(MOMENT, &never).unwrap(), long);
        });
        agent.send(&[1, 2]).unwrap();
        assert_eq!(controller.receive::<[u8; 2]>(MOMENT, &never).unwrap(), [1, 2]);
        agent.send(&"no number").unwrap();
        assert!(controller.receive::<u32>(MOMENT, &never).is_err());
    }

    #[test]
    fn both_sides_report_another_key() {
        let (agent, controller) = greet(Key::new([1; 32]), Key::new([2; 32]));
        for refused in [agent.err(), controller.err()] {
            assert_eq!(
                refused.unwrap().to_string(),
                "the peer has another key: copy the key file to both ends"
            );
        }
    }

    #[test]
    fn both_sides_report_another_version() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let controller = thread::spawn(move || {
            let stream = TcpStream::connect(address).unwrap();
            Channel::to_agent(stream, &Key::new([1; 32]), &Interrupt::never())
        });
        let (mut agent, _) = listener.accept().unwrap();
        let mut hello = *Hello::new([1; 32]).bytes();
        hello[8..13].copy_from_slice(b"9.9.9");
        agent.write_all(&hello).unwrap();
        let mut opening = [0; OPENING];
        agent.read_exact(&mut opening).unwrap();
        assert!(Hello::read(opening.first_chunk().unwrap()).is_ok(), "its version is in it");
        assert_eq!(opening[HELLO..], [0; PROOF], "who has another version gets no proof");
        let refused = controller.join().unwrap().err().unwrap().to_string();
        assert!(refused.starts_with("the peer is fwlab 9.9.9, this is"), "{refused}");
    }

    #[test]
    fn a_wait_ends_with_its_time_or_the_connection() {
        let (agent, mut controller) = pair();
        let never = Interrupt::never();
        let short = Duration::from_millis(1);
        assert!(matches!(controller.receive::<u32>(short, &never), Err(Broken::Silent(_))));
        drop(agent);
        assert!(matches!(controller.receive::<u32>(MOMENT, &never), Err(Broken::Closed)));
        assert!(matches!(controller.unread_bytes(), Err(Broken::Closed)));
    }

    #[test]
    fn a_stranger_hears_a_hello_and_no_more() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut stranger = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (stream, _) = listener.accept().unwrap();
        stranger.write_all(&[b'x'; OPENING]).unwrap();
        let agent = Channel::to_controller(stream, &Key::new([1; 32]), &Interrupt::never());
        assert_eq!(agent.err().unwrap().to_string(), Refusal::Stranger.to_string());
        let mut heard = Vec::new();
        stranger.read_to_end(&mut heard).unwrap();
        assert_eq!(heard.len(), HELLO + VERDICT);
        assert_eq!(heard[HELLO], 1);
        assert!(heard[HELLO + 1..].iter().all(|&byte| byte == 0));
    }
}
