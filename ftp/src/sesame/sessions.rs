//! The guardian's own list of control connections. The guardian reads the log before the worker
//! does, and checks every request of the worker against the connections in the log.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::time::Instant;

use anyhow::{Result, bail, ensure};

use crate::endpoint::LOWEST_PORT;
use crate::guardian::Order;
use crate::sesame::gate::Request;
use crate::sesame::handshake::Handshake;
use crate::sesame::options::Options;
use crate::sesame::rules;
use crate::sesame::segment::Segment;
use crate::sesame::watch::Watch;

/// Client and server of a control connection.
type Ends = (SocketAddr, SocketAddr);

/// The control connections in the log, and the anchors that the worker uses for them.
pub struct Sessions {
    watch: Watch<Handshake>,
    most: usize,
    ends: HashMap<u32, Ends>,
    ids: HashMap<Ends, u32>,
}

impl Sessions {
    /// Creates the list, with room for twice as many connections as the worker watches, because the
    /// worker forgets some sooner.
    pub fn new(options: &Options, now: Instant) -> Sessions {
        let most = 2 * options.connections as usize;
        let (ends, ids) = (HashMap::new(), HashMap::new());
        Sessions { watch: Watch::new(most, now), most, ends, ids }
    }

    /// Records a segment of the log.
    pub fn segment(&mut self, segment: &Segment, now: Instant) {
        self.watch.segment(segment, now, |_, _| {});
    }

    /// Removes connections that were silent for too long.
    pub fn expire(&mut self, now: Instant) {
        self.watch.expire(now, |_, _| {});
    }

    /// Returns the order for a request of the worker; `None` if nothing has to change. `is_current`
    /// returns true if the instance whose log is read still filters.
    ///
    /// # Errors
    /// Fails if the request does not match an established connection, or if the instance no longer
    /// filters.
    pub fn order(
        &mut self,
        request: &Request,
        options: &Options,
        is_current: impl FnOnce() -> bool,
    ) -> Result<Option<Order>> {
        match request {
            Request::Open(id, expected) => {
                ensure!(
                    expected.port >= LOWEST_PORT,
                    "no data connection goes to port {}",
                    expected.port
                );
                self.claim(*id, (expected.client, expected.server))?;
                Ok(Some(Order::Open(*id, rules::rules(expected, options))))
            }
            Request::Close(id) => {
                let ends = self.ends.remove(id);
                Ok(ends.and_then(|ends| self.ids.remove(&ends)).map(Order::Close))
            }
            Request::Check if is_current() => Ok(Some(Order::Nothing)),
            Request::Check => bail!("the filter is gone"),
        }
    }

