//! All watched control connections. If the limit is reached, a new connection replaces another.
//! Connections without an answer of the server are replaced first, and of these the one with the
//! oldest last segment.

use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use crate::sesame::connection::{EndReason, Finding};
use crate::sesame::rules::Expected;
use crate::sesame::segment::Segment;

/// Time that a server may take to answer a SYN.
const OPENING: Duration = Duration::from_secs(30);

/// Time that a connection may be silent, as in pf.
const SILENCE: Duration = Duration::from_secs(86_400);

/// An event of a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// The server has answered. The fields are client and server.
    Begun(SocketAddr, SocketAddr),
    /// Open the filter for this data connection.
    Open(Expected),
    /// A data connection was refused, with the reason and its endpoint.
    Refused(&'static str, SocketAddr),
    /// The connection is no longer watched.
    Ended(EndReason),
}

/// Client and server of a connection.
type Ends = (SocketAddr, SocketAddr);

/// True if the connection is established; the time of its last segment; its number. The connection
/// with the least age is replaced first.
type Age = (bool, Instant, u32);

/// A connection that a watch can manage.
pub trait Watched {
    /// Creates the connection that begins with `syn`.
    fn new(syn: &Segment) -> Self;

    /// Returns true if `syn` repeats the SYN that the connection began with.
    fn began_with(&self, syn: &Segment) -> bool;

    /// Returns true if the server has answered.
    fn is_established(&self) -> bool;

    /// Takes a segment of either side, and returns the data connections agreed upon with it.
    ///
    /// # Errors
    /// Fails if the connection must no longer be watched.
    fn segment(&mut self, segment: &Segment, now: Instant) -> Result<Vec<Finding>, EndReason>;
}

/// The watched connections.
pub struct Watch<C> {
    most: usize,
    connections: HashMap<Ends, (Age, C)>,
    ages: BTreeMap<Age, Ends>,
    /// No segment is earlier than this time.
    start: Instant,
    next: u32,
    displaced: u64,
}

impl<C: Watched> Watch<C> {
    /// Creates a watch with room for `most` connections.
    pub fn new(most: usize, start: Instant) -> Watch<C> {
        let (connections, ages) = (HashMap::new(), BTreeMap::new());
        Watch { most, connections, ages, start, next: 1, displaced: 0 }
    }

    /// Returns the number of connections.
    pub fn len(&self) -> usize {
        self.connections.len()
    }

    /// Returns true if there are no connections.
    pub fn is_empty(&self) -> bool {
        self.connections.is_empty()
    }

    /// Returns true if the server of a connection has answered, and the connection has not ended.
    pub fn is_established(&self, ends: &Ends) -> bool {
        self.connections.get(ends).is_some_and(|(age, _)| age.0)
    }

    /// Returns the number of connections that others have replaced.
    pub fn displaced(&self) -> u64 {
        self.displaced
    }

    /// Handles a segment that the filter has passed. `report` gets each event and the number of its
    /// connection.
    pub fn segment(&mut self, segment: &Segment, now: Instant, mut report: impl FnMut(u32, Event)) {
        let ends = (segment.from, segment.to);
        if segment.syn && !segment.ack {
            return self.begin(ends, segment, now, &mut report);
        }
        let ends = match self.connections.contains_key(&ends) {
            true => ends,
            false => (ends.1, ends.0),
        };
        let Some((age, connection)) = self.connections.get_mut(&ends) else { return };
        let (was_established, id) = (age.0, age.2);
        let found = connection.segment(segment, now);
        let is_established = connection.is_established();
        self.ages.remove(age);
        *age = (is_established, now, id);
        self.ages.insert(*age, ends);
        if is_established && !was_established {
            report(id, Event::Begun(ends.0, ends.1));
        }
        match found {
            Ok(findings) => findings.into_iter().for_each(|finding| report(id, finding.into())),
            Err(over) => self.end(&ends, over, &mut report),
        }
    }

    fn begin(
        &mut self,
        ends: Ends,
        syn: &Segment,
        now: Instant,
        report: &mut impl FnMut(u32, Event),
    ) {
        // a server that connects from its port to the client's replaces the known connection, too
        for known in [ends, (ends.1, ends.0)] {
            match self.connections.get(&known) {
                Some((_, connection)) if connection.began_with(syn) => return,
                Some(_) => self.end(&known, EndReason::BegunAnew, report),
                None => {}
            }
        }
        if self.connections.len() >= self.most
            && let Some(oldest) = self.ages.values().next().copied()
        {
            self.displaced += 1;
            self.end(&oldest, EndReason::Displaced, report);
        }
        let age = (false, now, self.next);
        self.next = self.next.wrapping_add(1);
        self.ages.insert(age, ends);
        self.connections.insert(ends, (age, C::new(syn)));
    }

    /// Ends connections that have been silent for too long.
    pub fn expire(&mut self, now: Instant, mut report: impl FnMut(u32, Event)) {
        for (is_established, limit) in [(false, OPENING), (true, SILENCE)] {
            while let Some((age, ends)) = self.oldest(is_established)
                && now.saturating_duration_since(age.1) > limit
            {
                self.end(&ends, EndReason::Silent, &mut report);
            }
        }
    }

