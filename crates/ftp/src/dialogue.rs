//! Both sides of a control connection: which data connection they agree upon.
//!
//! Commands are answered in their order, each by one reply that is not preliminary, however many of
//! them are sent at once. A data connection is agreed upon when the reply to the command that asked
//! for it is a good one, and not before: what a client asks for says nothing yet.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use crate::command::{Command, Verb};
use crate::endpoint::{self, Endpoint};
use crate::line::Line;
use crate::reply::{Replies, Reply};

/// Commands that may wait for their replies. Who sends more at once is no client.
pub const MOST_WAITING: usize = 1024;

/// Who connects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Mode {
    /// The server, to the client.
    Active,
    /// The client, to the server.
    Passive,
}

/// A data connection that both sides want.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Agreement {
    /// Who connects.
    pub mode: Mode,
    /// Where to, as the side that waits has said it; with `EPSV` the address is that of the server.
    pub to: Endpoint,
    /// Whether it was said by `EPRT` or `EPSV`.
    pub extended: bool,
}

/// A control connection that somebody follows, who may give each command a note to come back with
/// its reply.
#[derive(Debug)]
pub struct Dialogue<N> {
    server: Endpoint,
    /// What the commands without a reply mean, the oldest first.
    waiting: VecDeque<(Verb, N)>,
    replies: Replies,
    /// The server has spoken first: its greeting answers no command.
    greeted: bool,
    /// `ABOR`s since the last data connection was asked for. There are servers that answer one
    /// together with the transfer that it ends (pure-ftpd), so that a reply may be missing for
    /// each.
    aborted: usize,
}

/// More commands wait for their replies than a client would send.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("more than {MOST_WAITING} commands without a reply")]
pub struct TooManyCommands;

/// What a reply that ends a command says.
#[derive(Debug)]
pub struct Answer<N> {
    /// The last line of the reply.
    pub reply: Reply,
    /// The note of the command; `None` for the greeting, and for what nobody has asked.
    pub note: Option<N>,
    /// What is agreed upon now.
    pub agreement: Option<Agreement>,
}

impl<N> Dialogue<N> {
    /// A connection to `server` from its beginning.
    pub fn new(server: Endpoint) -> Self {
        Dialogue {
            server,
            waiting: VecDeque::new(),
            replies: Replies::default(),
            greeted: false,
            aborted: 0,
        }
    }

    /// The client has sent `command`.
    ///
    /// # Errors
    /// It sends without waiting for an answer.
    pub fn command(&mut self, command: &Command, note: N) -> Result<(), TooManyCommands> {
        if self.waiting.len() == MOST_WAITING {
            return Err(TooManyCommands);
        }
        let verb = command.meaning();
        if command.verb == "ABOR" {
            self.aborted += 1;
        } else if verb != Verb::Other && self.waiting.len() <= self.aborted {
            // the client has heard all that it waited for
            self.waiting.clear();
            self.aborted = 0;
        }
        self.waiting.push_back((verb, note));
        Ok(())
    }

    /// The server has sent `line`; something if it ends a reply that is not preliminary.
    pub fn reply(&mut self, line: &Line) -> Option<Answer<N>> {
        let reply = self.replies.take(line)?;
        if reply.is_preliminary() {
            return None;
        }
        // the greeting answers no command, nor does the 421 of a server that is leaving
        let greeting = !std::mem::replace(&mut self.greeted, true);
        let asked = if greeting { None } else { self.waiting.pop_front() };
        let (verb, note) = asked.unzip();
        let agreement = verb.and_then(|verb| self.agreement(verb, &reply));
        Some(Answer { reply, note, agreement })
    }

