//! Writes a program as pf.conf. Every statement of each application becomes a few rules behind a
//! comment. Packets for which a filter succeeded get a tag, which excludes them from the filter's
//! later rules.

use std::collections::HashMap;
use std::fmt::Write;
use std::net::Ipv4Addr;

use super::{Action, Filter, Program, Statement, Target, Tests};
use crate::messages::Messages;
use crate::ranges::{ADDRESS, PORT, PROTOCOL, Ranges};
use crate::words::{self, TCP, UDP};

/// Most rules that pf may expand all statements to.
const MOST_RULES: u64 = 1_000_000;
/// Most logs besides pflog0.
const MOST_LOGS: usize = 15;
/// Fragment offsets, inclusive and in units of 8 bytes, at which a fragment could overwrite a TCP
/// header.
const HEADER_OFFSETS: (u32, u32) = (1, 8);

/// Tags that mark the protocol of packets, for tests on TCP or UDP fields that other packets match
/// too.
const TCP_OR_UDP: &str = "protocol:tcp-or-udp";
const OTHER: &str = "protocol:other";

/// Returns the pf.conf of `program`, which was read from `file`.
pub fn write(program: &Program, file: &str, messages: &mut Messages) -> String {
    let filters: HashMap<&str, &Filter> =
        program.filters.iter().map(|filter| (filter.name.as_str(), filter)).collect();
    let logs = logs(program, messages);
    let mut conf = head(file, &logs);
    let mut rules = 0;
    let is_first = |target: &Target| matches!(target, Target::First);
    let (first, others): (Vec<_>, Vec<_>) =
        program.applications.iter().partition(|application| is_first(&application.on));
    for application in first.into_iter().chain(others) {
        let Some(filter) = filters.get(application.filter.as_str()) else { continue };
        let scope = Scope::new(&application.on);
        let _ = write!(conf, "\n# {}: {} {scope}\n", application.place.line, filter.name);
        if asks_for_other_protocols(filter) {
            conf += &scope.rule("match", "", &format!(" tag \"{OTHER}\""));
            conf += &scope.rule("match", " proto { tcp, udp }", &format!(" tag \"{TCP_OR_UDP}\""));
        }
        let mut writer = Writer { filter, scope, logs: &logs, messages, rules, succeeded: false };
        for (number, statement) in filter.statements.iter().enumerate() {
            let more_follow = number + 1 < filter.statements.len();
            conf += &writer.statement(statement, more_follow);
        }
        rules = writer.rules;
        if rules > MOST_RULES {
            let message = format!("the lists make more than {MOST_RULES} rules");
            messages.error(application.place, message, None);
            break;
        }
    }
    conf
}

/// Returns the number of the pflog for each log host.
fn logs(program: &Program, messages: &mut Messages) -> HashMap<Ipv4Addr, usize> {
    let mut logs = HashMap::new();
    for statement in program.filters.iter().flat_map(|filter| &filter.statements) {
        let Action::Log(host) = statement.action else { continue };
        let next = logs.len() + 1;
        let number = *logs.entry(host).or_insert(next);
        if number > MOST_LOGS {
            let message = format!("pf writes at most {MOST_LOGS} logs");
            messages.error(statement.place, message, Some("log to fewer hosts"));
            break;
        }
    }
    logs
}

fn head(file: &str, logs: &HashMap<Ipv4Addr, usize>) -> String {
    let file = words::comment(file);
    let mut text = format!(
        "# Made of {file} by `pfctl import pcf`. Numbers in comments are lines of that file.\n\
         # Every packet is evaluated on its own: no rule creates a state.\n"
    );
    let mut hosts: Vec<_> = logs.iter().collect();
    hosts.sort_by_key(|(_, number)| **number);
    for (host, number) in hosts {
        let _ = writeln!(text, "# pflog{number} has the packets of `log {host}`.");
    }
    text + "set reassemble yes\npass no state allow-opts\n"
}

/// The packets that an application filters.
struct Scope {
    direction: &'static str,
    interface: String,
    from: Ranges,
    to: Ranges,
}

impl Scope {
    fn new(target: &Target) -> Self {
        let all = || Ranges::all(ADDRESS);
        let on = |name: &str| format!(" on {}", words::interface(name));
        let (direction, interface, from, to) = match target {
            Target::First => ("in", String::new(), all(), all()),
            Target::Incoming(name) => ("in", on(name), all(), all()),
            Target::Outgoing(name) => ("out", on(name), all(), all()),
            Target::Between(from, to) => ("in", String::new(), from.clone(), to.clone()),
        };
        Scope { direction, interface, from, to }
    }

