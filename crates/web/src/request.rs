//! Requests to the broker, and its replies.
//!
//! A connection has one request: a line of JSON, [`Envelope`]. The broker answers with a line of
//! JSON, [`Reply`], and with the body if there is one.

use std::fmt::{self, Display};
use std::net::IpAddr;
use std::str::FromStr;

use ipnet::IpNet;
use serde::{Deserialize, Serialize};

/// Maximum number of bytes of a request.
pub const MAX_REQUEST: u64 = 2 << 20;
/// Maximum number of bytes of a rule set in a request.
pub const MAX_RULES: usize = 1 << 20;
/// Seconds that a load from the page is on trial: the least and the most.
pub const TRIAL_SECONDS: (u32, u32) = (10, 3600);

/// The rights of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// May see everything, and change nothing.
    Reader,
    /// May also change the filter.
    Writer,
}

impl Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Role::Reader => "reader",
            Role::Writer => "writer",
        })
    }
}

impl FromStr for Role {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "reader" => Ok(Role::Reader),
            "writer" => Ok(Role::Writer),
            _ => Err("the role is reader or writer".into()),
        }
    }
}

/// A request and the token of its user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Envelope {
    /// Token of the user. Requests that only read need none.
    #[serde(default)]
    pub token: Option<String>,
    /// The request.
    pub request: Request,
}

/// All requests that the broker executes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "verb", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Request {
    /// Asks for the role of the token.
    Role,
    /// Asks for `pfctl -s info`.
    Info,
    /// Asks for `pfctl -s confirm`.
    Trial,
    /// Asks for the rules of all anchors.
    Rules,
    /// Asks for all states, which come as a stream.
    States,
    /// Asks for the interfaces and their counters.
    Interfaces,
    /// Asks for the queues.
    Queues,
    /// Asks for the tables of all anchors.
    Tables,
    /// Asks for the addresses of a table.
    Table(Table),
    /// Asks for the metrics in the form of OpenMetrics.
    Metrics,
    /// Asks for the text of /etc/pf.conf.
    File,
    /// Asks for the verdict of the rules in force on a packet.
    Explain {
        /// The packet, in the words of `pfctl explain`.
        packet: String,
    },
    /// Asks for logged packets as they arrive.
    Log,
    /// Asks for dropped packets as they are dropped.
    Drops,
    /// Kills a state.
    Kill {
        /// The id of the state: up to 16 hexadecimal digits.
        id: String,
        /// The creator of the state: up to 8 hexadecimal digits.
        creator: String,
    },
    /// Adds an address to a table.
    Add(Entry),
    /// Deletes an address from a table.
    Delete(Entry),
    /// Asks how a rule set differs from /etc/pf.conf.
    Diff {
        /// The rule set.
        rules: String,
    },
    /// Loads a rule set on trial.
    Load {
        /// The rule set.
        rules: String,
        /// Seconds until the load is undone, unless it is confirmed.
        seconds: u32,
        /// True to write the rule set to /etc/pf.conf when it is confirmed.
        write: bool,
    },
    /// Confirms the load on trial.
    Confirm,
    /// Undoes the load on trial.
    Revert,
}

/// The name of a table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Table {
    /// Name of the table.
    pub table: String,
    /// Path of the table's anchor; empty for the main rule set.
    #[serde(default)]
    pub anchor: String,
}

/// An address of a table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// Name of the table.
    pub table: String,
    /// Path of the table's anchor; empty for the main rule set.
    #[serde(default)]
    pub anchor: String,
    /// An address or a prefix, with `!` in front if the table excludes it.
    pub address: String,
}

impl Request {
    /// Returns the role that the request needs, or `None` if it needs no token.
    ///
    /// A rule set can include any file of the machine, and messages about errors quote its lines.
    /// So only writers may have one parsed.
    pub fn needs(&self) -> Option<Role> {
        use Request::*;
        match self {
            Role
            | Info
            | Trial
            | Rules
            | States
            | Interfaces
            | Queues
            | Tables
            | Table(_)
            | Metrics
            | File
            | Explain { .. }
            | Log
            | Drops => None,
            Kill { .. } | Add(_) | Delete(_) | Diff { .. } | Load { .. } | Confirm | Revert => {
                Some(self::Role::Writer)
            }
        }
    }

    /// Checks the fields, so that none of them becomes an option of pfctl or a name to look up.
    ///
    /// # Errors
    /// Returns a message for the user that names the field.
    pub fn check(&self) -> Result<(), String> {
        use Request::*;
        match self {
            Table(table) => check_table(&table.table, &table.anchor),
            Add(entry) | Delete(entry) => {
                check_table(&entry.table, &entry.anchor)?;
                check_address(&entry.address)
            }
            Explain { packet } => check_packet(packet),
            Kill { id, creator } => {
                check_digits("the id of a state", id, 16)?;
                check_digits("the creator of a state", creator, 8)
            }
            Diff { rules } => check_rules(rules),
            Load { rules, seconds, .. } => {
                let (least, most) = TRIAL_SECONDS;
                if !(least..=most).contains(seconds) {
                    return Err(format!("a trial has {least} to {most} seconds"));
                }
                check_rules(rules)
            }
            _ => Ok(()),
        }
    }
}

fn check_table(table: &str, anchor: &str) -> Result<(), String> {
    let is_name = |name: &str| {
        let is_letter = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
        !name.starts_with('-') && name.chars().all(is_letter)
    };
    if table.is_empty() || table.len() > 31 || !is_name(table) {
        return Err(
            "the name of a table has 1 to 31 letters, digits and `_`, `.`, `-`, and does not \
             begin with `-`"
                .into(),
        );
    }
    if anchor.len() > 1023 || !anchor.split('/').all(is_name) {
        return Err("the path of an anchor has names of letters, digits and `_`, `.`, `-`, \
                    with `/` between them"
            .into());
    }
    Ok(())
}

