//! Reads scenario files (docs/howto/scenarios.md).

mod block;
mod carried;
mod expect;
mod host;
mod packet;
mod pf_words;

pub use crate::line::Error;

use std::net::IpAddr;

use ipnet::IpNet;
use skipstep_model::{Draw, TrialTime};
use skipstep_ruleset::interface::Host;
use skipstep_ruleset::{Direction, Reason, TableEntry, TableName};
use skipstep_views::{Edit, TableEdit};

use self::block::{Piece, Placed};
use self::expect::{list, rule_id};
use self::host::interfaces;
use crate::case::{Action, Arrival, Case, Check, File, RuleCheck, Rules, StatusCheck, Step};
use crate::expect::Expectation;
use crate::kill::Target;
use crate::limiter::LimiterCheck;
use crate::line::{Fault, Line, OrExample, Parsed, Word, number, pair, words};
use crate::look::unhex;
use crate::names;
use crate::packet::Packet;
use crate::traffic::TrafficCheck;

/// Size limit of a file, in bytes.
const LARGEST: usize = 1 << 23;

/// Reads a scenario file. `name` is its name in messages.
///
/// # Errors
/// Fails at the first line that does not follow the notation, or if the file is too large.
pub fn file(text: &str, name: &str) -> Result<File, Error> {
    if text.len() > LARGEST {
        let message = format!("file is too large: {} bytes, at most {LARGEST}", text.len());
        return Err(Fault::new(message, 1, 1).at(name, 1, ""));
    }
    let lines: Vec<&str> = text.lines().collect();
    let mut reader = Reader { lines: &lines, at: 0, file: File::default(), title: None };
    match reader.read() {
        Ok(()) => Ok(reader.file),
        Err((at, fault)) => {
            Err(fault.at(name, at as u32 + 1, lines.get(at).copied().unwrap_or_default()))
        }
    }
}

/// Most examples that [`completed`] puts into a line.
const MOST_EXAMPLES: usize = 12;

/// Reads one packet in the notation of steps: `in em0 tcp 10.0.0.1:4000 > 10.0.0.2:22 S`, or in
/// pf.conf's words.
///
/// # Errors
/// Fails if the text does not follow the notation.
pub fn arrival(text: &str) -> Result<Arrival, Error> {
    let read = || {
        let all = words(text)?;
        let mut line = Line::new(&all, text.chars().count());
        let direction = match line.peek() {
            Some("in") => Direction::In,
            Some("out") => Direction::Out,
            _ => return Err(line.missing("the direction (in or out)")).or_example("in"),
        };
        line.next();
        let arrival = read_arrival(direction, &mut line)?;
        line.finish().map(|()| arrival)
    };
    read().map_err(|fault| fault.at("packet", 1, text))
}

/// Returns a line that [`arrival`] reads: `text` with examples in place of wrong and missing words.
/// Returns `None` if the text is too far from a packet.
pub fn completed(text: &str) -> Option<String> {
    let mut text = text.to_owned();
    for _ in 0..MOST_EXAMPLES {
        match arrival(&text) {
            Ok(_) => return Some(text),
            Err(error) => text = error.example?,
        }
    }
    None
}

const NO_RULES: &str = "there are no rules yet: a `rules { … }` block comes first";

struct Reader<'a> {
    lines: &'a [&'a str],
    /// Index of the line being read.
    at: usize,
    file: File,
    /// Title of the case whose rules follow.
    title: Option<String>,
}