    /// Returns a rule for all these packets.
    fn rule(&self, action: &str, protocols: &str, options: &str) -> String {
        let ends = Ends { from: self.from.clone(), to: self.to.clone(), ..Ends::anywhere() };
        format!("{action} {}{} inet{protocols}{ends}{options}\n", self.direction, self.interface)
    }
}

impl std::fmt::Display for Scope {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (from, to) = (words::hosts(&self.from), words::hosts(&self.to));
        match (self.interface.as_str(), from.as_str(), to.as_str()) {
            ("", "any", "any") => f.write_str("on first"),
            ("", ..) => write!(f, "on {from} to {to}"),
            (interface, ..) => match self.direction {
                "in" => write!(f, "{} incoming", &interface[1..]),
                _ => write!(f, "{} outgoing", &interface[1..]),
            },
        }
    }
}

/// The source and destination of a rule.
struct Ends {
    from: Ranges,
    from_ports: Ranges,
    to: Ranges,
    to_ports: Ranges,
}

impl Ends {
    fn anywhere() -> Self {
        let (address, port) = (|| Ranges::all(ADDRESS), || Ranges::all(PORT));
        Ends { from: address(), from_ports: port(), to: address(), to_ports: port() }
    }

    fn is_empty(&self) -> bool {
        [&self.from, &self.from_ports, &self.to, &self.to_ports].iter().any(|set| set.is_empty())
    }

    /// Returns the number of rules that pf expands the lists to.
    fn rules(&self) -> u64 {
        let addresses = |set| words::rules_for(set, ADDRESS);
        let ports = |set| words::rules_for(set, PORT);
        [addresses(&self.from), ports(&self.from_ports), addresses(&self.to), ports(&self.to_ports)]
            .into_iter()
            .fold(1, u64::saturating_mul)
    }
}

impl std::fmt::Display for Ends {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let from = words::hosts(&self.from) + &words::ports(&self.from_ports);
        let to = words::hosts(&self.to) + &words::ports(&self.to_ports);
        match (from.as_str(), to.as_str()) {
            ("any", "any") => f.write_str(" all"),
            _ => write!(f, " from {from} to {to}"),
        }
    }
}

/// The writer of the statements of one application.
struct Writer<'a, 't> {
    filter: &'a Filter,
    scope: Scope,
    logs: &'a HashMap<Ipv4Addr, usize>,
    messages: &'a mut Messages<'t>,
    /// Number of rules that pf expands the text so far to.
    rules: u64,
    /// True if an earlier statement has the action `succeed`.
    succeeded: bool,
}

impl Writer<'_, '_> {
    fn statement(&mut self, statement: &Statement, more_follow: bool) -> String {
        let mut text = format!("# {}: {}\n", statement.place.line, words::comment(&statement.text));
        if statement.tests.fragments.is_some() {
            self.check_fragments(statement);
            return text + "# (no rule: fragments are reassembled before rules are evaluated)\n";
        }
        if statement.action == Action::Succeed && !more_follow {
            return text + "# (no rule: nothing follows)\n";
        }
        let before = text.len();
        for part in parts(&statement.tests) {
            text += &self.rule(statement, part);
            if self.rules > MOST_RULES {
                return text;
            }
        }
        if text.len() == before {
            text += "# (no rule: no packet matches here)\n";
        }
        self.succeeded |= statement.action == Action::Succeed;
        text
    }

    /// Returns the rule for the packets of `part`, or nothing if there are none.
    fn rule(&mut self, statement: &Statement, part: Part) -> String {
        let (from, to) = (&statement.tests.source, &statement.tests.destination);
        let ends = Ends {
            from: self.scope.from.intersection(from),
            to: self.scope.to.intersection(to),
            from_ports: part.from_ports,
            to_ports: part.to_ports,
        };
        if ends.is_empty() {
            return String::new();
        }
        if part.protocols.contains(0) && part.protocols != Ranges::all(PROTOCOL) {
            let help = "a rule of pf.conf cannot match protocol 0 alone";
            self.messages.error(statement.place, "protocol 0 has no equivalent", Some(help));
            return String::new();
        }
        let protocols = part.protocols.pieces().iter();
        let protocols: u64 = match part.protocols == Ranges::all(PROTOCOL) {
            true => 1,
            false => protocols.map(|(low, high)| u64::from(high - low) + 1).sum(),
        };
        self.rules = self.rules.saturating_add(ends.rules().saturating_mul(protocols));
        if self.rules > MOST_RULES {
            return String::new();
        }
        let Scope { direction, interface, .. } = &self.scope;
        let head = match statement.action {
            Action::Fail => format!("block drop {direction} quick"),
            Action::Succeed => format!("match {direction}"),
            Action::Log(host) => format!("match {direction} log (to pflog{})", self.logs[&host]),
        };
        let protocols = words::protocols(&part.protocols);
        let mut rule = format!("{head}{interface} inet{protocols}{ends}{}", part.flags);
        let succeeded = format!("\"{}:succeeded\"", self.filter.name);
        if part.tagged_other {
            rule += &format!(" tagged \"{OTHER}\"");
        } else if self.succeeded {
            rule += &format!(" ! tagged {succeeded}");
        }
        if statement.action == Action::Succeed {
            rule += &format!(" tag {succeeded}");
        }
        rule + "\n"
    }

