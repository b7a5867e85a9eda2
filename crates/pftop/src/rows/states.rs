//! Rows of states.

use std::net::IpAddr;
use std::rc::Rc;

use pfctl::drops::rules::RulesInForce;
use pfctl::show::states::{Ends, ends, peer_states, protocol_name, summary, with_port};
use skipstep_ruleset::{Direction, Family};
use skipstep_views::StateView;

use super::{arrange, byte_rate, bytes, largest, number, rate};
use crate::number::span;
use crate::order::Order;
use crate::speed::{Counted, Speed};
use crate::table::{Cell, Column, Rows, Subject};
use crate::view::View;

/// A column of a state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Field {
    Protocol,
    Direction,
    Source,
    Destination,
    Translated,
    State,
    Age,
    Expiry,
    Packets,
    Bytes,
    Rate,
    Peak,
    Average,
    Rule,
}

impl Field {
    const fn column(self) -> Column {
        match self {
            Field::Protocol => Column::left("PR", 4, 9).later(),
            Field::Direction => Column::left("DIR", 3, 3),
            Field::Source => Column::left("SRC", 20, 45).later(),
            Field::Destination => Column::left("DEST", 20, 45).later(),
            Field::Translated => Column::left("GW", 20, 45).later(),
            Field::State => Column::left("STATE", 5, 23),
            Field::Age => Column::right("AGE", 5, 9),
            Field::Expiry => Column::right("EXP", 5, 9),
            Field::Packets => Column::right("PKTS", 5, 10),
            Field::Bytes => Column::right("BYTES", 5, 12),
            Field::Rate => Column::right("RATE", 5, 10),
            Field::Peak => Column::right("PEAK", 5, 10),
            Field::Average => Column::right("AVG", 5, 10),
            Field::Rule => Column::right("RULE", 5, 20),
        }
    }
}

/// Returns the fields of a view. The fields behind the last one that fits are not shown.
fn fields(view: View) -> &'static [Field] {
    use Field::*;
    match view {
        View::Long => &[
            Protocol,
            Direction,
            Source,
            Destination,
            Translated,
            State,
            Age,
            Expiry,
            Packets,
            Bytes,
            Rate,
            Peak,
            Average,
            Rule,
        ],
        View::State => &[
            Protocol,
            Direction,
            Source,
            Destination,
            State,
            Age,
            Expiry,
            Packets,
            Bytes,
            Rate,
            Peak,
            Average,
            Rule,
            Translated,
        ],
        View::Time => &[
            Protocol,
            Direction,
            Source,
            Destination,
            Age,
            Expiry,
            Packets,
            Bytes,
            State,
            Rate,
            Peak,
            Average,
            Rule,
            Translated,
        ],
        View::Size => &[
            Protocol,
            Direction,
            Source,
            Destination,
            Packets,
            Bytes,
            State,
            Age,
            Expiry,
            Rate,
            Peak,
            Average,
            Rule,
            Translated,
        ],
        View::Speed => &[
            Protocol,
            Direction,
            Source,
            Destination,
            Rate,
            Peak,
            Average,
            Packets,
            Bytes,
            State,
            Age,
            Expiry,
            Rule,
            Translated,
        ],
        _ => &[Protocol, Direction, Source, Destination, State, Age, Expiry, Packets, Bytes],
    }
}

/// States, of which a filter has chosen some.
pub struct States {
    states: Vec<StateView>,
    speeds: Vec<Speed>,
    rules: Rc<RulesInForce>,
    /// Now, on the clock of the states, in seconds.
    now: u32,
    fields: &'static [Field],
    columns: Vec<Column>,
    /// Numbers of the chosen states.
    rows: Vec<u32>,
}

impl States {
    /// Makes the rows of a view. `speeds` has the rates of all `states`, and `chosen` the numbers
    /// of the states to show.
    pub fn new(
        view: View,
        states: Vec<StateView>,
        speeds: Vec<Speed>,
        rules: Rc<RulesInForce>,
        now: u32,
        chosen: Vec<u32>,
    ) -> States {
        let fields = fields(view);
        let columns = fields.iter().map(|field| field.column()).collect();
        States { states, speeds, rules, now, fields, columns, rows: chosen }
    }

    fn row(&self, place: usize) -> (usize, &StateView) {
        let row = self.rows[place] as usize;
        (row, &self.states[row])
    }

    /// Returns the bytes a second over the whole life of a state.
    fn average(&self, state: &StateView) -> u64 {
        let age = self.now.saturating_sub(state.created_at).max(1);
        counted(state).bytes / u64::from(age)
    }
}

/// Returns the counters of a state in both directions.
pub fn counted(state: &StateView) -> Counted {
    Counted::sum(state.packets, state.bytes)
}

/// The addresses and ports of a state, seen from the peer that made it.
pub struct Path {
    /// The peer that made the state.
    pub source: (IpAddr, u16),
    /// The peer that it wants to reach.
    pub destination: (IpAddr, u16),
    /// The address that takes the place of one of the two.
    pub translated: Option<(IpAddr, u16)>,
}

/// Returns the path of a state.
pub fn path(state: &StateView) -> Path {
    let Ends { left, right, is_outbound } = ends(state);
    let (from, to) = if is_outbound { (left, right) } else { (right, left) };
    let translated = [from, to].into_iter().find(|end| end.outer != end.inner);
    Path { source: from.inner, destination: to.inner, translated: translated.map(|end| end.outer) }
}