impl Reader<'_> {
    fn read(&mut self) -> Placed<()> {
        let mut routes = None;
        while let Some(text) = self.lines.get(self.at) {
            match first_word(text) {
                "interfaces" => {
                    let pieces = self.block()?;
                    self.file.host =
                        Some(Host { interfaces: interfaces(&pieces)?, routes: Vec::new() });
                }
                "routes" => routes = Some(self::host::routes(&self.block()?)?),
                "rules" => {
                    let rules = rules(&self.block()?);
                    let title = self.title.take();
                    self.file.cases.push(Case { title, rules, ..Case::default() });
                }
                "file" => self.text_file()?,
                "load" => self.load()?,
                _ => {
                    let at = self.at;
                    self.line(text).map_err(|fault| (at, fault))?;
                    self.at += 1;
                }
            }
        }
        if let Some(host) = &mut self.file.host {
            host.routes = routes.unwrap_or_else(|| crate::host::connected(&host.interfaces));
        }
        Ok(())
    }

    /// Reads `file "name" { … }`, which belongs to the preceding case.
    fn text_file(&mut self) -> Placed<()> {
        let (at, (first, name)) = (self.at, self.name_of_block()?);
        let Some(name) = name else { return Err((at, first.fault("a name is missing"))) };
        let pieces = self.block()?;
        let Some(case) = self.file.cases.last_mut() else {
            return Err((at, first.fault("there are no rules yet that could name it")));
        };
        let text = pieces.iter().map(|piece| piece.text.trim()).collect::<Vec<_>>().join("\n");
        case.files.push((name, text + "\n"));
        Ok(())
    }

    /// Reads the step `load [anchor] { … }`.
    fn load(&mut self) -> Placed<()> {
        let (at, (first, path)) = (self.at, self.name_of_block()?);
        let rules = rules(&self.block()?);
        let Some(case) = self.file.cases.last_mut() else {
            return Err((at, first.fault(NO_RULES)));
        };
        let action = Action::Load(path.unwrap_or_default(), rules);
        case.steps.push(Step { line: at as u32 + 1, action });
        Ok(())
    }

    /// Returns the words before the brace of the block that begins on this line: its kind, and its
    /// name if it has one.
    fn name_of_block(&self) -> Placed<(Word, Option<String>)> {
        let at = self.at;
        let head = self.lines[at].split_once('{').map_or(self.lines[at], |(head, _)| head);
        let read = || {
            let all = words(head)?;
            let mut left = Line::new(&all, head.chars().count());
            let first = left.word("a block")?.clone();
            let name = match left.peek() {
                Some(_) => Some(left.word("a name")?.text.clone()),
                None => None,
            };
            left.finish().map(|()| (first, name))
        };
        read().map_err(|fault| (at, fault))
    }

    /// Reads the block that begins on this line.
    fn block(&mut self) -> Placed<Vec<Piece>> {
        let (pieces, next) = block::read(self.lines, self.at)?;
        self.at = next;
        Ok(pieces)
    }

    /// Reads a line that is not part of a block.
    fn line(&mut self, text: &str) -> Parsed<()> {
        let all = words(text)?;
        let arrow = all.iter().position(|word| word.text == "=>").unwrap_or(all.len());
        let end = all.get(arrow).map_or(text.chars().count(), |word| word.column - 1);
        let mut left = Line::new(&all[..arrow], end);
        let mut right = all.get(arrow + 1..).map(|words| Line::new(words, text.chars().count()));
        if arrow == 0 {
            let Some(right) = &mut right else {
                return Ok(());
            };
            return self.more_expected(&all[0], right);
        }
        let first = left.word("a step")?;
        if first.text == "scenario" {
            self.title = Some(left.word("a title")?.text.clone());
            return left.finish();
        }
        let line = self.at as u32 + 1;
        let Some(case) = self.file.cases.last_mut() else {
            return Err(first.fault(NO_RULES));
        };
        let action = step(first, &mut left, right.as_mut())?;
        left.finish()?;
        if let Some(right) = &mut right {
            right.finish()?;
        }
        case.steps.push(Step { line, action });
        Ok(())
    }

    /// Reads a line that begins with `=>`: more expectations of the preceding packet.
    fn more_expected(&mut self, arrow: &Word, right: &mut Line) -> Parsed<()> {
        let last = self.file.cases.last_mut().and_then(|case| case.steps.last_mut());
        match last.map(|step| &mut step.action) {
            Some(Action::Packet(_, expected) | Action::Forward(_, expected)) => {
                expect::expectation(right, expected)
            }
            _ => Err(arrow.fault("there is no packet before it")),
        }
    }
}

/// Returns the text of a block as rules.
fn rules(pieces: &[Piece]) -> Rules {
    let lines = pieces.iter().map(|piece| piece.line as u32 + 1).collect();
    let text: Vec<&str> = pieces.iter().map(|piece| piece.text.trim()).collect();
    Rules { text: text.join("\n"), lines }
}

