//! The log of a session: a line for every command with its session, result and duration. Lines
//! contain no password, and no byte that a terminal would interpret.

use std::fmt::Write as _;
use std::net::IpAddr;
use std::time::Instant;

use crate::command::Command;

/// The fields that each line of a session begins with.
#[derive(Debug, Clone)]
pub struct Journal {
    /// The session's number.
    pub id: u64,
    /// The client's address.
    pub client: IpAddr,
    /// The account at the gateway; `None` before the login there.
    pub account: Option<String>,
    /// The user name at the server; `None` before the login there.
    pub user: Option<Vec<u8>>,
    /// The server as the client named it, and its address.
    pub server: Option<String>,
}

impl Journal {
    /// Starts the journal of a new session.
    pub fn new(id: u64, client: IpAddr) -> Journal {
        Journal { id, client, account: None, user: None, server: None }
    }

    /// Logs a command, the code of its reply, and the bytes of its transfer.
    pub fn command(&self, command: &Command, reply: u16, began: Instant, bytes: Option<u64>) {
        log::info!("{}", self.line(command, reply, began.elapsed().as_secs_f64(), bytes));
    }

    fn line(&self, command: &Command, reply: u16, seconds: f64, bytes: Option<u64>) -> String {
        let mut line = format!("#{} client={}", self.id, self.client);
        if let Some(account) = &self.account {
            let _ = write!(line, " account={}", quoted(account.as_bytes()));
        }
        if let Some(user) = &self.user {
            let _ = write!(line, " user={}", quoted(user));
        }
        if let Some(server) = &self.server {
            let _ = write!(line, " server={server}");
        }
        match command.verb.as_str() {
            // the line may be a password whose command was mistyped
            "" => line += " command=-",
            verb => _ = write!(line, " command={verb}"),
        }
        if !command.verb.is_empty() && !command.is_secret() && !command.argument.is_empty() {
            let _ = write!(line, " argument={}", quoted(&command.argument));
        }
        let _ = write!(line, " reply={reply}");
        if let Some(bytes) = bytes {
            let _ = write!(line, " bytes={bytes}");
        }
        let _ = write!(line, " seconds={seconds:.3}");
        line
    }
}

/// Quotes bytes; those that are not printable ASCII become `\x1b` and the like.
fn quoted(bytes: &[u8]) -> String {
    let mut text = "\"".to_string();
    for byte in bytes {
        match byte {
            b'"' | b'\\' => text.extend(['\\', char::from(*byte)]),
            b' '..=b'~' => text.push(char::from(*byte)),
            _ => _ = write!(text, "\\x{byte:02x}"),
        }
    }
    text.push('"');
    text
}

#[cfg(test)]
mod tests {
    use crate::line::Line;

    use super::*;

    fn line(text: &[u8]) -> String {
        let line = Line { raw: Vec::new(), text: text.to_vec() };
        let journal = Journal {
            account: Some("alice".into()),
            user: Some(b"ftp".to_vec()),
            server: Some("192.0.2.1:21".into()),
            ..Journal::new(7, "10.0.0.1".parse().unwrap())
        };
        journal.line(&Command::parse(&line), 226, 0.25, None)
    }

    #[test]
    fn a_command_is_told_with_its_answer() {
        assert_eq!(
            line(b"retr a b"),
            "#7 client=10.0.0.1 account=\"alice\" user=\"ftp\" server=192.0.2.1:21 \
             command=RETR argument=\"a b\" reply=226 seconds=0.250"
        );
    }

    #[test]
    fn no_password_is_told() {
        for text in
            ["PASS secret", "pass secret", "PASS\tsecret", "ACCT secret", "PASSWORDS secret"]
        {
            assert!(!line(text.as_bytes()).contains("secret"), "{text}");
        }
    }

    #[test]
    fn no_byte_moves_a_cursor() {
        let told = line(b"RETR \x1b[2J\"\\\x00\n\xc3\xa9\x7f");
        assert!(told.contains(r#"argument="\x1b[2J\"\\\x00\x0a\xc3\xa9\x7f""#), "{told}");
    }
}
