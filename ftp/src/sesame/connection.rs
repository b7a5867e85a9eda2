//! A control connection that is watched from its first SYN on.

use std::net::SocketAddr;
use std::time::Instant;

use crate::command::{Command, Verb};
use crate::dialogue::{Agreement, Answer, Dialogue, Mode, TooManyCommands};
use crate::endpoint::LOWEST_PORT;
use crate::line::{Line, Lines, Malformed};
use crate::sesame::rules::Expected;
use crate::sesame::segment::Segment;
use crate::sesame::stream::{Fault, Stream};
use crate::sesame::watch::Watched;

/// The reply code after which the connection is encrypted by TLS.
const ENCRYPTED: u16 = 234;

/// The reason to stop watching a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum EndReason {
    /// A side has sent FIN or RST.
    #[error("ended")]
    Ended,
    /// A new SYN uses the same addresses and ports.
    #[error("restarted")]
    BegunAnew,
    /// The connection was silent for too long.
    #[error("silent")]
    Silent,
    /// The limit of connections is reached.
    #[error("displaced by newer connections")]
    Displaced,
    /// A SYN has data.
    #[error("data in a SYN")]
    EarlyData,
    /// The connection is encrypted.
    #[error("encrypted from here on")]
    Encrypted,
    /// The bytes of one direction are uncertain.
    #[error("{0}")]
    Stream(#[from] Fault),
    /// A line is malformed.
    #[error("{0}")]
    Line(#[from] Malformed),
    /// The client has sent too many commands without waiting for replies.
    #[error("{0}")]
    Commands(#[from] TooManyCommands),
}

/// A data connection that client and server have agreed upon.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Finding {
    /// A data connection between the hosts of the control connection.
    Expected(Expected),
    /// Any other data connection, with the reason and the endpoint. The filter stays closed.
    Refused(&'static str, SocketAddr),
}

/// A watched control connection.
#[derive(Debug)]
pub struct Connection {
    client: SocketAddr,
    server: SocketAddr,
    /// Sequence number of the client's first byte.
    first: u32,
    commands: Side,
    /// The server's direction; `None` before the server's SYN.
    replies: Option<Side>,
    /// The dialogue. The note of a command is true for `EPSV ALL`.
    dialogue: Dialogue<bool>,
    only_extended: bool,
}

/// One direction of the connection.
#[derive(Debug)]
struct Side {
    first: u32,
    stream: Stream,
    lines: Lines,
}

impl Side {
    fn new(syn: u32) -> Side {
        let first = syn.wrapping_add(1);
        Side { first, stream: Stream::new(first), lines: Lines::default() }
    }

    fn push(&mut self, segment: &Segment, now: Instant) -> Result<(), Fault> {
        let bytes = self.stream.push(segment.sequence, segment.payload, now)?;
        self.lines.push(&bytes);
        Ok(())
    }
}

impl Watched for Connection {
    fn new(syn: &Segment) -> Connection {
        let commands = Side::new(syn.sequence);
        Connection {
            client: syn.from,
            server: syn.to,
            first: commands.first,
            commands,
            replies: None,
            dialogue: Dialogue::new(syn.to),
            only_extended: false,
        }
    }

    fn began_with(&self, syn: &Segment) -> bool {
        syn.from == self.client && syn.sequence.wrapping_add(1) == self.first
    }

    fn is_established(&self) -> bool {
        self.replies.is_some()
    }

    fn segment(&mut self, segment: &Segment, now: Instant) -> Result<Vec<Finding>, EndReason> {
        if segment.end {
            return Err(EndReason::Ended);
        }
        let from_client = segment.from == self.client;
        if segment.syn {
            if !segment.payload.is_empty() {
                return Err(EndReason::EarlyData);
            }
            return if from_client { Ok(vec![]) } else { self.accept(segment) };
        }
        let Some(replies) = &mut self.replies else { return Ok(vec![]) };
        if from_client {
            self.commands.push(segment, now)?;
        } else {
            replies.push(segment, now)?;
        }
        self.read()
    }
}

impl Connection {
    /// Handles the server's SYN.
    fn accept(&mut self, segment: &Segment) -> Result<Vec<Finding>, EndReason> {
        if !segment.ack || segment.acknowledgment != self.first {
            return Ok(vec![]);
        }
        let side = Side::new(segment.sequence);
        match &self.replies {
            Some(known) if known.first != side.first => return Err(Fault::Disagreement.into()),
            Some(_) => {}
            None => self.replies = Some(side),
        }
        Ok(vec![])
    }

    /// Parses complete lines of both directions, and returns the data connections agreed upon.
    fn read(&mut self) -> Result<Vec<Finding>, EndReason> {
        while let Some(line) = self.commands.lines.next_line()? {
            let command = Command::parse(&line);
            let is_all = command.meaning() == Verb::OnlyExtendedPassive;
            self.dialogue.command(&command, is_all)?;
        }
        let mut findings = Vec::new();
        while let Some(line) = self.next_reply()? {
            let Some(Answer { reply, note, agreement }) = self.dialogue.reply(&line) else {
                continue;
            };
            if reply.code == ENCRYPTED {
                return Err(EndReason::Encrypted);
            }
            self.only_extended |= note == Some(true) && (200..=299).contains(&reply.code);
            findings.extend(agreement.map(|agreement| self.judge(&agreement)));
        }
        Ok(findings)
    }

    fn next_reply(&mut self) -> Result<Option<Line>, Malformed> {
        self.replies.as_mut().map_or(Ok(None), |side| side.lines.next_line())
    }

    /// Judges a data connection. The filter is opened only between the two hosts of this
    /// connection. A client that names a third host would make the server attack that host (RFC
    /// 2577).
    fn judge(&self, agreement: &Agreement) -> Finding {
        let Agreement { mode, to, extended } = *agreement;
        let (client, server) = (self.client, self.server);
        let host = match mode {
            Mode::Active => client,
            Mode::Passive => server,
        };
        if to.ip() != host.ip() {
            return Finding::Refused("another host's address", to);
        }
        if to.port() < LOWEST_PORT {
            return Finding::Refused("a port of services", to);
        }
        if self.only_extended && !(extended && mode == Mode::Passive) {
            return Finding::Refused("after EPSV ALL", to);
        }
        Finding::Expected(Expected { mode, client, server, port: to.port() })
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    const CLIENT: &str = "10.0.0.5:40000";
    const SERVER: &str = "192.0.2.1:21";

    /// Creates the segments of one connection with correct sequence numbers.
    pub(crate) struct Player {
        pub(crate) client: SocketAddr,
        pub(crate) server: SocketAddr,
        sent: u32,
        answered: u32,
    }

    impl Player {
        pub(crate) fn new() -> Player {
            let [client, server] = [CLIENT, SERVER].map(|end| end.parse().unwrap());
            Player { client, server, sent: 1000, answered: u32::MAX - 20 }
        }

        pub(crate) fn syn(&self) -> Segment<'static> {
            Segment {
                from: self.client,
                to: self.server,
                sequence: self.sent - 1,
                acknowledgment: 0,
                syn: true,
                ack: false,
                end: false,
                payload: b"",
            }
        }

        pub(crate) fn answer(&self) -> Segment<'static> {
            let (from, to) = (self.server, self.client);
            let (sequence, acknowledgment) = (self.answered.wrapping_sub(1), self.sent);
            Segment { from, to, sequence, acknowledgment, ack: true, ..self.syn() }
        }

        /// Returns a segment of the client (`> `) or of the server (`< `) with the bytes after the
        /// prefix.
        pub(crate) fn said<'l>(&mut self, bytes: &'l [u8]) -> Segment<'l> {
            let (side, payload) = bytes.split_at(2);
            let syn = Segment { syn: false, ack: true, ..self.syn() };
            let length = payload.len() as u32;
            if side == b"> " {
                let sequence = self.sent;
                self.sent += length;
                Segment { sequence, payload, ..syn }
            } else {
                let sequence = self.answered;
                self.answered = self.answered.wrapping_add(length);
                Segment { from: self.server, to: self.client, sequence, payload, ..syn }
            }
        }
    }

    /// Returns the findings of a conversation.
    fn found(lines: &[&str]) -> Result<Vec<Finding>, EndReason> {
        let mut player = Player::new();
        let mut connection = Connection::new(&player.syn());
        let now = Instant::now();
        let mut found = connection.segment(&player.answer(), now)?;
        for line in lines {
            let bytes = format!("{line}\r\n");
            found.extend(connection.segment(&player.said(bytes.as_bytes()), now)?);
        }
        Ok(found)
    }

    fn expected(mode: Mode, port: u16) -> Finding {
        let [client, server] = [CLIENT, SERVER].map(|end| end.parse().unwrap());
        Finding::Expected(Expected { mode, client, server, port })
    }

    fn refused(reason: &'static str, to: &str) -> Finding {
        Finding::Refused(reason, to.parse().unwrap())
    }

    #[test]
    fn agreed_data_connections_are_found() {
        assert_eq!(
            found(&["< 220 hi", "> PORT 10,0,0,5,200,13", "< 200 ok"]),
            Ok(vec![expected(Mode::Active, 51213)])
        );
        assert_eq!(
            found(&["< 220 hi", "> EPSV", "< 229 ok (|||2000|)", "> RETR a", "< 150 ok"]),
            Ok(vec![expected(Mode::Passive, 2000)])
        );
        assert_eq!(found(&["< 220 hi", "> PORT 10,0,0,5,200,13", "< 500 no"]), Ok(vec![]));
    }

    #[test]
    fn other_hosts_and_services_are_refused() {
        assert_eq!(
            found(&["< 220 hi", "> PORT 10,0,0,6,200,13", "< 200 ok"]),
            Ok(vec![refused("another host's address", "10.0.0.6:51213")])
        );
        assert_eq!(
            found(&["< 220 hi", "> PASV", "< 227 ok (10,0,0,5,200,13)"]),
            Ok(vec![refused("another host's address", "10.0.0.5:51213")])
        );
        assert_eq!(
            found(&["< 220 hi", "> PORT 10,0,0,5,0,22", "< 200 ok"]),
            Ok(vec![refused("a port of services", "10.0.0.5:22")])
        );
    }

    #[test]
    fn after_epsv_all_other_modes_are_refused() {
        let said = ["< 220 hi", "> EPSV ALL", "< 200 ok", "> PORT 10,0,0,5,200,13", "< 200 ok"];
        assert_eq!(found(&said), Ok(vec![refused("after EPSV ALL", "10.0.0.5:51213")]));
        // the server does not support EPSV ALL
        let said = ["< 220 hi", "> EPSV ALL", "< 500 no", "> PORT 10,0,0,5,200,13", "< 200 ok"];
        assert_eq!(found(&said), Ok(vec![expected(Mode::Active, 51213)]));
    }

    #[test]
    fn an_unreadable_connection_is_not_watched() {
        assert_eq!(found(&["< 220 hi", "> AUTH TLS", "< 234 go"]), Err(EndReason::Encrypted));
        assert_eq!(found(&["< 220 hi", "> NO\rOP"]), Err(EndReason::Line(Malformed::BareReturn)));
    }

    #[test]
    fn a_reply_that_is_sent_twice_in_two_ways_ends_it() {
        let mut player = Player::new();
        let mut connection = Connection::new(&player.syn());
        let now = Instant::now();
        let spoofed = player.answer();
        assert_eq!(connection.segment(&spoofed, now), Ok(vec![]));
        assert!(connection.is_established());
        let other = Segment { sequence: 5, ..spoofed };
        assert_eq!(connection.segment(&other, now), Err(EndReason::Stream(Fault::Disagreement)));
        let said = player.said(b"< 220 hi\r\n");
        assert_eq!(connection.segment(&said, now), Ok(vec![]));
        let end = Segment { end: true, ..said };
        assert_eq!(connection.segment(&end, now), Err(EndReason::Ended));
    }

    #[test]
    fn nothing_counts_before_the_server_has_accepted() {
        let mut player = Player::new();
        let mut connection = Connection::new(&player.syn());
        let now = Instant::now();
        let elsewhere = Segment { acknowledgment: 1, ..player.answer() };
        assert_eq!(connection.segment(&elsewhere, now), Ok(vec![]));
        assert!(!connection.is_established());
        assert_eq!(connection.segment(&player.said(b"> NO\rOP\r\n"), now), Ok(vec![]));
    }
}