    /// Assigns an anchor to a connection. A connection has one anchor, and an anchor one
    /// connection.
    fn claim(&mut self, id: u32, ends: Ends) -> Result<()> {
        let (client, server) = ends;
        if !self.watch.is_established(&ends) {
            bail!("the log shows no control connection from {client} to {server}");
        }
        match (self.ends.get(&id), self.ids.get(&ends)) {
            (None, None) => {
                ensure!(self.ends.len() < self.most, "limit of {} anchors reached", self.most);
                self.ends.insert(id, ends);
                self.ids.insert(ends, id);
                Ok(())
            }
            (Some(known), _) if *known == ends => Ok(()),
            (Some(_), _) => bail!("#{id} is not the connection from {client} to {server}"),
            (None, Some(known)) => bail!("{client} to {server} is connection #{known}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::dialogue::Mode;
    use crate::sesame::connection::tests::Player;
    use crate::sesame::rules::Expected;

    /// A guardian that has seen one connection in the log, and a worker under an attacker's
    /// control.
    struct Evil {
        sessions: Sessions,
        options: Options,
        player: Player,
    }

    impl Evil {
        fn new(arguments: &[&str]) -> Evil {
            let options = Options::parse_from([&["ftpsesame"], arguments].concat());
            let sessions = Sessions::new(&options, Instant::now());
            let mut evil = Evil { sessions, options, player: Player::new() };
            evil.shows(&evil.player.syn());
            evil.shows(&evil.player.answer());
            evil
        }

        fn shows(&mut self, segment: &Segment) {
            self.sessions.segment(segment, Instant::now());
        }

        fn expected(&self) -> Expected {
            let Player { client, server, .. } = self.player;
            Expected { mode: Mode::Passive, client, server, port: 4000 }
        }

        fn asks(&mut self, request: &Request) -> Result<Option<Order>> {
            self.sessions.order(request, &self.options, || true)
        }

        fn opens(&mut self, id: u32, expected: Expected) -> Result<String> {
            match self.asks(&Request::Open(id, expected))? {
                Some(Order::Open(opened, rules)) if opened == id => Ok(rules),
                other => panic!("{other:?}"),
            }
        }

        fn is_refused(&mut self, id: u32, expected: Expected, reason: &str) {
            let problem = self.opens(id, expected).unwrap_err().to_string();
            assert!(problem.contains(reason), "{problem}");
        }
    }

    #[test]
    fn a_logged_connection_may_have_its_data() {
        let mut evil = Evil::new(&[]);
        let expected = evil.expected();
        let rules = evil.opens(7, expected).unwrap();
        assert!(rules.contains("from 10.0.0.5 to 192.0.2.1 port 4000 "), "{rules}");
        assert!(evil.opens(7, Expected { mode: Mode::Active, ..expected }).is_ok());
        assert_eq!(evil.asks(&Request::Close(7)).unwrap(), Some(Order::Close(7)));
        assert_eq!(evil.asks(&Request::Close(7)).unwrap(), None);
        assert!(evil.opens(8, expected).is_ok(), "it has no anchor any more");
    }

    #[test]
    fn nobody_else_has_the_filter_opened() {
        let mut evil = Evil::new(&[]);
        let expected = evil.expected();
        let [other, port]: [SocketAddr; 2] =
            ["10.0.0.9:40000", "10.0.0.5:40001"].map(|end| end.parse().unwrap());
        for (client, server) in [
            (other, expected.server),
            (expected.client, other),
            (port, expected.server),
            (expected.client, SocketAddr::new(expected.server.ip(), 22)),
            (expected.server, expected.client),
        ] {
            let expected = Expected { client, server, ..expected };
            evil.is_refused(7, expected, "the log shows no control connection");
        }
        evil.is_refused(7, Expected { port: 22, ..expected }, "no data connection goes to port 22");
    }

    #[test]
    fn a_connection_counts_from_the_servers_answer_to_its_end() {
        let mut evil = Evil::new(&[]);
        let expected = evil.expected();
        let client = "10.0.0.9:40000".parse().unwrap();
        let syn = Segment { from: client, ..evil.player.syn() };
        let early = Expected { client, ..expected };
        evil.shows(&syn);
        evil.is_refused(8, early, "the log shows no control connection");
        evil.shows(&Segment { acknowledgment: 1, to: client, ..evil.player.answer() });
        evil.is_refused(8, early, "the log shows no control connection");
        evil.shows(&Segment { to: client, ..evil.player.answer() });
        assert!(evil.opens(8, early).is_ok());
        let end = Segment { end: true, ..evil.player.said(b"> QUIT\r\n") };
        evil.shows(&end);
        evil.is_refused(7, expected, "the log shows no control connection");
    }

    #[test]
    fn each_connection_has_one_anchor() {
        let mut evil = Evil::new(&[]);
        let expected = evil.expected();
        evil.opens(7, expected).unwrap();
        evil.is_refused(8, expected, "is connection #7");
        let client = "10.0.0.9:40000".parse().unwrap();
        evil.shows(&Segment { from: client, ..evil.player.syn() });
        evil.shows(&Segment { to: client, ..evil.player.answer() });
        evil.is_refused(7, Expected { client, ..expected }, "#7 is not the connection");
    }

    #[test]
    fn a_replaced_instance_is_reported() {
        let mut evil = Evil::new(&[]);
        assert_eq!(evil.asks(&Request::Check).unwrap(), Some(Order::Nothing));
        assert!(evil.sessions.order(&Request::Check, &evil.options, || false).is_err());
    }
}