    fn oldest(&self, is_established: bool) -> Option<(Age, Ends)> {
        let (age, ends) = self.ages.range((is_established, self.start, 0)..).next()?;
        (age.0 == is_established).then_some((*age, *ends))
    }

    fn end(&mut self, ends: &Ends, over: EndReason, report: &mut impl FnMut(u32, Event)) {
        if let Some((age, _)) = self.connections.remove(ends) {
            self.ages.remove(&age);
            report(age.2, Event::Ended(over));
        }
    }
}

impl From<Finding> for Event {
    fn from(finding: Finding) -> Event {
        match finding {
            Finding::Expected(expected) => Event::Open(expected),
            Finding::Refused(reason, to) => Event::Refused(reason, to),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialogue::Mode;
    use crate::sesame::connection::Connection;
    use crate::sesame::connection::tests::Player;

    struct Played {
        watch: Watch<Connection>,
        now: Instant,
        events: Vec<(u32, Event)>,
    }

    impl Played {
        fn new(most: usize) -> Played {
            let now = Instant::now();
            Played { watch: Watch::new(most, now), now, events: Vec::new() }
        }

        fn segment(&mut self, segment: &Segment) {
            let events = &mut self.events;
            self.watch.segment(segment, self.now, |id, event| events.push((id, event)));
        }

        fn pass(&mut self, time: Duration) {
            self.now += time;
            let events = &mut self.events;
            self.watch.expire(self.now, |id, event| events.push((id, event)));
        }

        fn events(&mut self) -> Vec<(u32, Event)> {
            std::mem::take(&mut self.events)
        }
    }

    #[test]
    fn a_connection_is_watched_from_its_beginning_to_its_end() {
        let mut played = Played::new(10);
        let mut player = Player::new();
        let (client, server) = (player.client, player.server);
        played.segment(&player.syn());
        // another interface logs the same packet
        played.segment(&player.syn());
        played.segment(&player.answer());
        played.segment(&player.said(b"< 220 hi\r\n"));
        played.segment(&player.said(b"> EPSV\r\n"));
        assert_eq!(played.events(), [(1, Event::Begun(client, server))]);
        let reply = player.said(b"< 229 (|||2000|)\r\n");
        played.segment(&reply);
        let expected = Expected { mode: Mode::Passive, client, server, port: 2000 };
        assert_eq!(played.events(), [(1, Event::Open(expected))]);
        played.segment(&reply);
        assert_eq!(played.events(), [], "what is sent again is agreed upon once");
        played.segment(&Segment { end: true, ..reply });
        assert_eq!(played.events(), [(1, Event::Ended(EndReason::Ended))]);
        assert!(played.watch.is_empty());
    }

    #[test]
    fn a_connection_without_its_syn_is_not_watched() {
        let mut played = Played::new(10);
        let mut player = Player::new();
        played.segment(&player.answer());
        played.segment(&player.said(b"> EPSV\r\n"));
        played.segment(&player.said(b"< 229 (|||2000|)\r\n"));
        assert_eq!(played.events(), []);
        assert!(played.watch.is_empty());
    }

    #[test]
    fn a_new_one_between_the_same_ends_is_the_end_of_the_other() {
        let mut played = Played::new(10);
        let player = Player::new();
        played.segment(&player.syn());
        played.segment(&Segment { sequence: 77, ..player.syn() });
        assert_eq!(played.events(), [(1, Event::Ended(EndReason::BegunAnew))]);
        let from_server = Segment { from: player.server, to: player.client, ..player.syn() };
        played.segment(&from_server);
        assert_eq!(played.events(), [(2, Event::Ended(EndReason::BegunAnew))]);
        assert_eq!(played.watch.len(), 1);
    }

    #[test]
    fn unanswered_connections_are_replaced_first() {
        let mut played = Played::new(3);
        let player = Player::new();
        played.segment(&player.syn());
        played.segment(&player.answer());
        played.events();
        for port in 1..=10 {
            let from = SocketAddr::new(player.client.ip(), port);
            played.now += Duration::from_millis(1);
            played.segment(&Segment { from, ..player.syn() });
        }
        assert_eq!((played.watch.len(), played.watch.displaced()), (3, 8));
        let gone: Vec<_> = played.events().into_iter().map(|(id, _)| id).collect();
        assert_eq!(gone, [2, 3, 4, 5, 6, 7, 8, 9]);
    }

    #[test]
    fn the_silent_are_forgotten() {
        let mut played = Played::new(10);
        let player = Player::new();
        played.segment(&player.syn());
        played.segment(&player.answer());
        let from = SocketAddr::new(player.client.ip(), 1);
        played.segment(&Segment { from, ..player.syn() });
        played.events();
        played.pass(OPENING);
        assert_eq!(played.events(), []);
        played.pass(Duration::from_secs(1));
        assert_eq!(played.events(), [(2, Event::Ended(EndReason::Silent))]);
        played.pass(SILENCE);
        assert_eq!(played.events(), [(1, Event::Ended(EndReason::Silent))]);
    }
}
