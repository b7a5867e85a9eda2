//! What the language needs to know of the world around it. The crate opens no file and no socket:
//! the caller fills this in.

use std::hash::{BuildHasher, RandomState};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use skipstep_ruleset::fingerprint;
use skipstep_ruleset::interface::Host;
use skipstep_ruleset::{AutomaticTables, Counted, Optimization};

use crate::names::Names;

/// The language that a text is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Dialect {
    /// OpenBSD's of today, with all that only FreeBSD has, and OpenBSD before 4.7.
    #[default]
    Any,
    /// OpenBSD's of today and our own additions; everything else is refused, as OpenBSD does.
    OpenBsd,
}

/// Everything outside the text that its meaning depends on.
pub struct Context<'a> {
    /// Name of the text in messages: `stdin`, `/etc/pf.conf`.
    pub file_name: &'a str,
    /// Path of the rule set that the text becomes (`pfctl -a`), without a slash in front; empty for
    /// the main rule set.
    pub anchor: &'a str,
    /// Of a text that becomes an anchor, the queues of the main rules in force that rules can
    /// assign to.
    pub queues: &'a (dyn Fn() -> Vec<String> + Sync),
    /// Interfaces and their addresses, for `from em0`, `em0:network`, `self`.
    pub host: &'a Host,
    /// The language whose forms the text may have.
    pub dialect: Dialect,
    /// Macros given from outside (`-D name=value`); definitions in the text do not replace them.
    pub macros: &'a [(String, String)],
    /// Names of services and protocols.
    pub names: &'a Names,
    /// Contents of a table file, an included file or one that `load anchor` names.
    pub read_file: &'a (dyn Fn(&str) -> io::Result<String> + Sync),
    /// Fingerprints of operating systems, for `os`, if `set fingerprints` names no others.
    pub fingerprints: &'a (dyn Fn() -> io::Result<String> + Sync),
    /// Addresses of a host name, none if it is not known.
    pub resolve: &'a (dyn Fn(&str) -> Vec<IpAddr> + Sync),
    /// Random numbers, for the keys of `source-hash` that are not written.
    pub random: &'a (dyn Fn() -> u32 + Sync),
    /// Whether to keep what `pfctl -v` prints; of a large rule set that takes as long as reading
    /// it.
    pub echo: bool,
    /// Whether that text names ports by their services (`-P`).
    pub port_names: bool,
    /// How much to optimize (`-o`); `None` leaves it to `set ruleset-optimization`.
    pub optimization: Option<Optimization>,
    /// For `-o profile`: the rules in force of the rule set with a path.
    pub profile: &'a (dyn Fn(&str) -> Vec<Counted> + Sync),
    /// Names for the tables of pools and of the optimizer.
    pub automatic_tables: AutomaticTables,
}

impl<'a> Context<'a> {
    /// A context with the interfaces of `host`, the built-in names, no macros and no files, in
    /// which only `localhost` is a host name. Rules stay as they are written.
    pub fn new(host: &'a Host) -> Self {
        Context {
            file_name: "stdin",
            anchor: "",
            queues: &|| Vec::new(),
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
            automatic_tables: AutomaticTables::for_looking(),
        }
    }
}

/// Numbers nobody can foresee: the keys of a hash map are random.
fn random() -> u32 {
    RandomState::new().hash_one(()) as u32
}

fn resolve_localhost(name: &str) -> Vec<IpAddr> {
    match name {
        "localhost" => vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()],
        _ => Vec::new(),
    }
}
