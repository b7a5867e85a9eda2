//! The environment of a text. The crate opens no files and no sockets; the caller supplies
//! everything.

use std::hash::{BuildHasher, RandomState};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use skipstep_ruleset::fingerprint;
use skipstep_ruleset::interface::Host;
use skipstep_ruleset::{AutomaticTables, Counted, Optimization};

use crate::names::Names;

/// The language of a text.
// Differs from OpenBSD: linux.md, "Other languages"
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Dialect {
    /// The languages of OpenBSD, of FreeBSD, and of OpenBSD before 4.7.
    #[default]
    Any,
    /// OpenBSD's present language with skipstep's additions. All other forms are refused, as by
    /// OpenBSD.
    OpenBsd,
}

/// All inputs besides the text itself.
pub struct Context<'a> {
    /// Name of the text in messages: `stdin`, `/etc/pf.conf`.
    pub file_name: &'a str,
    /// Path of the rule set in which the text is loaded (`pfctl -a`), without a leading slash;
    /// empty for the main rule set.
    pub anchor: &'a str,
    /// Returns the names of the queues in force. Called for the text of an anchor, whose rules may
    /// use the queues of the main rule set.
    pub queues: &'a (dyn Fn() -> Vec<String> + Sync),
    /// Returns the text of the failsafe list, and `None` if there is none. Called for the text of a
    /// main rule set.
    pub failsafe: &'a (dyn Fn() -> io::Result<Option<String>> + Sync),
    /// True if the text is the failsafe list, which may contain pass rules and macros only.
    pub is_failsafe_list: bool,
    /// Interfaces and their addresses, for `from em0`, `em0:network` and `self`.
    pub host: &'a Host,
    /// The language in which the text may be written.
    pub dialect: Dialect,
    /// Macros of `-D name=value`. Definitions in the text do not replace them.
    pub macros: &'a [(String, String)],
    /// The names of services and protocols.
    pub names: &'a Names,
    /// Returns the contents of a table file, an included file or the file of `load anchor`.
    pub read_file: &'a (dyn Fn(&str) -> io::Result<String> + Sync),
    /// Returns the text of the default fingerprints, for rules with `os`.
    pub fingerprints: &'a (dyn Fn() -> io::Result<String> + Sync),
    /// Returns the addresses of a host name; empty if the name is unknown.
    pub resolve: &'a (dyn Fn(&str) -> Vec<IpAddr> + Sync),
    /// Returns a random number, for keys of `source-hash` that are not written.
    pub random: &'a (dyn Fn() -> u32 + Sync),
    /// True to collect the output of `pfctl -v`. For a large rule set this takes as long as
    /// parsing.
    pub echo: bool,
    /// True to print the names of services in place of port numbers (`-P`).
    pub port_names: bool,
    /// The optimization of `-o`; `None` for that of `set ruleset-optimization`.
    pub optimization: Option<Optimization>,
    /// Returns the rules in force of the rule set with a path, for `-o profile`.
    pub profile: &'a (dyn Fn(&str) -> Vec<Counted> + Sync),
    /// Names for the tables of pools and of the optimizer.
    pub automatic_tables: AutomaticTables,
}

impl<'a> Context<'a> {
    /// Returns a context with the interfaces of `host`, the built-in names, no macros, no failsafe
    /// list and no files. The only host name is `localhost`. Rules are not optimized.
    pub fn new(host: &'a Host) -> Self {
        Context {
            file_name: "stdin",
            anchor: "",
            queues: &|| Vec::new(),
            failsafe: &|| Ok(None),
            is_failsafe_list: false,
            host,
            dialect: Dialect::Any,
            macros: &[],
            names: Names::builtin(),
            read_file: &|_| Err(io::ErrorKind::NotFound.into()),
            fingerprints: &|| Ok(fingerprint::BUILT_IN.to_owned()),
            resolve: &resolve_localhost,
            random: &random,
            echo: true,
            port_names: false,
            optimization: Some(Optimization::None),
            profile: &|_| Vec::new(),
            automatic_tables: AutomaticTables::for_display(),
        }
    }
}

/// Returns an unpredictable number, because the keys of Rust's hash maps are random.
fn random() -> u32 {
    RandomState::new().hash_one(()) as u32
}

fn resolve_localhost(name: &str) -> Vec<IpAddr> {
    match name {
        "localhost" => vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()],
        _ => Vec::new(),
    }
}
