//! The pfctl command of each request.

use crate::broker::Options;
use crate::request::Request;

/// The file of rules, to which `--write` copies a load that is confirmed.
pub const RULES: &str = "/etc/pf.conf";

/// A command line of pfctl.
#[derive(Debug, PartialEq, Eq)]
pub struct Command {
    /// Arguments of pfctl.
    pub arguments: Vec<String>,
    /// Standard input of pfctl.
    pub input: String,
    /// Exit status from which on the command has failed. Smaller ones are results.
    pub failure: i32,
    /// True if the output is sent on while the command runs.
    pub streams: bool,
    /// Seconds until a command that does not stream is ended.
    pub seconds: u64,
}

impl Command {
    /// Returns the command for a request that has passed [`Request::check`], or `None` if the
    /// request needs no pfctl.
    pub fn for_request(request: &Request, options: &Options) -> Option<Command> {
        use Request::*;
        let log = options.log.to_string_lossy();
        let seconds_text;
        let id;
        let command = match request {
            Role | File => return None,
            Info => Command::new(&["--json", "-s", "info"]),
            Trial => Command::new(&["--json", "-s", "confirm"]),
            Rules => Command::new(&["--json", "-a", "*", "-s", "rules"]),
            States => Command::new(&["--json", "-s", "states"]).streaming(),
            Interfaces => Command::new(&["--json", "-s", "Interfaces"]),
            Queues => Command::new(&["--json", "-s", "queue"]),
            Tables => Command::new(&["--json", "-a", "*", "-s", "Tables"]),
            Table(table) => {
                Command::table(&table.anchor, &table.table, &["--json", "-v", "-T", "show"])
            }
            Metrics => Command::new(&["-s", "metrics"]),
            Explain { packet } => Command::new(&["explain", "--json", packet]),
            Log => Command::new(&["log", "--json", &log]).streaming(),
            Drops => Command::new(&["drops", "--json"]).streaming(),
            Kill { id: state, creator } => {
                id = format!("{state}/{creator}");
                Command::new(&["-k", "id", "-k", &id])
            }
            Add(entry) => {
                Command::table(&entry.anchor, &entry.table, &["-T", "add", &entry.address])
            }
            Delete(entry) => {
                Command::table(&entry.anchor, &entry.table, &["-T", "delete", &entry.address])
            }
            Diff { rules: text } => {
                let command = Command::new(&["diff", "--json", RULES, "-"]).with_input(text);
                Command { failure: 2, ..command }
            }
            Load { rules: text, seconds, write } => {
                seconds_text = seconds.to_string();
                let mut arguments = vec!["-f", "-", "--confirm", &seconds_text];
                if *write {
                    arguments.push("--write");
                }
                Command { seconds: 120, ..Command::new(&arguments).with_input(text) }
            }
            Confirm => Command::new(&["confirm"]),
            Revert => Command::new(&["revert"]),
        };
        Some(command.of_instance(options.instance.as_deref(), request))
    }

    fn new(arguments: &[&str]) -> Command {
        let arguments = arguments.iter().map(ToString::to_string).collect();
        Command { arguments, input: String::new(), failure: 1, streams: false, seconds: 30 }
    }

    /// Returns a command for a table of an anchor.
    fn table(anchor: &str, table: &str, rest: &[&str]) -> Command {
        let mut arguments = vec!["-t", table];
        if !anchor.is_empty() {
            arguments.extend(["-a", anchor]);
        }
        arguments.extend(rest);
        Command::new(&arguments)
    }

    fn streaming(self) -> Command {
        Command { streams: true, ..self }
    }

    fn with_input(self, text: &str) -> Command {
        Command { input: text.to_owned(), ..self }
    }

    /// Adds `-p`, which pfctl takes after a verb and before operands. `log` and `diff` read files.
    fn of_instance(mut self, instance: Option<&str>, request: &Request) -> Command {
        if let (Some(instance), false) =
            (instance, matches!(request, Request::Log | Request::Diff { .. }))
        {
            let has_verb = self.arguments.first().is_some_and(|word| !word.starts_with('-'));
            let place = usize::from(has_verb);
            self.arguments.splice(place..place, ["-p".to_owned(), instance.to_owned()]);
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::request::{Entry, Table};

    fn line(request: &Request, words: &[&str]) -> String {
        let options = Options::parse_from([&["skipstep-broker"], words].concat());
        Command::for_request(request, &options).unwrap().arguments.join(" ")
    }

    #[test]
    fn requests_become_command_lines() {
        assert_eq!(line(&Request::Info, &[]), "--json -s info");
        assert_eq!(line(&Request::Info, &["-p", "lab"]), "-p lab --json -s info");
        assert_eq!(line(&Request::Confirm, &["-p", "lab"]), "confirm -p lab");
        let packet = "in em0 tcp 192.0.2.7:4000 > 192.0.2.1:22 S".to_owned();
        assert_eq!(
            line(&Request::Explain { packet: packet.clone() }, &["-p", "lab"]),
            format!("explain -p lab --json {packet}")
        );
        let entry =
            Entry { table: "bad".into(), anchor: "f2b/x".into(), address: "!192.0.2.7".into() };
        assert_eq!(line(&Request::Add(entry), &[]), "-t bad -a f2b/x -T add !192.0.2.7");
        let table = Table { table: "bad".into(), anchor: String::new() };
        assert_eq!(line(&Request::Table(table), &[]), "-t bad --json -v -T show");
        let load = Request::Load { rules: "pass".into(), seconds: 60, write: true };
        assert_eq!(line(&load, &[]), "-f - --confirm 60 --write");
    }

    #[test]
    fn a_difference_is_a_result() {
        let options = Options::parse_from(["skipstep-broker"]);
        let command =
            Command::for_request(&Request::Diff { rules: "pass".into() }, &options).unwrap();
        assert_eq!((command.failure, command.input.as_str()), (2, "pass"));
    }
}