fn first_word(text: &str) -> &str {
    let text = text.trim_start();
    let end = text.find(|c: char| c.is_whitespace() || "{#".contains(c)).unwrap_or(text.len());
    &text[..end]
}

fn step(first: &Word, left: &mut Line, right: Option<&mut Line>) -> Parsed<Action> {
    match first.text.as_str() {
        "in" => Ok(Action::Packet(read_arrival(Direction::In, left)?, expected(right)?)),
        "out" => Ok(Action::Packet(read_arrival(Direction::Out, left)?, expected(right)?)),
        "forward" => {
            left.expect("out")?;
            Ok(Action::Forward(left.word("an interface")?.text.clone(), expected(right)?))
        }
        "wait" => {
            let seconds = left.number("a number of seconds")?;
            let expired = match right {
                None => None,
                Some(right) => {
                    right.expect("expired")?;
                    Some(list(right, "a state's number", number)?)
                }
            };
            Ok(Action::Wait { seconds, expired })
        }
        "kill" => match target(left)? {
            Some(target) => Ok(Action::KillSelected(target)),
            None => list(left, "a state's number", number).map(Action::Kill),
        },
        "table" => table_edit(left).map(Action::Table),
        "flush" => {
            let path = left.peek().is_some().then(|| left.word("the path of an anchor"));
            Ok(Action::Flush(path.transpose()?.map_or_else(String::new, |word| word.text.clone())))
        }
        "trial" => {
            let seconds = left.number("a number of seconds")?;
            Ok(Action::Trial(TrialTime { seconds, keeps_states: left.take("keep-states") }))
        }
        "confirm" => Ok(Action::Confirm),
        "revert" => Ok(Action::Revert),
        "random" => random(left).map(Action::Random),
        "address" | "link" | "interface" | "group" | "route" => {
            self::host::change(&first.text, left).map(Action::Host)
        }
        "check" => Ok(Action::Check(check(left)?)),
        other => Err(first.fault(format!(
            "`{other}` is not a step: use in, out, forward, wait, kill, table, flush, trial, \
             confirm, revert, random, address, link, interface, group, route, check, or a block \
             (interfaces, routes, rules, file, load)"
        ))),
    }
}

/// Reads the selection of states behind `kill`, or returns `None` if numbers follow.
fn target(left: &mut Line) -> Parsed<Option<Target>> {
    if left.take("from") {
        let from = left.value("an address or a network", network)?;
        let to = left.take("to").then(|| left.value("an address or a network", network));
        return Ok(Some(Target::Hosts(from, to.transpose()?)));
    }
    if left.take("label") {
        return Ok(Some(Target::Label(left.word("a label")?.text.clone())));
    }
    if left.take("gateway") {
        return Ok(Some(Target::Gateway(left.value("an address or a network", network)?)));
    }
    if left.take("key") {
        let protocol = left.value("a protocol's number", number)?;
        let mut end = || left.value("an address with a port", packet::address_port);
        return Ok(Some(Target::Key(protocol, end()?, end()?)));
    }
    Ok(None)
}

/// Parses an address or a network, and clears host bits.
fn network(text: &str) -> Option<IpNet> {
    let address = || text.parse().ok().map(|address: IpAddr| IpNet::from(address));
    text.parse().ok().or_else(address).map(|net: IpNet| net.trunc())
}

/// Reads `NAME add|delete|replace ENTRIES` behind `table`.
fn table_edit(left: &mut Line) -> Parsed<TableEdit> {
    let table = left.word("a table")?.text.as_str();
    let (anchor, name) = table.rsplit_once('/').unwrap_or(("", table));
    let edit = left.value("add, delete or replace", |word| match word {
        "add" => Some(Edit::Add),
        "delete" => Some(Edit::Delete),
        "replace" => Some(Edit::Replace),
        _ => None,
    })?;
    let mut entries = Vec::new();
    while left.peek().is_some() {
        entries.push(left.value("an address or a network, perhaps behind `!`", table_entry)?);
    }
    Ok(TableEdit { table: TableName::new(anchor, name), edit, entries })
}