/// Prints an endpoint. If it is too long, the address is cut off, and not the port.
fn endpoint((address, port): (IpAddr, u16), width: usize) -> String {
    let family = Family::from_address(address);
    let whole = with_port(&address.to_string(), port, family);
    let more = whole.len().saturating_sub(width);
    if more == 0 {
        return whole;
    }
    let mut host = address.to_string();
    host.truncate(host.len().saturating_sub(more + 2));
    with_port(&(host + ".."), port, family)
}

impl Rows for States {
    fn columns(&self) -> &[Column] {
        &self.columns
    }

    fn len(&self) -> usize {
        self.rows.len()
    }

    fn arrange(&mut self, order: Order, reverse: bool, end: usize) {
        let (states, speeds) = (&self.states, &self.speeds);
        let by_counter =
            |value: fn(Counted) -> u64| largest(move |row| value(counted(&states[row])));
        let by_end = |key: fn(Path) -> (IpAddr, u16)| {
            move |a: u32, b: u32| {
                key(path(&states[a as usize])).cmp(&key(path(&states[b as usize])))
            }
        };
        let by_port = |key: fn(Path) -> (IpAddr, u16)| {
            move |a: u32, b: u32| {
                key(path(&states[a as usize])).1.cmp(&key(path(&states[b as usize])).1)
            }
        };
        let rows = &mut self.rows;
        match order {
            Order::Bytes => {
                arrange(rows, reverse, end, Some(&by_counter(|counted| counted.bytes)));
            }
            Order::Packets => {
                arrange(rows, reverse, end, Some(&by_counter(|counted| counted.packets)));
            }
            Order::Age => {
                let oldest = |a: u32, b: u32| {
                    states[a as usize].created_at.cmp(&states[b as usize].created_at)
                };
                arrange(rows, reverse, end, Some(&oldest));
            }
            Order::Expiry => {
                arrange(rows, reverse, end, Some(&largest(|row| states[row].expires_at)));
            }
            Order::Source => arrange(rows, reverse, end, Some(&by_end(|path| path.source))),
            Order::Destination => {
                arrange(rows, reverse, end, Some(&by_end(|path| path.destination)));
            }
            Order::SourcePort => arrange(rows, reverse, end, Some(&by_port(|path| path.source))),
            Order::DestinationPort => {
                arrange(rows, reverse, end, Some(&by_port(|path| path.destination)));
            }
            Order::Rate => arrange(rows, reverse, end, Some(&largest(byte_rate(speeds)))),
            Order::Peak => arrange(rows, reverse, end, Some(&largest(|row| speeds[row].peak))),
            _ => arrange(rows, reverse, end, None),
        }
    }

    fn cell(&self, place: usize, column: usize, width: usize) -> Cell {
        let (row, state) = self.row(place);
        let (counted, speed) = (counted(state), self.speeds[row]);
        Cell::plain(match self.fields[column] {
            Field::Protocol => protocol_name(state.protocol),
            Field::Direction => direction(state.direction).to_owned(),
            Field::Source => endpoint(path(state).source, width),
            Field::Destination => endpoint(path(state).destination, width),
            Field::Translated => {
                path(state).translated.map(|end| endpoint(end, width)).unwrap_or_default()
            }
            Field::State => peers(state, width),
            Field::Age => span(self.now.saturating_sub(state.created_at), width),
            Field::Expiry => span(state.expires_at.saturating_sub(self.now), width),
            Field::Packets => number(counted.packets, width),
            Field::Bytes => bytes(counted.bytes, width),
            Field::Rate => rate(speed.bytes, width, 1024),
            Field::Peak => rate(speed.peak, width, 1024),
            Field::Average => bytes(self.average(state), width),
            Field::Rule => {
                state.rule.as_ref().map_or_else(|| "*".to_owned(), |rule| rule.to_string())
            }
        })
    }

    fn details(&self, place: usize) -> [String; 2] {
        let (_, state) = self.row(place);
        let rule = match &state.rule {
            Some(rule) => match self.rules.describe(rule) {
                Some(described) => format!("rule {described}"),
                None => format!("rule {rule}"),
            },
            None => "no rule in force".to_owned(),
        };
        let [packets, bytes] = [state.packets, state.bytes].map(|[to, fro]| format!("{to}:{fro}"));
        let tag = state.tag.as_ref().map(|tag| format!(", tag {tag}")).unwrap_or_default();
        [
            text(state),
            format!("{rule}, {packets} packets, {bytes} bytes{tag}, id {:016x}", state.id),
        ]
    }

    fn subject(&self, place: usize) -> Subject {
        let (_, state) = self.row(place);
        Subject::State { id: state.id, text: text(state), rule: state.rule.clone() }
    }
}

/// Returns the state as `pfctl -ss` prints it, with single blanks.
fn text(state: &StateView) -> String {
    let text = summary(state, &|address| address.to_string());
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns the name of a direction.
pub fn direction(direction: Direction) -> &'static str {
    match direction {
        Direction::In => "In",
        Direction::Out => "Out",
    }
}

/// Prints the states of the peers, the peer that made the state first. A narrow column has their
/// numbers.
fn peers(state: &StateView, width: usize) -> String {
    let (maker, other) = (state.src.state, state.dst.state);
    let names = peer_states(state.protocol, maker, other);
    if names.len() <= width { names } else { format!("{maker}:{other}") }
}
