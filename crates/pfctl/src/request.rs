//! What a command line asks for.

use skipstep_ruleset::Optimization;

use crate::refusal::Refusal;
use crate::verbs::Verb;
use crate::words::{Flush, Show, TableCommand};

/// Longest path of an anchor, in bytes.
const LONGEST_PATH: usize = 1023;

/// What was asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Args {
    /// A verb instead of flags alone.
    pub verb: Option<Verb>,
    /// `-a`
    pub anchor: Option<Anchor>,
    /// `-D`: macros, name and value.
    pub macros: Vec<(String, String)>,
    /// `-d`
    pub disable: bool,
    /// `-e`
    pub enable: bool,
    /// `-F`
    pub flush: Option<Flush>,
    /// `-f`; `-` is standard input
    pub file: Option<String>,
    /// `-g`
    pub debug: bool,
    /// `-h`
    pub help: bool,
    /// `-I`
    pub limiter: Option<u32>,
    /// `-i`
    pub interface: Option<String>,
    /// `-K`, one or two
    pub kill_sources: Vec<String>,
    /// `-k`, one or two
    pub kill: Vec<String>,
    /// `-L`
    pub load_states: Option<String>,
    /// `-N`
    pub no_dns: bool,
    /// `-n`
    pub no_action: bool,
    /// `-o`
    pub optimization: Option<Optimization>,
    /// `-P`
    pub port_names: bool,
    /// `-p`
    pub instance: Option<String>,
    /// `-q`
    pub quiet: bool,
    /// `-R`
    pub rule: Option<u32>,
    /// `-r`
    pub host_names: bool,
    /// `-S`
    pub store_states: Option<String>,
    /// `-s`
    pub show: Option<Show>,
    /// `-T`
    pub command: Option<TableCommand>,
    /// `-t`
    pub table: Option<String>,
    /// `-V`
    pub rdomain: Option<u32>,
    /// how many `-v`
    pub verbose: u8,
    /// `-x`, as syslog counts
    pub debug_level: Option<u8>,
    /// `-z`
    pub zero: bool,
    /// `--json`
    pub json: bool,
    /// `--openbsd`
    pub openbsd: bool,
    /// `--junit`
    pub junit: Option<String>,
    /// `--remove`
    pub remove: bool,
    /// `--room-for`
    pub room_for: Option<String>,
    /// `--check`
    pub check: bool,
    /// `--write`
    pub write: bool,
    /// `--examples`
    pub examples: Option<usize>,
    /// `--all`
    pub all: bool,
    /// Addresses of `-T`, the packet of `explain`, the files of the other verbs.
    pub operands: Vec<String>,
}

/// What `-a` names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Anchor {
    /// Path from the main rule set, which is the empty one.
    pub path: String,
    /// `/*`: those below it, too.
    pub recursive: bool,
}

impl Anchor {
    /// Reads `spam`, `spam/*`, `*`.
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

    /// Names that begin with `_` are the filter's own.
    pub fn is_reserved(&self) -> bool {
        self.path.split('/').any(|name| name.starts_with('_'))
    }
}
