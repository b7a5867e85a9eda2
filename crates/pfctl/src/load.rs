//! `-f`: from a file to rules in force.

use std::collections::HashSet;
use std::io::{IsTerminal, Read};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, ToSocketAddrs};
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use skipstep_classifier::LONG_WALK;
use skipstep_kernel::{Ahead, Error, Instance, host, routing};
use skipstep_pfconf::{Context, Diagnostic, Dialect, Kind, Loaded, Names, Rejected};
use skipstep_ruleset::automatic::AutomaticTables;
use skipstep_ruleset::fingerprint;
use skipstep_ruleset::interface::Host;
use skipstep_ruleset::optimize::Counted;
use skipstep_ruleset::{Evaluator, Ruleset};

use crate::access::{self, create, instance_name};
use crate::output::{complain, print};
use crate::refusal::UsageError;
use crate::request::Args;
use crate::session;
use crate::verbs::Verb;

/// A text and what it is called in messages.
pub struct Source {
    /// Path, or `stdin`.
    pub name: String,
    /// Contents.
    pub text: String,
}

impl Source {
    /// Reads `file`; `-` is standard input.
    pub fn read(file: &str) -> Result<Source> {
        if file == "-" {
            let mut text = String::new();
            std::io::stdin().read_to_string(&mut text).context("stdin")?;
            return Ok(Source { name: "stdin".into(), text });
        }
        let text = std::fs::read_to_string(file).with_context(|| file.to_string())?;
        Ok(Source { name: file.to_string(), text })
    }
}

/// Parses a rule set on this machine: with its interfaces, its names and its files.
pub fn parse(source: &Source, args: &Args, host: &Host) -> Result<Loaded, Rejected> {
    in_context(source, args, host, resolver(args), |context| {
        skipstep_pfconf::load(&source.text, context)
    })
}

/// Calls `use_it` with what a rule set means on this machine, and names that `resolve` knows.
fn in_context<T>(
    source: &Source,
    args: &Args,
    host: &Host,
    resolve: &(dyn Fn(&str) -> Vec<IpAddr> + Sync),
    use_it: impl FnOnce(&Context) -> T,
) -> T {
    let read = |path: &str| std::fs::read_to_string(path);
    let system = |path: &str| read(path).unwrap_or_default();
    let names = Names::parse(&system("/etc/services"), &system("/etc/protocols"))
        .with_owners(&system("/etc/passwd"), &system("/etc/group"));
    let context = Context {
        queues: &|| queues_in_force(args),
        file_name: &source.name,
        anchor: args.anchor.as_ref().map_or("", |anchor| &anchor.path),
        macros: &args.macros,
        dialect: if args.openbsd { Dialect::OpenBsd } else { Dialect::Any },
        read_file: &read,
        fingerprints: &fingerprints,
        resolve,
        names: &names,
        optimization: args.optimization,
        profile: &|path| profile(args, path),
        automatic_tables: match args.no_action {
            true => AutomaticTables::for_looking(),
            false => AutomaticTables::for_loading(fastrand::u32(..)),
        },
        random: match args.verb {
            // a key that nobody gave is the same in both rule sets
            Some(Verb::Diff) => &|| 0,
            _ => Context::new(host).random,
        },
        echo: args.verbose > 0,
        port_names: args.port_names,
        ..Context::new(host)
    };
    use_it(&context)
}

/// `--room-for`: makes room for what a file asks for. Without enough memory, or without the file,
/// the room is what it is, and a warning says so: other rules are to be loaded all the same.
pub fn make_room(args: &Args, file: &str) -> Result<()> {
    let source = match Source::read(file) {
        Ok(source) => source,
        Err(error) => {
            eprintln!("pfctl: warning: {error:#}: no room is made for its rules");
            return Ok(());
        }
    };
    // no name service answers yet where this matters, so that each name stands for two addresses
    let resolve = |_: &str| vec![Ipv4Addr::UNSPECIFIED.into(), Ipv6Addr::UNSPECIFIED.into()];
    let room = in_context(&source, args, &host::read()?, &resolve, |context| {
        skipstep_pfconf::room(&source.text, context)
    });
    let (limits, rules) = (&room.limits, room.rules as u32);
    match Instance::open_with_room(&instance_name(args), limits, rules) {
        Ok(_) => {}
        Err(error @ Error::Bpf { .. }) => eprintln!(
            "pfctl: warning: no room for what {file} asks for ({} states, {} source nodes, \
             {rules} rules): {error}: lower its limits",
            limits.states, limits.src_nodes
        ),
        Err(error) => return Err(error.into()),
    }
    Ok(())
}