/// Checks an address. Names are refused, because the broker would look them up.
fn check_address(text: &str) -> Result<(), String> {
    let number = text.strip_prefix('!').unwrap_or(text);
    match (number.parse::<IpAddr>(), number.parse::<IpNet>()) {
        (Err(_), Err(_)) => Err(format!(
            "`{}` is no address: write 192.0.2.7, 192.0.2.0/24 or 2001:db8::/32",
            text.escape_default()
        )),
        _ => Ok(()),
    }
}

fn check_packet(text: &str) -> Result<(), String> {
    if text.len() > 1000 {
        return Err("a packet has at most 1,000 characters".into());
    }
    if text.trim().is_empty() {
        return Err("write a packet: in em0 tcp 192.0.2.7:4000 > 198.51.100.2:22 S".into());
    }
    if text.starts_with('-') || text.chars().any(char::is_control) {
        return Err("a packet does not begin with `-` and has no control characters".into());
    }
    Ok(())
}

fn check_digits(what: &str, text: &str, most: usize) -> Result<(), String> {
    let is_right = !text.is_empty()
        && text.len() <= most
        && text.chars().all(|digit| digit.is_ascii_hexdigit());
    is_right.then_some(()).ok_or(format!("{what} has 1 to {most} hexadecimal digits"))
}

fn check_rules(text: &str) -> Result<(), String> {
    if text.len() > MAX_RULES {
        return Err(format!(
            "the page takes rule sets of at most {MAX_RULES} bytes: load longer ones by \
             `pfctl -f FILE --confirm SECONDS`"
        ));
    }
    Ok(())
}

/// The first line of the broker's answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "status", rename_all = "kebab-case")]
pub enum Reply {
    /// The request was executed, and the body follows.
    Done {
        /// Number of bytes of the body.
        length: usize,
        /// Warnings and other messages of pfctl.
        messages: String,
    },
    /// The body follows for as long as both sides want.
    Stream,
    /// The request was not executed.
    Refused {
        /// The reason, for the user.
        message: String,
    },
    /// The token has no right to this request.
    Denied {
        /// The role that is needed.
        needs: Role,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Request, String> {
        let envelope: Envelope = serde_json::from_str(line).map_err(|error| error.to_string())?;
        envelope.request.check().map(|()| envelope.request)
    }

    #[test]
    fn requests_are_lines_of_json() {
        assert_eq!(parse(r#"{"request": {"verb": "info"}}"#), Ok(Request::Info));
        let line = r#"{"token": "x", "request":
            {"verb": "add", "table": "bad", "address": "192.0.2.0/24"}}"#;
        let entry =
            Entry { table: "bad".into(), anchor: String::new(), address: "192.0.2.0/24".into() };
        assert_eq!(parse(line), Ok(Request::Add(entry)));
    }

    #[test]
    fn unknown_verbs_and_fields_are_refused() {
        for line in [
            r#"{"request": {"verb": "shell", "command": "id"}}"#,
            r#"{"request": {"verb": "kill", "id": "1", "creator": "1", "force": true}}"#,
            r#"{"request": {"verb": "info"}, "uid": 0}"#,
            "[]",
            "",
        ] {
            assert!(parse(line).is_err(), "{line}");
        }
    }

    #[test]
    fn no_field_is_an_option_or_a_name_to_look_up() {
        let table = |table: &str, anchor: &str| {
            Request::Table(Table { table: table.into(), anchor: anchor.into() }).check()
        };
        assert!(table("bad_hosts.v4", "f2b/sshd").is_ok());
        for name in ["", "-F", "a b", "a\nb", &"a".repeat(32)] {
            assert!(table(name, "").is_err(), "{name}");
        }
        for path in ["-a", "f2b/-x", "a b", "$(id)"] {
            assert!(table("bad", path).is_err(), "{path}");
        }
        for address in ["example.com", "self", "em0", "-x", "192.0.2.1/33", "!", "(em0)"] {
            let entry = Entry { table: "t".into(), anchor: "".into(), address: address.into() };
            assert!(Request::Add(entry).check().is_err(), "{address}");
        }
        for packet in ["-f /etc/shadow", "", "  ", "in em0\n-f"] {
            assert!(Request::Explain { packet: packet.into() }.check().is_err(), "{packet}");
        }
        for (id, creator) in [("", "1"), ("xyz", "1"), ("1", "-1"), ("12345678123456789", "1")] {
            let kill = Request::Kill { id: id.into(), creator: creator.into() };
            assert!(kill.check().is_err(), "{id} {creator}");
        }
    }

    #[test]
    fn each_change_needs_a_writer() {
        let rules = String::new;
        for request in [
            Request::Confirm,
            Request::Revert,
            Request::Diff { rules: rules() },
            Request::Load { rules: rules(), seconds: 60, write: false },
            Request::Kill { id: "1".into(), creator: "1".into() },
        ] {
            assert_eq!(request.needs(), Some(Role::Writer), "{request:?}");
        }
        assert_eq!(Request::States.needs(), None);
    }

    #[test]
    fn a_load_from_the_page_is_always_on_trial() {
        let load = |seconds| Request::Load { rules: "".into(), seconds, write: false }.check();
        assert!(load(0).is_err());
        assert!(load(9).is_err());
        assert!(load(60).is_ok());
    }
}
