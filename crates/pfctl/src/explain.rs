//! `pfctl explain`: traces one packet through the rules.

use std::fmt::Write;
use std::process::ExitCode;

use anyhow::{Result, anyhow, bail};
use serde_json::json;
use skipstep_kernel::{Instance, host};
use skipstep_model::{Decision, Fate, Firewall, Packet, Trace, Verdict};
use skipstep_pfconf::PrintOptions;
use skipstep_pfconf::identity::Identities;
use skipstep_pfconf::print::rule as print_rule;
use skipstep_ruleset::interface::{Host, Interface};
use skipstep_ruleset::{Rule, Ruleset, Table, TableName};
use skipstep_scenario::case::Arrival;
use skipstep_scenario::{parse, run as scenario};

use crate::access::open;
use crate::load::{self, Source, report};
use crate::output::print;
use crate::request::Args;
use crate::{shell, verbs};

/// Packets of the help, one in each notation.
const EXAMPLES: [&str; 2] = [
    "in on em0 proto tcp from 10.0.0.1 port 4000 to 10.0.0.2 port ssh",
    "in em0 icmp6 2001:db8::9 > 2001:db8::1 echoreq",
];

/// The forms of a packet.
const GRAMMAR: &str = "
A packet has the words of pf.conf:

  (in | out) on INTERFACE [inet | inet6] proto PROTOCOL
      from ADDRESS [port PORT] to ADDRESS [port PORT]
      [flags FLAGS] [icmp-type TYPE | icmp6-type TYPE] [code CODE]
      [tagged TAG] [received-on INTERFACE] [tos N] [prio N]

or the notation of scenario files, in quotes because of the >:

  (in | out) INTERFACE tcp ADDRESS:PORT > ADDRESS:PORT FLAGS
  (in | out) INTERFACE udp ADDRESS:PORT > ADDRESS:PORT
  (in | out) INTERFACE (icmp | icmp6) ADDRESS > ADDRESS TYPE
  (in | out) INTERFACE proto PROTOCOL ADDRESS > ADDRESS

Packets of tcp, udp and sctp need ports. An IPv6 address with a port is written
2001:db8::1[22] in the second notation. FLAGS are letters of FSRPAUEW; a segment
of TCP without flags is a SYN. docs/howto/scenarios.md lists all words.
";

/// Returns the usage, the grammar of packets, and examples.
pub fn help() -> String {
    let usage = verbs::find("explain").map_or("", |row| row.usage);
    let mut text = format!("usage: pfctl explain {usage}\n{GRAMMAR}\nFor instance:\n\n");
    for packet in EXAMPLES {
        let _ = writeln!(text, "  pfctl explain {}", typed(packet));
    }
    text
}

/// Returns a packet as it is typed in a shell: in quotes unless all its words are plain.
fn typed(packet: &str) -> String {
    match packet.split(' ').all(shell::is_plain) {
        true => packet.to_owned(),
        false => shell::quoted(packet),
    }
}

/// Explains the packet in the operands, under the rules of `-f` or the rules in force. Without a
/// packet, prints the help to standard error.
///
/// # Errors
/// Fails if the operands are not exactly one packet, if the file or host cannot be read, or if no
/// rules are loaded.
pub fn run(args: &Args) -> Result<ExitCode> {
    if args.operands.is_empty() {
        eprint!("pfctl: explain: no packet given\n{}", help());
        return Ok(ExitCode::FAILURE);
    }
    let mut arrival = read_packet(&args.operands.join(" "))?;
    let mut host = host::read()?;
    arrival.interface = host.interface_name(&arrival.interface).to_owned();
    let (file, ruleset) = match &args.file {
        Some(file) => {
            let source = Source::read(file)?;
            match load::parse(&source, args, &host) {
                Ok(loaded) => (source.name, loaded.ruleset),
                Err(rejected) => {
                    report(&rejected.diagnostics);
                    return Ok(ExitCode::FAILURE);
                }
            }
        }
        None => ("line ".to_string(), loaded_ruleset(args)?),
    };
    add_interface(&mut host, &arrival.interface);
    let explanation = explain(&ruleset, &host, &scenario::test_packet(&arrival));
    let where_written = |rule: &Rule| match args.file {
        Some(_) => format!("{}:{}", rule.file.as_deref().unwrap_or(&file), rule.line),
        None => place_in_force(rule),
    };
    print(&match args.json {
        true => format!("{:#}\n", explanation.json(&ruleset)),
        false => explanation.text(&ruleset, &where_written),
    })?;
    Ok(ExitCode::SUCCESS)
}

/// Returns the location of a rule in force. The name of the main file is not known.
pub fn place_in_force(rule: &Rule) -> String {
    match &rule.file {
        Some(file) => format!("{file}:{}", rule.line),
        None => format!("line {} of the loaded file", rule.line),
    }
}

fn loaded_ruleset(args: &Args) -> Result<Ruleset> {
    match open(args)? {
        Some(instance) => with_entries(&instance),
        None => bail!("no rules are loaded; explain a file with -f"),
    }
}

