//! The parsed command line.

use skipstep_ruleset::Optimization;

use crate::refusal::Refusal;
use crate::verbs::Verb;
use crate::words::{Flush, Show, TableCommand};

/// Longest path of an anchor, in bytes.
const LONGEST_PATH: usize = 1023;

/// The values of all flags, the verb and the operands.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Args {
    /// Verb, if the first operand is one.
    pub verb: Option<Verb>,
    /// `-a`: anchor that the other flags work on.
    pub anchor: Option<Anchor>,
    /// `--confirm`: seconds after which a load that nobody confirms is undone.
    pub confirm: Option<u32>,
    /// `-D`: macros, name and value.
    pub macros: Vec<(String, String)>,
    /// `-d`: disable the filter.
    pub disable: bool,
    /// `-E`: enable the filter and take a reference.
    pub take_reference: bool,
    /// `-e`: enable the filter.
    pub enable: bool,
    /// `-F`: objects to flush.
    pub flush: Option<Flush>,
    /// `-f`: file of rules or addresses; `-` is standard input.
    pub file: Option<String>,
    /// `-g`: print debug details.
    pub debug: bool,
    /// `-h`, `--help`: print the help.
    pub help: bool,
    /// `--version`: print the version.
    pub version: bool,
    /// `-I`: number of a source limiter, from 1 to 255.
    pub limiter: Option<u32>,
    /// `-i`: interface that restricts the operation.
    pub interface: Option<String>,
    /// `-K`: network of sources, then of chosen addresses; two at most.
    pub kill_sources: Vec<String>,
    /// `--keep-states`: keep the states of new rules if the load is not confirmed.
    pub keep_states: bool,
    /// `-k`: keys of states or of a limiter's source; two at most.
    pub kill: Vec<String>,
    /// `-L`: file to load states from.
    pub load_states: Option<String>,
    /// `-M`: also remove the state on the other interface of each connection.
    pub both_sides: bool,
    /// `-N`: do not look up host names.
    pub no_dns: bool,
    /// `-n`: parse only, change nothing.
    pub no_action: bool,
    /// `-o`: optimization, instead of the rule set's own.
    pub optimization: Option<Optimization>,
    /// `-P`: print ports by name.
    pub port_names: bool,
    /// `-p`: name of the instance; `None` for the default.
    pub instance: Option<String>,
    /// `-q`: print errors and warnings only.
    pub quiet: bool,
    /// `-R`: number of the only rule to show.
    pub rule: Option<u32>,
    /// `-r`: print host names instead of addresses.
    pub host_names: bool,
    /// `-S`: file to store states in.
    pub store_states: Option<String>,
    /// `-s`: objects to show.
    pub show: Option<Show>,
    /// `-T`: command on a table.
    pub command: Option<TableCommand>,
    /// `-t`: name of the table, of 1 to 31 bytes.
    pub table: Option<String>,
    /// `-V`: routing domain for `-k`; `None` means 0.
    pub rdomain: Option<u32>,
    /// Number of `-v`.
    pub verbose: u8,
    /// `-w`: file to which `log` writes pcap; `-` is standard output.
    pub pcap: Option<String>,
    /// `-X`: token of the reference to release.
    pub release: Option<u64>,
    /// `-x`: debug level, from 0 (emerg) to 7 (debug), as in syslog.
    pub debug_level: Option<u8>,
    /// `-z`: clear the counters of rules.
    pub zero: bool,
    /// `--json`: print JSON.
    pub json: bool,
    /// `--openbsd`: refuse the syntax of FreeBSD and of old versions of OpenBSD.
    pub openbsd: bool,
    /// `--junit`: file for a JUnit report.
    pub junit: Option<String>,
    /// `--remove`: remove the filter from the kernel.
    pub remove: bool,
    /// `--room-for`: file whose limits and rules the maps are sized for.
    pub room_for: Option<String>,
    /// `--check`: only name the files that `fmt` would change.
    pub check: bool,
    /// `--write`: let `fmt` write the files back, and `confirm` write `/etc/pf.conf`.
    pub write: bool,
    /// `--examples`: most examples that `diff` prints.
    pub examples: Option<usize>,
    /// `--all`: let `log` print existing records, too.
    pub all: bool,
    /// `--explain`: let `drops` explain each packet.
    pub explain: bool,
    /// Addresses of `-T`, the packet of `explain`, the words of `drops`, the files of the other
    /// verbs.
    pub operands: Vec<String>,
}

impl Args {
    /// True if the command line enables the filter.
    pub fn enables(&self) -> bool {
        self.enable || self.take_reference
    }
}

/// An anchor as `-a` names it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Anchor {
    /// Path from the main rule set, without slashes at the ends; the main rule set has the empty
    /// path.
    pub path: String,
    /// True for `path/*` and `*`: all anchors below are selected, too.
    pub recursive: bool,
}

impl Anchor {
    /// Parses `spam`, `spam/*` or `*`.
    ///
    /// # Errors
    /// Fails if the text is empty or the path has more than 1023 bytes.
    pub fn parse(text: &str) -> Result<Anchor, Refusal> {
        if text.is_empty() {
            return Err(Refusal::Failure("anchor name must not be empty".into()));
        }
        let (path, recursive) = match text.strip_suffix("/*") {
            Some(path) => (path, true),
            None if text == "*" => ("", true),
            None => (text, false),
        };
        if path.len() > LONGEST_PATH {
            return Err(Refusal::Failure(format!("anchor name '{text}' too long")));
        }
        Ok(Anchor { path: path.trim_matches('/').to_owned(), recursive })
    }

    /// True if a name in the path begins with `_`. Such anchors belong to the filter, which makes
    /// them for braces without a name.
    pub fn is_reserved(&self) -> bool {
        self.path.split('/').any(|name| name.starts_with('_'))
    }
}
