//! Commands of a client: a verb and an argument.

use crate::endpoint::{self, Endpoint};
use crate::line::Line;

/// The longest verb, in letters. A longer word is not a verb.
const LONGEST_VERB: usize = 8;

/// A command as the client sent it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    /// The verb in capitals; empty if the line has none.
    pub verb: String,
    /// The bytes after the verb and one space. They are bytes because file names have no encoding.
    pub argument: Vec<u8>,
}

/// The meaning of a command for data connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    /// `PORT`: the server connects to this endpoint.
    Port(Endpoint),
    /// `EPRT`: as `PORT`, in the notation of RFC 2428.
    ExtendedPort(Endpoint),
    /// `PASV`: the server names an endpoint to which the client connects.
    Passive,
    /// `EPSV`: as `PASV`, but the server names a port only.
    ExtendedPassive,
    /// `EPSV ALL`: the client will ask for no other kind of data connection (RFC 2428 section 4).
    OnlyExtendedPassive,
    /// `PORT` or `EPRT` with an argument that cannot be parsed.
    Garbled,
    /// Any other command.
    Other,
}

impl Command {
    /// Parses a line. If the line does not begin with a verb, all of it is the argument.
    pub fn parse(line: &Line) -> Command {
        let text = line.text.trim_ascii_start();
        let letters = text.iter().take_while(|byte| byte.is_ascii_alphabetic()).count();
        let (verb, rest) = text.split_at(letters);
        let is_verb = letters <= LONGEST_VERB && rest.first().is_none_or(|byte| *byte == b' ');
        if !is_verb {
            return Command { verb: String::new(), argument: text.to_vec() };
        }
        let verb = verb.iter().map(|byte| char::from(byte.to_ascii_uppercase())).collect();
        Command { verb, argument: rest.get(1..).unwrap_or_default().to_vec() }
    }

    /// Returns the argument without blanks around it; empty if the argument is not UTF-8.
    pub fn text(&self) -> &str {
        str::from_utf8(&self.argument).unwrap_or_default().trim()
    }

    /// Returns the meaning of the command for data connections.
    pub fn meaning(&self) -> Verb {
        let argument = self.text();
        match self.verb.as_str() {
            "PORT" => endpoint::parse_numbers(argument).map_or(Verb::Garbled, Verb::Port),
            "EPRT" => endpoint::parse_extended(argument).map_or(Verb::Garbled, Verb::ExtendedPort),
            "PASV" => Verb::Passive,
            "EPSV" if argument.eq_ignore_ascii_case("ALL") => Verb::OnlyExtendedPassive,
            "EPSV" => Verb::ExtendedPassive,
            _ => Verb::Other,
        }
    }

    /// Returns true if the argument is a secret, such as a password.
    pub fn is_secret(&self) -> bool {
        matches!(self.verb.as_str(), "PASS" | "ACCT" | "ADAT")
    }

    /// Formats the command for logs: without a secret, and with `?` for each byte that is not
    /// printable.
    pub fn shown(&self) -> String {
        if self.is_secret() {
            return format!("{} ...", self.verb);
        }
        let line = Line { raw: Vec::new(), text: self.argument.clone() };
        format!("{} {}", self.verb, line.shown()).trim().to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(text: &str) -> Command {
        Command::parse(&Line::from_text(text))
    }

    #[test]
    fn verbs_have_no_case_and_arguments_keep_their_blanks() {
        let retrieve = command("rEtR  a b ");
        assert_eq!((retrieve.verb.as_str(), retrieve.argument.as_slice()), ("RETR", &b" a b "[..]));
        assert_eq!(command("  NOOP").verb, "NOOP");
    }

    #[test]
    fn a_line_without_a_verb_is_no_command() {
        for text in ["", "12 x", "PASV\tx", "PORT1,2,3,4,5,6", "VERYLONGVERB x", "\u{e9}PASV"] {
            assert_eq!(command(text).verb, "", "{text}");
            assert_eq!(command(text).meaning(), Verb::Other, "{text}");
        }
    }

    #[test]
    fn data_connections_are_asked_for_in_five_ways() {
        let to = "10.0.0.1:51213".parse().unwrap();
        assert_eq!(command("PORT 10,0,0,1,200,13").meaning(), Verb::Port(to));
        assert_eq!(command("eprt |1|10.0.0.1|51213|").meaning(), Verb::ExtendedPort(to));
        assert_eq!(command("PASV").meaning(), Verb::Passive);
        assert_eq!(command("EPSV 1").meaning(), Verb::ExtendedPassive);
        assert_eq!(command("EPSV all").meaning(), Verb::OnlyExtendedPassive);
        assert_eq!(command("PORT x").meaning(), Verb::Garbled);
    }

    #[test]
    fn no_log_shows_a_password() {
        assert_eq!(command("pass secret").shown(), "PASS ...");
        assert_eq!(command("USER a\u{e9}").shown(), "USER a??");
    }
}
