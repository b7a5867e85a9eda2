//! The states that match a filter, in order, a page at a time.
//!
//! A filter may hold millions of states, so the page gets a part. The states are read one by one,
//! and only the lines that the page may need stay in memory.

use std::fmt;
use std::io;
use std::sync::Arc;

use axum::Json;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::de::{DeserializeSeed, Deserializer, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};

use super::access::Viewer;
use super::api::error;
use super::broker::Failure;
use super::serve::Server;
use crate::request::Request;

/// Maximum number of matching states that are kept, and sorted.
const MAX_KEPT: usize = 100_000;
/// Maximum number of states in an answer.
const MAX_ANSWER: usize = 500;

/// The part of the states that the page wants.
#[derive(Debug, Deserialize)]
pub struct Part {
    /// Words that a state's line must have.
    #[serde(default)]
    filter: String,
    /// The column to sort by; without one, the filter's order.
    #[serde(default)]
    sort: Option<Column>,
    #[serde(default)]
    descending: bool,
    #[serde(default)]
    offset: usize,
    #[serde(default = "default_limit")]
    limit: usize,
}

fn default_limit() -> usize {
    100
}

/// A column to sort by.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Column {
    Age,
    Bytes,
    Expires,
    Interface,
    Packets,
    Protocol,
    Rule,
}

/// A state as pfctl prints it, with the fields that the page shows.
#[derive(Debug, Deserialize)]
struct PrintedState {
    id: String,
    creatorid: String,
    interface: String,
    protocol: String,
    direction: String,
    wire: [End; 2],
    stack: [End; 2],
    source: Peer,
    destination: Peer,
    age: u64,
    expires_in: u64,
    packets: [u64; 2],
    bytes: [u64; 2],
    rule: Option<RuleRef>,
}

#[derive(Debug, PartialEq, Eq, Deserialize)]
struct End {
    address: String,
    port: u16,
}

#[derive(Debug, Deserialize)]
struct Peer {
    state: String,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct RuleRef {
    anchor: String,
    number: Option<u32>,
}

/// A state of the answer.
#[derive(Debug, Serialize)]
struct Row {
    id: String,
    creator: String,
    interface: String,
    protocol: String,
    direction: String,
    /// Who sent the first packet, and where to. A translated address has the other one in brackets,
    /// as `pfctl -ss` prints it.
    from: String,
    to: String,
    state: String,
    age: u64,
    expires: u64,
    packets: u64,
    bytes: u64,
    rule: Option<RuleRef>,
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.port, self.address.contains(':')) {
            (0, _) => f.write_str(&self.address),
            (port, true) => write!(f, "{}[{port}]", self.address),
            (port, false) => write!(f, "{}:{port}", self.address),
        }
    }
}

impl From<PrintedState> for Row {
    fn from(state: PrintedState) -> Row {
        let name = |end: usize| match state.wire[end] == state.stack[end] {
            true => state.wire[end].to_string(),
            false => format!("{} ({})", state.wire[end], state.stack[end]),
        };
        Row {
            from: name(0),
            to: name(1),
            state: format!("{}:{}", state.source.state, state.destination.state),
            packets: state.packets.iter().sum(),
            bytes: state.bytes.iter().sum(),
            id: state.id,
            creator: state.creatorid,
            interface: state.interface,
            protocol: state.protocol,
            direction: state.direction,
            age: state.age,
            expires: state.expires_in,
            rule: state.rule,
        }
    }
}

impl Row {
    /// Returns the text that the words of a filter are looked for in.
    fn line(&self) -> String {
        let rule = match &self.rule {
            Some(RuleRef { anchor, number: Some(number) }) => format!("rule={anchor}@{number}"),
            _ => String::new(),
        };
        let Row { interface, protocol, direction, from, to, state, .. } = self;
        format!("{direction} {interface} {protocol} {from} {to} {state} {rule} ").to_lowercase()
    }

    /// Compares two states by a column.
    fn compare(&self, other: &Row, column: Column) -> std::cmp::Ordering {
        match column {
            Column::Age => self.age.cmp(&other.age),
            Column::Bytes => self.bytes.cmp(&other.bytes),
            Column::Expires => self.expires.cmp(&other.expires),
            Column::Interface => self.interface.cmp(&other.interface),
            Column::Packets => self.packets.cmp(&other.packets),
            Column::Protocol => self.protocol.cmp(&other.protocol),
            Column::Rule => self.rule.cmp(&other.rule),
        }
    }
}

/// The answer.
#[derive(Debug, Serialize)]
pub struct States {
    /// Number of all states.
    total: usize,
    /// Number of states that match the filter.
    matching: usize,
    /// Number of matching states that were kept, and among which the order was made.
    sorted: usize,
    /// The part that the page wants.
    states: Vec<Row>,
}

/// Answers with the states that the page wants.
pub async fn read(
    State(server): State<Arc<Server>>,
    _: Viewer,
    Query(part): Query<Part>,
) -> Result<Json<States>, Response> {
    let Ok(_turn) = server.readers_of_states.acquire().await else {
        return Err(error(StatusCode::SERVICE_UNAVAILABLE, "skipstep-web ends"));
    };
    let broker = server.broker.clone();
    let work = move || {
        let input = broker.stream(Request::States)?;
        part.choose_from(input).map_err(Failure::from)
    };
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result.map(Json).map_err(IntoResponse::into_response),
        Err(failure) => Err(Failure::from(io::Error::other(failure)).into_response()),
    }
}