/// `-a`: the queues of the main rules in force that rules can assign to; none if they cannot be
/// asked for.
fn queues_in_force(args: &Args) -> Vec<String> {
    let is_anchor = args.anchor.as_ref().is_some_and(|anchor| !anchor.path.is_empty());
    let loaded = is_anchor.then(|| access::open(args).ok()??.loaded().ok()).flatten();
    let queues = loaded.into_iter().flat_map(|loaded| loaded.ruleset.queues);
    queues.filter(|queue| queue.parent.is_some()).map(|queue| queue.name).collect()
}

/// `-o profile`: the rules in force with what they matched; none if they cannot be asked for.
fn profile(args: &Args, path: &str) -> Vec<Counted> {
    let Ok(Some(instance)) = access::open(args) else { return Vec::new() };
    let (Ok(loaded), Ok(counters)) = (instance.loaded(), instance.rule_counters(path)) else {
        return Vec::new();
    };
    let rules = loaded.ruleset.rules_of(path).iter().cloned();
    let packets = counters.iter().map(|counters| counters.packets.iter().sum());
    rules.zip(packets).map(|(rule, packets)| Counted { rule, packets }).collect()
}

/// The fingerprints of the machine, or if it has none our own.
pub fn fingerprints() -> std::io::Result<String> {
    match std::fs::read_to_string(fingerprint::FILE) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            Ok(fingerprint::BUILT_IN.to_owned())
        }
        text => text,
    }
}

/// How host names get addresses: with `-N` not at all.
pub fn resolver(args: &Args) -> &'static (dyn Fn(&str) -> Vec<IpAddr> + Sync) {
    if args.no_dns { &|_| Vec::new() } else { &addresses_of }
}

/// What the system's name service says, IPv4 first.
pub fn addresses_of(name: &str) -> Vec<IpAddr> {
    let Ok(found) = (name, 0).to_socket_addrs() else { return Vec::new() };
    let mut addresses: Vec<IpAddr> = found.map(|address| address.ip()).collect();
    addresses.sort_by_key(IpAddr::is_ipv6);
    addresses.dedup();
    addresses
}

/// Prints messages: OpenBSD's lines, with the source below on a terminal.
pub fn report(diagnostics: &[Diagnostic]) {
    let terminal = std::io::stderr().is_terminal();
    for diagnostic in diagnostics {
        if terminal {
            eprintln!("{}", diagnostic.explain());
        } else {
            eprintln!("{diagnostic}");
        }
    }
}

/// Parses and prints, by `-v`, what was read. `None` if it cannot be loaded.
fn read_rules(args: &Args, source: &Source, host: &Host) -> Result<Option<Loaded>> {
    match parse(source, args, host) {
        Ok(loaded) => {
            // OpenBSD only tells of unused macros when asked twice
            let mut warnings = loaded.warnings.clone();
            warnings.retain(|warning| warning.kind != Kind::Note || args.verbose >= 2);
            report(&warnings);
            if args.verbose > 0 {
                print(&loaded.echo)?;
            }
            Ok(Some(loaded))
        }
        Err(rejected) => {
            report(&rejected.diagnostics);
            if args.verbose > 0 {
                print(&rejected.echo)?;
            }
            Ok(None)
        }
    }
}

/// The text of `-f`; `None`, and a message, if it cannot be read.
fn open(file: &str) -> Option<Source> {
    match Source::read(file) {
        Ok(source) => Some(source),
        Err(error) => {
            complain(&error.context("cannot open the main config file!"));
            None
        }
    }
}

/// `-nf`: only parses.
pub fn check(args: &Args, file: &str) -> Result<ExitCode> {
    let Some(source) = open(file) else { return Ok(ExitCode::FAILURE) };
    Ok(match read_rules(args, &source, &host::read()?)? {
        Some(_) => ExitCode::SUCCESS,
        None => ExitCode::FAILURE,
    })
}

/// `-f`: replaces the rules in force, with `-a` those of an anchor. If anything is wrong they stay
/// as they are.
pub fn load(args: &Args, file: &str) -> Result<ExitCode> {
    let host = host::read()?;
    let source = open(file);
    // of two large rule sets the old one is read while the new one is parsed
    let known = match args.anchor {
        None => access::open(args).ok().flatten().map(|instance| (instance.read_ahead(), instance)),
        Some(_) => None,
    };
    let loaded = source.as_ref().map(|source| read_rules(args, source, &host)).transpose()?;
    let Some(loaded) = loaded.flatten() else {
        eprintln!("pfctl: Syntax error in config file: pf rules not loaded");
        return Ok(ExitCode::FAILURE);
    };
    put_in_force(args, loaded.ruleset, &host, known)?;
    Ok(ExitCode::SUCCESS)
}