/// Reads the rules in force, with the current entries of the tables.
///
/// # Errors
/// Fails if the records or a table of the instance cannot be read.
pub fn with_entries(instance: &Instance) -> Result<Ruleset> {
    let mut ruleset = instance.loaded()?.ruleset;
    let read = |anchor: &str, table: &mut Table| -> Result<()> {
        table.entries = instance.table_entries(&TableName::new(anchor, &table.name))?;
        Ok(())
    };
    ruleset.tables.iter_mut().try_for_each(|table| read("", table))?;
    for (path, anchor) in &mut ruleset.anchors {
        anchor.tables.iter_mut().try_for_each(|table| read(path, table))?;
    }
    Ok(ruleset)
}

/// Parses a packet. The error names the wrong or missing part, and a line to write instead.
fn read_packet(text: &str) -> Result<Arrival> {
    parse::arrival(text).map_err(|error| {
        let (word, line) = match parse::completed(text) {
            Some(line) => ("write", line),
            None => ("for instance", EXAMPLES[0].to_owned()),
        };
        // the line has a line of its own, because it is nearly as long as a terminal's
        anyhow!("packet: {}\n  {word}: {}", error.message, typed(&line))
    })
}

/// Adds an interface of this name if the host has none, so packets on future interfaces can be
/// explained.
pub fn add_interface(host: &mut Host, name: &str) {
    if host.interface(name).is_none() {
        let index = host.interfaces.iter().map(|interface| interface.index).max().unwrap_or(0) + 1;
        let groups = vec!["all".to_string()];
        host.interfaces.push(Interface {
            name: name.to_string(),
            index,
            mtu: 1500,
            groups,
            ..Interface::default()
        });
    }
}

/// The trace and the fate of one packet.
pub struct Explanation {
    packet: String,
    trace: Trace,
    fate: Fate,
}

/// Sends one packet through the model, with an empty state table.
pub fn explain(ruleset: &Ruleset, host: &Host, packet: &Packet) -> Explanation {
    let mut firewall = Firewall::new(ruleset.clone(), host.clone());
    let (fate, trace) = firewall.explain(packet);
    Explanation { packet: skipstep_wire::print::line(&packet.bytes), trace, fate }
}

impl Explanation {
    /// Prints the packet, a line for each stage, the verdict and the deciding rule. `where_written`
    /// returns the location of a rule.
    pub fn text(&self, ruleset: &Ruleset, where_written: &dyn Fn(&Rule) -> String) -> String {
        let mut text = format!("{}\n", self.packet);
        for stage in &self.trace.stages {
            let _ = writeln!(text, "  {stage}");
        }
        let verdict = self.verdict();
        let _ = match &self.fate.decision {
            Decision::None => writeln!(text, "{verdict}: not filtered"),
            Decision::Rule(id) => match ruleset.rule(id) {
                Some(rule) => writeln!(
                    text,
                    "{verdict} by rule {id}, {}\n  {}",
                    where_written(rule),
                    print_rule(rule, &PrintOptions::default())
                ),
                None => writeln!(text, "{verdict} by rule {id}"),
            },
            _ => writeln!(text, "{verdict} by default, reason {}", self.fate.reason.name()),
        };
        text
    }

    fn verdict(&self) -> &'static str {
        match self.fate.verdict {
            Verdict::Pass => "pass",
            Verdict::Drop => "block",
            Verdict::Consumed => "consumed",
        }
    }

    /// Returns an object with the trace, the verdict, the deciding rule and the answers.
    pub fn json(&self, ruleset: &Ruleset) -> serde_json::Value {
        let id = match &self.fate.decision {
            Decision::Rule(id) => Some(id),
            _ => None,
        };
        let rule = id.and_then(|id| ruleset.rule(id));
        let identities = Identities::of(ruleset);
        json!({
            "packet": self.packet,
            "stages": self.trace.stages.iter().map(|stage| stage.to_string()).collect::<Vec<_>>(),
            "verdict": self.verdict(),
            "reason": self.fate.reason.name(),
            "rule": rule.map(|rule| json!({
                "anchor": id.map(|id| &id.anchor),
                "number": rule.number,
                "id": id.and_then(|id| identities.get(id)),
                "file": rule.file,
                "line": rule.line,
                "text": print_rule(rule, &PrintOptions::default()),
                "labels": rule.labels,
            })),
            "answers": self.fate.replies.iter().map(|reply| skipstep_wire::print::line(reply)).collect::<Vec<_>>(),
        })
    }
}

#[cfg(test)]
mod tests {
    use skipstep_pfconf::Context;

    use super::*;

    fn explained(rules: &str, packet: &str) -> String {
        explained_with(None, rules, packet)
    }

    fn explained_with(list: Option<&str>, rules: &str, packet: &str) -> String {
        let host = skipstep_scenario::host::standard();
        let failsafe = || Ok(list.map(str::to_owned));
        let context = Context { failsafe: &failsafe, ..Context::new(&host) };
        let ruleset = skipstep_pfconf::load(rules, &context).unwrap().ruleset;
        let arrival = read_packet(packet).unwrap();
        let place =
            |rule: &Rule| format!("{}:{}", rule.file.as_deref().unwrap_or("pf.conf"), rule.line);
        explain(&ruleset, &host, &scenario::test_packet(&arrival)).text(&ruleset, &place)
    }