impl Part {
    /// Reads all states and returns the wanted ones.
    ///
    /// # Errors
    /// Fails if the input is cut off or is not a list of states.
    fn choose_from(&self, input: impl io::Read) -> io::Result<States> {
        let words: Vec<String> =
            self.filter.split_whitespace().map(|word| word.to_lowercase()).collect();
        let mut chosen = Chosen { words, total: 0, matching: 0, rows: Vec::new() };
        let mut input = serde_json::Deserializer::from_reader(input);
        chosen.deserialize_from(&mut input)?;
        let Chosen { total, matching, mut rows, .. } = chosen;
        if let Some(column) = self.sort {
            rows.sort_by(|a, b| match self.descending {
                true => b.compare(a, column),
                false => a.compare(b, column),
            });
        }
        let sorted = rows.len();
        let limit = self.limit.min(MAX_ANSWER);
        let states = rows.into_iter().skip(self.offset).take(limit).collect();
        Ok(States { total, matching, sorted, states })
    }
}

/// The matching states so far.
struct Chosen {
    words: Vec<String>,
    total: usize,
    matching: usize,
    rows: Vec<Row>,
}

impl Chosen {
    fn deserialize_from<'de, D>(&mut self, input: D) -> io::Result<()>
    where
        D: Deserializer<'de, Error = serde_json::Error>,
    {
        DeserializeSeed::deserialize(self, input).map_err(io::Error::from)
    }

    fn add(&mut self, state: PrintedState) {
        self.total += 1;
        let row = Row::from(state);
        let line = row.line();
        if !self.words.iter().all(|word| has_word(&line, word)) {
            return;
        }
        self.matching += 1;
        if self.rows.len() < MAX_KEPT {
            self.rows.push(row);
        }
    }
}

/// True if the line has the word. The word of a rule must match whole, so that rule 1 is not 12.
fn has_word(line: &str, word: &str) -> bool {
    match word.starts_with("rule=") {
        true => line.contains(&format!("{word} ")),
        false => line.contains(word),
    }
}

impl<'de> DeserializeSeed<'de> for &mut Chosen {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, input: D) -> Result<(), D::Error> {
        input.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for &mut Chosen {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of states")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut states: A) -> Result<(), A::Error> {
        while let Some(state) = states.next_element()? {
            self.add(state);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn printed(index: u16) -> Value {
        let end = |address: &str, port: u16| json!({"address": address, "port": port});
        json!({
            "id": format!("{index:016x}"), "creatorid": "1", "interface": "all",
            "protocol": "tcp", "direction": "in", "age": index, "expires_in": 90,
            "wire": [end("192.0.2.7", index), end("198.51.100.1", 80)],
            "stack": [end("192.0.2.7", index), end("10.0.0.1", 8080)],
            "source": {"state": "ESTABLISHED"}, "destination": {"state": "SYN_SENT"},
            "packets": [1, 2], "bytes": [100, index],
            "rule": {"anchor": "", "number": index % 20, "old": null},
            "tag": null,
        })
    }

    fn part(query: Value) -> Part {
        serde_json::from_value(query).unwrap()
    }

    fn choose(query: Value) -> States {
        let states: Vec<Value> = (1..=300).map(printed).collect();
        let text = serde_json::to_string_pretty(&states).unwrap();
        part(query).choose_from(text.as_bytes()).unwrap()
    }

    #[test]
    fn a_part_in_order() {
        let answer = choose(json!({"sort": "bytes", "descending": true, "offset": 2, "limit": 3}));
        assert_eq!((answer.total, answer.matching), (300, 300));
        let bytes: Vec<u64> = answer.states.iter().map(|row| row.bytes).collect();
        assert_eq!(bytes, [398, 397, 396]);
        assert_eq!(answer.states[0].to, "198.51.100.1:80 (10.0.0.1:8080)");
        assert_eq!(answer.states[0].state, "ESTABLISHED:SYN_SENT");
    }

    #[test]
    fn a_state_must_have_all_words() {
        assert_eq!(choose(json!({"filter": "TCP established :80"})).matching, 300);
        assert_eq!(choose(json!({"filter": "udp"})).matching, 0);
        assert_eq!(choose(json!({"filter": "192.0.2.7:299"})).matching, 1);
        assert_eq!(choose(json!({"filter": "rule=@1"})).matching, 15, "and not those of rule 12");
    }

    #[test]
    fn a_list_that_is_cut_off_is_an_error() {
        let text = serde_json::to_string(&[printed(1), printed(2)]).unwrap();
        for length in [0, 1, text.len() / 2, text.len() - 1] {
            assert!(part(json!({})).choose_from(&text.as_bytes()[..length]).is_err(), "{length}");
        }
        assert_eq!(part(json!({})).choose_from(&b"[]"[..]).unwrap().total, 0);
    }
}
