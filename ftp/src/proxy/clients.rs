//! The transfer of clients from the guardian, which accepts them, to the worker, which serves them.
//! A message on a stream socket has the session number in four bytes, least significant first, and
//! the client's socket as a descriptor.

use std::io;
use std::net::{TcpListener, TcpStream as StdStream};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream as StdUnixStream;
use std::sync::Mutex;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};
use log::error;
use rustix::net::SendFlags;
use skipstep_worker::descriptors;
use tokio::io::Interest;
use tokio::net::{TcpStream, UnixStream};

use crate::guardian::lock;
use crate::proxy::options::Options;
use crate::proxy::sessions::Sessions;

/// Pause of the guardian after an error of `accept`. Most likely no descriptors are left.
const PAUSE: Duration = Duration::from_millis(100);

/// Accepts clients, starts a session for each, and sends them to the worker until the worker ends.
pub fn accept(
    listener: &TcpListener,
    worker: &StdUnixStream,
    sessions: &Mutex<Sessions>,
    options: &Options,
) {
    loop {
        let accepted = listener.accept();
        let accepted = accepted.and_then(|(client, from)| Ok((client.local_addr()?, client, from)));
        let (original, client, from) = match accepted {
            Ok(accepted) => accepted,
            Err(problem) => {
                error!("accept: {problem}");
                thread::sleep(PAUSE);
                continue;
            }
        };
        let begun = lock(sessions).begin(from, original, options);
        let Some(id) = begun else {
            error!("limit of {} sessions reached, refusing {from}", options.sessions);
            continue;
        };
        if let Err(problem) = send(worker, id, &client) {
            lock(sessions).end(id);
            error!("client {from}: worker: {problem}");
            return;
        }
    }
}

fn send(worker: &StdUnixStream, id: u32, client: &StdStream) -> io::Result<()> {
    descriptors::send(worker, &id.to_le_bytes(), &[client.as_fd()], SendFlags::empty())
}

/// The worker's end of the stream.
pub struct Clients(UnixStream);

impl Clients {
    /// Takes the end that the guardian has passed as standard input.
    ///
    /// # Errors
    /// Fails if standard input is not a stream socket.
    pub fn inherited() -> Result<Clients> {
        Clients::new(StdUnixStream::from(io::stdin().as_fd().try_clone_to_owned()?))
    }

    fn new(end: StdUnixStream) -> Result<Clients> {
        end.set_nonblocking(true).context("guardian")?;
        Ok(Clients(UnixStream::from_std(end).context("guardian")?))
    }

    /// Waits for the next client, and returns its socket with the number of its session. Returns
    /// `None` if the guardian has ended. The socket is `None` if no descriptor was left for it.
    ///
    /// # Errors
    /// Fails if the system refuses a call.
    pub async fn next(&self) -> Result<Option<(u32, Option<TcpStream>)>> {
        let received =
            self.0.async_io(Interest::READABLE, || receive(&self.0)).await.context("guardian")?;
        let Some((id, client)) = received else { return Ok(None) };
        let client = client.map(|client| {
            let client = StdStream::from(client);
            client.set_nonblocking(true)?;
            TcpStream::from_std(client)
        });
        Ok(Some((id, client.transpose().context("client")?)))
    }
}

fn receive(guardian: &UnixStream) -> io::Result<Option<(u32, Option<OwnedFd>)>> {
    let mut number = [0; 4];
    let (length, descriptors) = descriptors::receive(guardian, &mut number)?;
    let client = descriptors.into_iter().next();
    Ok((length > 0).then_some((u32::from_le_bytes(number), client)))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use clap::Parser;

    use super::*;

    #[tokio::test]
    async fn a_client_comes_with_the_number_of_its_session() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (guardian, worker) = StdUnixStream::pair().unwrap();
        let sessions = Arc::new(Mutex::new(Sessions::default()));
        let options = Options::parse_from(["ftp-proxy", "-m", "2"]);
        let known = sessions.clone();
        thread::spawn(move || accept(&listener, &guardian, &known, &options));
        let clients = Clients::new(worker).unwrap();
        let mut held = Vec::new();
        for number in 1..=2 {
            let ours = StdStream::connect(address).unwrap();
            let (id, theirs) = clients.next().await.unwrap().unwrap();
            let theirs = theirs.unwrap();
            assert_eq!(id, number);
            assert_eq!(theirs.peer_addr().unwrap(), ours.local_addr().unwrap());
            assert_eq!(theirs.local_addr().unwrap(), address);
            held.push((ours, theirs));
        }
        let refused = StdStream::connect(address).unwrap();
        refused.set_nonblocking(true).unwrap();
        let refused = TcpStream::from_std(refused).unwrap();
        refused.readable().await.unwrap();
        assert_eq!(refused.try_read(&mut [0]).unwrap(), 0, "the limit is reached");
        lock(&sessions).end(1);
        let _ours = StdStream::connect(address).unwrap();
        assert_eq!(clients.next().await.unwrap().unwrap().0, 3);
    }

    #[tokio::test]
    async fn the_end_of_the_guardian_is_seen() {
        let (guardian, worker) = StdUnixStream::pair().unwrap();
        drop(guardian);
        assert!(Clients::new(worker).unwrap().next().await.unwrap().is_none());
    }
}