    /// Checks that `ipfrag` only protects headers from fragments that would overwrite them.
    fn check_fragments(&mut self, statement: &Statement) {
        let Some((place, offsets)) = &statement.tests.fragments else { return };
        let dangerous = Ranges::union(vec![HEADER_OFFSETS]);
        let help = "pf reassembles fragments before it evaluates rules, so no fragment can \
                    overwrite a header: only `ipfrag in (1..8) … fail`, or a part of this range, \
                    needs no rule";
        if statement.action != Action::Fail || !offsets.without(&dangerous).is_empty() {
            self.messages.error(*place, "this test of ipfrag has no equivalent", Some(help));
        }
    }
}

/// The packets of some protocols that match a statement.
struct Part {
    protocols: Ranges,
    from_ports: Ranges,
    to_ports: Ranges,
    flags: String,
    /// True if the rule matches by the tag [`OTHER`]: all protocols but TCP and UDP, which pf
    /// cannot list.
    tagged_other: bool,
}

impl Part {
    fn for_protocols(protocols: Ranges) -> Self {
        Part {
            protocols,
            from_ports: Ranges::all(PORT),
            to_ports: Ranges::all(PORT),
            flags: String::new(),
            tagged_other: false,
        }
    }
}

/// Splits tests by protocol, because a field that a packet does not have counts as 0.
fn parts(tests: &Tests) -> Vec<Part> {
    let everything = Ranges::all(PORT);
    let Tests { protocols, flags, .. } = tests;
    let tcp_ports = [&tests.tcp_source, &tests.tcp_destination];
    let udp_ports = [&tests.udp_source, &tests.udp_destination];
    let open = |ports: [&Ranges; 2]| ports.iter().all(|&set| set == &everything);
    if flags.never {
        return Vec::new();
    }
    if open(tcp_ports) && open(udp_ports) && flags.mask == 0 {
        return vec![Part::for_protocols(protocols.clone())];
    }
    let holds_without = |ports: [&Ranges; 2]| ports.iter().all(|set| set.contains(0));
    let mut parts = Vec::new();
    if protocols.contains(TCP) && holds_without(udp_ports) {
        parts.push(Part {
            from_ports: tests.tcp_source.clone(),
            to_ports: tests.tcp_destination.clone(),
            flags: match flags.mask {
                0 => String::new(),
                mask => words::flags(flags.value, mask),
            },
            ..Part::for_protocols(Ranges::one(TCP))
        });
    }
    if flags.value != 0 {
        return parts;
    }
    if protocols.contains(UDP) && holds_without(tcp_ports) {
        parts.push(Part {
            from_ports: tests.udp_source.clone(),
            to_ports: tests.udp_destination.clone(),
            ..Part::for_protocols(Ranges::one(UDP))
        });
    }
    let others = protocols.without(&Ranges::union(vec![(TCP, TCP), (UDP, UDP)]));
    if !others.is_empty() && holds_without(tcp_ports) && holds_without(udp_ports) {
        let tagged_other = protocols == &Ranges::all(PROTOCOL);
        let others = if tagged_other { protocols.clone() } else { others };
        parts.push(Part { tagged_other, ..Part::for_protocols(others) });
    }
    parts
}

/// True if a rule of `filter` needs the tag [`OTHER`].
fn asks_for_other_protocols(filter: &Filter) -> bool {
    let statements =
        filter.statements.iter().filter(|statement| statement.tests.fragments.is_none());
    statements.flat_map(|statement| parts(&statement.tests)).any(|part| part.tagged_other)
}