    #[test]
    fn the_deciding_rule_is_named_with_its_line() {
        let rules = "# comment\nblock\npass in on em0 proto tcp to port 22\n";
        let text = explained(rules, "in em0 tcp 10.0.0.1:4000 > 10.0.0.2:22 S");
        assert!(text.contains("pass by rule 1, pf.conf:3\n  pass in on em0 proto tcp"), "{text}");
        let text = explained(rules, "in em0 tcp 10.0.0.1:4000 > 10.0.0.2:23 S");
        assert!(text.contains("rule 1 (line 3, pass): no match, to port"), "{text}");
        assert!(text.contains("block by rule 0, pf.conf:2\n  block drop all\n"), "{text}");
    }

    #[test]
    fn rules_in_anchors_are_named_with_their_path() {
        let rules = "block\nanchor \"ssh\" in {\npass proto tcp to port 22\n}\n";
        let text = explained(rules, "in em0 tcp 10.0.0.1:4000 > 10.0.0.2:22 S");
        assert!(text.contains("rule 1 (line 2, anchor): match\n"), "{text}");
        assert!(text.contains("rule ssh/0 (line 3, pass): match\n"), "{text}");
        assert!(text.contains("pass by rule ssh/0, pf.conf:3\n  pass proto tcp"), "{text}");
    }

    #[test]
    fn rules_of_the_failsafe_list_are_named_with_its_file() {
        let list = Some("# ssh\npass in proto tcp to port 22 no state\n");
        let text = explained_with(list, "block quick", "in em0 tcp 10.0.0.1:4000 > 10.0.0.2:22 S");
        assert!(text.contains("  rule 0 (anchor): match\n"), "{text}");
        assert!(text.contains("  rule failsafe/0 (line 2, pass): match\n"), "{text}");
        assert!(
            text.contains("pass by rule failsafe/0, /etc/pf.failsafe:2\n  pass in proto tcp"),
            "{text}"
        );
        let text = explained_with(list, "block quick", "in em0 tcp 10.0.0.1:4000 > 10.0.0.2:23 S");
        assert!(text.contains("block by rule 1, pf.conf:1\n"), "{text}");
    }

    #[test]
    fn an_answer_is_shown() {
        let text = explained("block return", "in em0 tcp 10.0.0.1:4000 > 10.0.0.2:22 S");
        assert!(text.contains("  reply: "), "{text}");
    }

    #[test]
    fn invalid_packets_are_refused() {
        for text in ["", "hello", "in em0", "wait 3", "in em0 udp 10.0.0.1:1 > 10.0.0.2:2\nwait 3"]
        {
            assert!(read_packet(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_refusal_has_the_line_to_write() {
        for (text, message) in [
            (
                "in on em0 proto tcp from 10.0.0.1 to 10.0.0.2 port 22",
                "packet: the port of the source (`port PORT`) is missing\n  write: \
                 in on em0 proto tcp from 10.0.0.1 port 4000 to 10.0.0.2 port 22",
            ),
            (
                "in em0 tcp 10.0.0.1:4000 S",
                "packet: expected `>`\n  write: 'in em0 tcp 10.0.0.1:4000 > 192.0.2.1:22 S'",
            ),
            (
                "in em0 tcp 10.0.0.1:4000 > 10.0.0.2:22 none",
                "packet: `none` is not a set of TCP flags (letters of FSRPAUEW, . for none)\n  \
                 write: 'in em0 tcp 10.0.0.1:4000 > 10.0.0.2:22 S'",
            ),
            (
                "in em0 wrong",
                "packet: `wrong` is not a kind of packet: use hex, tcp, udp, sctp, icmp, icmp6 or \
                 proto\n  for instance: \
                 in on em0 proto tcp from 10.0.0.1 port 4000 to 10.0.0.2 port ssh",
            ),
        ] {
            assert_eq!(read_packet(text).unwrap_err().to_string(), message);
        }
    }

    #[test]
    fn both_notations_of_the_help_are_packets() {
        for packet in EXAMPLES {
            assert!(read_packet(packet).is_ok(), "{packet}");
            assert!(help().contains(packet));
        }
        assert!(help().lines().all(|line| line.len() <= 80));
    }

    #[test]
    fn pf_conf_and_scenario_files_have_words_for_the_same_packet() {
        let rules = "block\npass in on em0 inet proto tcp to port ssh flags S/SA tagged T\n";
        let words =
            "in on em0 inet proto tcp from 10.0.0.1 port 4000 to 10.0.0.2 port ssh tagged T";
        let text = explained(rules, words);
        assert!(text.contains("pass by rule 1, pf.conf:2\n"), "{text}");
        assert_eq!(text, explained(rules, "in em0 tag T tcp 10.0.0.1:4000 > 10.0.0.2:22 S"));
    }
}