    fn agreement(&self, asked: Verb, reply: &Reply) -> Option<Agreement> {
        let agreed = |mode, to, extended| Some(Agreement { mode, to, extended });
        match (asked, reply.code) {
            (Verb::Port(to), 200..=299) => agreed(Mode::Active, to, false),
            (Verb::ExtendedPort(to), 200..=299) => agreed(Mode::Active, to, true),
            (Verb::Passive, 227) => {
                agreed(Mode::Passive, endpoint::of_passive(&reply.text)?, false)
            }
            (Verb::ExtendedPassive, 229) => {
                let port = endpoint::of_extended_passive(&reply.text)?;
                agreed(Mode::Passive, Endpoint::new(self.server.ip(), port), true)
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Plays lines of a client (`>`) and a server (`<`); what was agreed upon.
    fn agreed(lines: &[&str]) -> Vec<(Mode, String)> {
        let mut dialogue = Dialogue::new("192.0.2.1:21".parse().unwrap());
        let mut agreed = Vec::new();
        for line in lines {
            let (side, text) = line.split_at(2);
            let line = Line::of(text);
            if side == "> " {
                dialogue.command(&Command::parse(&line), ()).unwrap();
            } else if let Some(agreement) = dialogue.reply(&line).and_then(|a| a.agreement) {
                agreed.push((agreement.mode, agreement.to.to_string()));
            }
        }
        agreed
    }

    #[test]
    fn a_data_connection_is_agreed_upon_by_the_reply() {
        let asked = ["< 220 hello", "> PORT 10,0,0,1,200,13"];
        assert_eq!(agreed(&asked), []);
        assert_eq!(
            agreed(&[&asked[..], &["< 200 ok"]].concat()),
            [(Mode::Active, "10.0.0.1:51213".to_string())]
        );
        assert_eq!(agreed(&[&asked[..], &["< 500 no"]].concat()), []);
    }

    #[test]
    fn the_server_says_where_a_passive_one_goes() {
        let passive = ["< 220 hello", "> PASV", "< 227 Passive (192,0,2,9,200,13)"];
        assert_eq!(agreed(&passive), [(Mode::Passive, "192.0.2.9:51213".to_string())]);
        let extended = ["< 220 hello", "> EPSV", "< 229 Passive (|||51213|)"];
        assert_eq!(agreed(&extended), [(Mode::Passive, "192.0.2.1:51213".to_string())]);
    }

    #[test]
    fn replies_find_their_commands_however_many_wait() {
        let lines = [
            "< 220 hello",
            "> NOOP",
            "> EPSV ALL",
            "> EPSV",
            "> RETR a",
            "< 200 ok",
            "< 200 ok",
            "< 229 (|||1025|)",
            "< 150 opening",
            "< 226 done",
        ];
        assert_eq!(agreed(&lines), [(Mode::Passive, "192.0.2.1:1025".to_string())]);
    }

    #[test]
    fn no_reply_but_the_one_to_the_command_counts() {
        // a server whose text, or a reply to something else, looks like the answer
        for lines in [
            &["< 220-x", "< 227 (1,2,3,4,5,6)", "< 220 hello"][..],
            &["< 220 hello", "> NOOP", "< 227 (1,2,3,4,5,6)"],
            &["< 220 hello", "< 227 (1,2,3,4,5,6)"],
            &["< 220 hello", "> STAT", "< 211-x", "< 227 (1,2,3,4,5,6)", "< 211 end"],
            &["< 220 hello", "> PASV", "< 229 (|||1025|)"],
        ] {
            assert_eq!(agreed(lines), [], "{lines:?}");
        }
    }

    #[test]
    fn a_transfer_and_what_aborts_it_may_have_one_reply() {
        let aborted =
            ["< 220 hello", "> RETR a", "< 150 ok", "> ABOR", "< 226 both", "> NOOP", "< 200 ok"];
        let passive = ["> PASV", "< 227 (192,0,2,1,200,13)"];
        assert_eq!(agreed(&[&aborted[..], &passive].concat()).len(), 1);
        let active = ["> PORT 10,0,0,1,200,13", "< 200 ok"];
        assert_eq!(agreed(&[&aborted[..], &active].concat()).len(), 1);
        // each has its own, and the next does not wait for them
        let both =
            ["< 220 hello", "> RETR a", "> ABOR", "> PASV", "< 426 no", "< 226 both", passive[1]];
        assert_eq!(agreed(&both).len(), 1);
        // none is missing without one
        assert_eq!(agreed(&["< 220 hello", "> NOOP", "> PASV", passive[1]]), []);
    }

    #[test]
    fn a_client_that_never_waits_is_none() {
        let mut dialogue = Dialogue::new("192.0.2.1:21".parse().unwrap());
        let noop = Command::parse(&Line::of("NOOP"));
        for _ in 0..MOST_WAITING {
            assert_eq!(dialogue.command(&noop, ()), Ok(()));
        }
        assert_eq!(dialogue.command(&noop, ()), Err(TooManyCommands));
    }
}
