//! Both sides of a control connection, and the data connections that they agree upon.
//!
//! A server answers commands in their order, each with one reply that is not preliminary, even if
//! the client sends several at once. Both sides agree on a data connection when the server replies
//! to the client's request with success. The request alone has no effect.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use crate::command::{Command, Verb};
use crate::endpoint::{self, Endpoint};
use crate::line::Line;
use crate::reply::{Replies, Reply};

/// Number of commands that may wait for replies. A client that sends more at once is refused.
pub const MOST_WAITING: usize = 1024;

/// The side that opens the data connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Mode {
    /// The server connects to the client.
    Active,
    /// The client connects to the server.
    Passive,
}

/// A data connection that both sides have agreed upon.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Agreement {
    /// The side that opens the connection.
    pub mode: Mode,
    /// The endpoint of the side that listens, as that side named it. With `EPSV` the address is the
    /// server's.
    pub to: Endpoint,
    /// True if the request was `EPRT` or `EPSV`.
    pub extended: bool,
}

/// The state of one control connection. The caller can give each command a note, which comes back
/// with the reply to the command.
#[derive(Debug)]
pub struct Dialogue<N> {
    server: Endpoint,
    /// The meanings and notes of the commands without a reply, oldest first.
    waiting: VecDeque<(Verb, N)>,
    replies: Replies,
    /// True after the first reply, which is the greeting and answers no command.
    greeted: bool,
    /// Number of `ABOR`s since the client last requested a data connection. Some servers
    /// (pure-ftpd) send one reply for an `ABOR` and the transfer that it ends, so a reply may be
    /// missing for each.
    aborted: usize,
}

/// The client has sent more commands without waiting for replies than [`MOST_WAITING`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("more than {MOST_WAITING} commands without a reply")]
pub struct TooManyCommands;

/// A final reply of the server, with the command that it answers.
#[derive(Debug)]
pub struct Answer<N> {
    /// The last line of the reply.
    pub reply: Reply,
    /// The note of the command; `None` for the greeting and for a reply to no command.
    pub note: Option<N>,
    /// The data connection that this reply confirms.
    pub agreement: Option<Agreement>,
}

impl<N> Dialogue<N> {
    /// Starts the dialogue of a new connection to `server`.
    pub fn new(server: Endpoint) -> Self {
        Dialogue {
            server,
            waiting: VecDeque::new(),
            replies: Replies::default(),
            greeted: false,
            aborted: 0,
        }
    }

    /// Records a command of the client.
    ///
    /// # Errors
    /// Fails if [`MOST_WAITING`] commands wait for replies.
    pub fn command(&mut self, command: &Command, note: N) -> Result<(), TooManyCommands> {
        if self.waiting.len() == MOST_WAITING {
            return Err(TooManyCommands);
        }
        let verb = command.meaning();
        if command.verb == "ABOR" {
            self.aborted += 1;
        } else if verb != Verb::Other && self.waiting.len() <= self.aborted {
            // the client has read all replies that it waited for; those missing went to its ABORs
            self.waiting.clear();
            self.aborted = 0;
        }
        self.waiting.push_back((verb, note));
        Ok(())
    }

    /// Records a line of the server. Returns an answer if the line ends a final reply.
    pub fn reply(&mut self, line: &Line) -> Option<Answer<N>> {
        let reply = self.replies.take(line)?;
        if reply.is_preliminary() {
            return None;
        }
        // the greeting answers no command, nor does the 421 of a server that shuts down
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
                agreed(Mode::Passive, endpoint::parse_passive(&reply.text)?, false)
            }
            (Verb::ExtendedPassive, 229) => {
                let port = endpoint::parse_extended_passive(&reply.text)?;
                agreed(Mode::Passive, Endpoint::new(self.server.ip(), port), true)
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Plays lines of a client (`>`) and a server (`<`), and returns the agreed data connections.
    fn agreed(lines: &[&str]) -> Vec<(Mode, String)> {
        let mut dialogue = Dialogue::new("192.0.2.1:21".parse().unwrap());
        let mut agreed = Vec::new();
        for line in lines {
            let (side, text) = line.split_at(2);
            let line = Line::from_text(text);
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
    fn only_the_reply_to_the_command_counts() {
        // the server's text, or a reply to another command, looks like the answer
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
        // each command has a reply, and the next request does not wait for them
        let both =
            ["< 220 hello", "> RETR a", "> ABOR", "> PASV", "< 426 no", "< 226 both", passive[1]];
        assert_eq!(agreed(&both).len(), 1);
        // without an ABOR no reply is missing
        assert_eq!(agreed(&["< 220 hello", "> NOOP", "> PASV", passive[1]]), []);
    }

    #[test]
    fn a_client_that_never_waits_is_refused() {
        let mut dialogue = Dialogue::new("192.0.2.1:21".parse().unwrap());
        let noop = Command::parse(&Line::from_text("NOOP"));
        for _ in 0..MOST_WAITING {
            assert_eq!(dialogue.command(&noop, ()), Ok(()));
        }
        assert_eq!(dialogue.command(&noop, ()), Err(TooManyCommands));
    }
}