/// `-T load`: the tables of a rule set come into force, its rules do not.
pub fn load_tables(args: &Args) -> Result<ExitCode> {
    let Some(file) = &args.file else { return Err(UsageError.into()) };
    let host = host::read()?;
    let source = open(file);
    let loaded = source.as_ref().map(|source| read_rules(args, source, &host)).transpose()?;
    let Some(loaded) = loaded.flatten() else {
        eprintln!("pfctl: Syntax error in config file: pf rules not loaded");
        return Ok(ExitCode::FAILURE);
    };
    if args.no_action {
        return Ok(ExitCode::SUCCESS);
    }
    let path = args.anchor.as_ref().map_or("", |anchor| &anchor.path);
    let mut instance = create(args)?;
    let mut ruleset = instance.loaded()?.ruleset;
    let rules = ruleset.rules_of(path).to_vec();
    let new = loaded.ruleset.tables;
    let defined: HashSet<&str> = new.iter().map(|table| table.name.as_str()).collect();
    let mut tables = ruleset.tables_of(path).to_vec();
    tables.retain(|table| !defined.contains(table.name.as_str()));
    // those that stay keep what is in them now
    tables.iter_mut().for_each(|table| table.initialized = false);
    tables.extend(new.iter().filter(|table| table.defined).cloned());
    if path.is_empty() {
        ruleset.tables = tables;
        instance.load(ruleset, &host)?;
    } else {
        let anchor = Ruleset { rules, tables, ..Ruleset::default() };
        instance.load_anchor(path, &anchor, &host)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Puts what was read in force, in place of what is `known` already if that is still there.
fn put_in_force(
    args: &Args,
    ruleset: Ruleset,
    host: &Host,
    known: Option<(Ahead, Instance)>,
) -> Result<()> {
    for setting in routing::closed_across(&ruleset) {
        eprintln!(
            "pfctl: warning: this host does not forward, and drops what af-to takes across: \
             sysctl -w {setting}=1"
        );
    }
    let path = args.anchor.as_ref().map_or("", |anchor| &anchor.path);
    if !path.is_empty() {
        let mut instance = create(args)?;
        instance.load_anchor(path, &ruleset, host)?;
        return warn_of_long_walk(&instance);
    }
    if let Some(warning) = session::warning(args, &ruleset, host)? {
        eprintln!("pfctl: warning: {warning}");
    }
    let states = ruleset.options.limits.states;
    let instance = match known.filter(|(_, instance)| instance.is_current()) {
        Some((ahead, mut instance)) => {
            instance.load_ahead(ruleset, host, ahead)?;
            instance
        }
        None => {
            let mut instance = Instance::open_or_create(&instance_name(args), states)?;
            instance.load(ruleset, host)?;
            instance
        }
    };
    if instance.running() {
        warn_of_interfaces(&instance)?;
    }
    warn_of_long_walk(&instance)
}

/// Warns of rules for which a packet may keep a CPU longer than a millisecond. They are in force:
/// a load that fails would leave an old rule set in force, and how many packets go so far only the
/// user knows.
fn warn_of_long_walk(instance: &Instance) -> Result<()> {
    let rules = instance.longest_walk();
    if rules <= LONG_WALK {
        return Ok(());
    }
    let options = instance.loaded()?.ruleset.options;
    let advice = match options.evaluator {
        Evaluator::Linear | Evaluator::SkipSteps => {
            "`set evaluator compiled` searches most rules instead of walking them"
        }
        Evaluator::Compiled if !options.reassemble => {
            "no tree searches rules for fragments, which `set reassemble yes` puts together first"
        }
        Evaluator::Compiled => {
            "no tree can search some of them: put a `quick` rule for most packets before these, or \
             put them into an anchor that few packets enter"
        }
    };
    eprintln!(
        "pfctl: warning: a packet may be tested against {rules} rules, and more than {LONG_WALK} \
         take over a millisecond: {advice}"
    );
    Ok(())
}

/// Names the interfaces that are not filtered, and those that `set xdp on` names and that do
/// without XDP, with the reasons. Packets of the latter are filtered all the same.
pub fn warn_of_interfaces(instance: &Instance) -> Result<()> {
    let fate = if instance.is_guarded() { "are dropped" } else { "pass" };
    for (interface, why) in instance.unattached()? {
        eprintln!(
            "pfctl: warning: {interface}: not filtered, its packets {fate}: {why}: mend that, \
             then run `pfctl -e` again"
        );
    }
    if instance.lacks_guard() {
        eprintln!(
            "pfctl: warning: this kernel has no BPF programs for netfilter: interfaces that appear \
             are open until skipstepd attaches them; write `set unattached pass` if you know"
        );
    }
    for (interface, why) in instance.without_xdp()? {
        eprintln!("pfctl: {interface}: no XDP: {why}");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn localhost_has_addresses_of_both_families() {
        assert_eq!(addresses_of("localhost").first(), Some(&"127.0.0.1".parse().unwrap()));
    }
}