fn table_entry(text: &str) -> Option<TableEntry> {
    let (negated, net) = match text.strip_prefix('!') {
        Some(net) => (true, net),
        None => (false, text),
    };
    Some(TableEntry { negated, ..TableEntry::from(network(net)?) })
}

fn random(left: &mut Line) -> Parsed<Draw> {
    if left.take("syncookie-key") {
        let key = |text: &str| unhex(text)?.try_into().ok();
        return left.value("16 bytes in hexadecimal", key).map(Draw::SyncookieKey);
    }
    let draw = if left.take("sequence") {
        Draw::Sequence
    } else if left.take("timestamp") {
        Draw::Timestamp
    } else {
        Draw::Bounded
    };
    left.number("a 32-bit number").map(draw)
}

fn expected(right: Option<&mut Line>) -> Parsed<Expectation> {
    let mut expected = Expectation::default();
    if let Some(right) = right {
        expect::expectation(right, &mut expected)?;
    }
    Ok(expected)
}

fn read_arrival(direction: Direction, line: &mut Line) -> Parsed<Arrival> {
    let interface = interface(line)?;
    let mut arrival = Arrival::new(direction, interface, Packet::Hex(Vec::new()));
    while let Some(word) = line.peek()
        && carried::read(&mut arrival, word, line)?
    {}
    arrival.packet = packet::packet(line, Some(&mut arrival))?;
    Ok(arrival)
}

/// Reads the name of an interface, perhaps behind `on`.
fn interface(line: &mut Line) -> Parsed<String> {
    let on = line.take("on");
    let example = if on { "eth0" } else { "on eth0" };
    match line.peek() {
        Some(word) if !on && names::begins_packet(word) => Err(line.missing("the interface")),
        _ => line.word("the interface").map(|word| word.text.clone()),
    }
    .or_example(example)
}

fn check(line: &mut Line) -> Parsed<Check> {
    let what = line.word("the owner of the counters")?;
    match what.text.as_str() {
        "rule" => {
            let rule = rule_id(line)?;
            Ok(Check::Rule(Some(rule), rule_check(line)?))
        }
        "default" => Ok(Check::Rule(None, rule_check(line)?)),
        "status" => Ok(Check::Status(status_check(line)?)),
        "state-limiter" => Ok(Check::Limiter(LimiterCheck::parse(false, line)?)),
        "source-limiter" => Ok(Check::Limiter(LimiterCheck::parse(true, line)?)),
        "interface" => Ok(Check::Traffic(TrafficCheck::parse_interface(line)?)),
        "table" => Ok(Check::Traffic(TrafficCheck::parse_table(line)?)),
        _ => Err(what.fault(
            "expected rule, default, status, state-limiter, source-limiter, interface or table",
        )),
    }
}

fn rule_check(line: &mut Line) -> Parsed<RuleCheck> {
    let mut check = RuleCheck::default();
    while let Some(word) = line.next() {
        match word.text.as_str() {
            "," => {}
            "evaluations" => check.evaluations = Some(line.number("a number")?),
            "packets" => check.packets = Some(line.value("two numbers as 1:2", pair)?),
            "bytes" => check.bytes = Some(line.value("two numbers as 1:2", pair)?),
            "states" => check.states = Some(line.number("a number")?),
            "created" => check.created = Some(line.number("a number")?),
            other => return Err(word.fault(format!("`{other}` is not a counter of a rule"))),
        }
    }
    Ok(check)
}

fn status_check(line: &mut Line) -> Parsed<StatusCheck> {
    let mut check = StatusCheck::default();
    while let Some(word) = line.next() {
        match word.text.as_str() {
            "," => {}
            "states" => check.states = Some(line.number("a number")?),
            "searches" => check.searches = Some(line.number("a number")?),
            "inserts" => check.inserts = Some(line.number("a number")?),
            "removals" => check.removals = Some(line.number("a number")?),
            name => match Reason::by_name(name) {
                Some(reason) => check.reasons.push((reason, line.number("a number")?)),
                None => return Err(word.fault(format!("`{name}` is not a counter"))),
            },
        }
    }
    Ok(check)
}
