//! Data connections of transparent clients. A client connects to the server's address, and the rule
//! that diverts control connections diverts the data connection, too. A connection that no session
//! expects is closed.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::ops::RangeInclusive;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Result, bail};
use tokio::net::TcpStream;
use tokio::sync::oneshot;

use crate::gateway::ports::from_random_start;

/// Sessions that wait for a connection, by the client's address and the endpoint announced to it.
#[derive(Debug, Default)]
pub struct Expectations(Mutex<HashMap<(IpAddr, SocketAddr), oneshot::Sender<TcpStream>>>);

/// A connection that a session waits for. Dropping the value ends the wait.
#[derive(Debug)]
pub struct Expected {
    all: Arc<Expectations>,
    client: IpAddr,
    announced: SocketAddr,
    coming: oneshot::Receiver<TcpStream>,
}

impl Expectations {
    /// Registers a connection from `client` to `server`, at a free port of `ports`.
    ///
    /// # Errors
    /// Fails if `client` is expected at all ports, or if no randomness is available.
    pub fn expect(
        self: &Arc<Self>,
        client: IpAddr,
        server: IpAddr,
        ports: &RangeInclusive<u16>,
    ) -> Result<Expected> {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for port in from_random_start(ports)? {
            let announced = SocketAddr::new(server, port);
            if let std::collections::hash_map::Entry::Vacant(place) =
                waiting.entry((client, announced))
            {
                let (sender, coming) = oneshot::channel();
                place.insert(sender);
                return Ok(Expected { all: self.clone(), client, announced, coming });
            }
        }
        bail!("no port is left for data connections of {client} to {server}")
    }

    /// Delivers a connection to the session that waits for it. Returns false if no session waits.
    pub fn deliver(&self, stream: TcpStream, client: IpAddr, announced: SocketAddr) -> bool {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.remove(&(client, announced)).is_some_and(|sender| sender.send(stream).is_ok())
    }
}

impl Expected {
    /// Returns the endpoint to announce to the client.
    pub fn announced(&self) -> SocketAddr {
        self.announced
    }

    /// Waits for the connection.
    ///
    /// # Errors
    /// Fails if the sender is dropped, so that no connection can come.
    pub async fn connection(mut self) -> Result<TcpStream> {
        Ok((&mut self.coming).await?)
    }
}

impl Drop for Expected {
    fn drop(&mut self) {
        let mut waiting = self.all.0.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.remove(&(self.client, self.announced));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::net::TcpListener;

    #[tokio::test]
    async fn a_connection_is_delivered_to_its_session_only() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let stream = async || TcpStream::connect(address).await.unwrap();
        let all = Arc::new(Expectations::default());
        let (client, server) = ("10.0.0.1".parse().unwrap(), "192.0.2.1".parse().unwrap());
        let expected = all.expect(client, server, &(2000..=2000)).unwrap();
        assert!(all.expect(client, server, &(2000..=2000)).is_err());
        let announced = expected.announced();
        assert!(!all.deliver(stream().await, "10.0.0.2".parse().unwrap(), announced));
        assert!(!all.deliver(stream().await, client, "192.0.2.1:2001".parse().unwrap()));
        assert!(all.deliver(stream().await, client, announced));
        assert!(!all.deliver(stream().await, client, announced), "only once");
        assert!(expected.connection().await.is_ok());
        assert!(all.0.lock().unwrap().is_empty());
    }

    #[test]
    fn a_dropped_expectation_is_removed() {
        let all = Arc::new(Expectations::default());
        let client = "10.0.0.1".parse().unwrap();
        drop(all.expect(client, "192.0.2.1".parse().unwrap(), &(2000..=2000)));
        assert!(all.0.lock().unwrap().is_empty());
    }
}
