//! `-f`: reads a file and loads its rules.

use std::io::{IsTerminal, Read};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, ToSocketAddrs};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use skipstep_classifier::LONG_WALK;
use skipstep_kernel::{Error, Instance, ReadAhead, host, routing};
use skipstep_pfconf::{Context, Diagnostic, Dialect, Loaded, Names, Rejected, Severity};
use skipstep_ruleset::automatic::AutomaticTables;
use skipstep_ruleset::fingerprint;
use skipstep_ruleset::interface::Host;
use skipstep_ruleset::optimize::Counted;
use skipstep_ruleset::{Evaluator, Ruleset};

use crate::access::{self, create, instance_name};
use crate::failsafe;
use crate::output::{complain, print};
use crate::refusal::UsageError;
use crate::request::Args;
use crate::session;
use crate::trial;
use crate::verbs::Verb;

/// A text and its name in messages.
pub struct Source {
    /// Path, or `stdin`.
    pub name: String,
    /// Contents of the file.
    pub text: String,
}

impl Source {
    /// Reads `file`, or standard input if `file` is `-`.
    ///
    /// # Errors
    /// Fails if the file cannot be read or is not UTF-8.
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

/// Parses a rule set with the interfaces, names and files of this host.
///
/// # Errors
/// Fails with the diagnostics if the text has an error.
pub fn parse(source: &Source, args: &Args, host: &Host) -> Result<Loaded, Rejected> {
    in_context(source, args, host, resolver(args), |context| {
        skipstep_pfconf::load(&source.text, context)
    })
}

/// Parses the failsafe list of this host. `None` if there is none.
///
/// # Errors
/// Fails with the diagnostics if the list cannot be read, or has an error.
pub fn failsafe_list(args: &Args, host: &Host) -> Option<Result<Loaded, Rejected>> {
    let nothing = Source { name: String::new(), text: String::new() };
    in_context(&nothing, args, host, resolver(args), skipstep_pfconf::failsafe::read)
}

/// Calls `use_it` with the context of this host. `resolve` looks host names up.
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
        failsafe: &failsafe::read,
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
            true => AutomaticTables::for_display(),
            false => AutomaticTables::for_loading(fastrand::u32(..)),
        },
        random: match args.verb {
            // both rule sets get the same value for a random key
            Some(Verb::Diff) => &|| 0,
            _ => Context::new(host).random,
        },
        echo: args.verbose > 0,
        port_names: args.port_names,
        ..Context::new(host)
    };
    use_it(&context)
}

/// Implements `--room-for`: sizes the maps for the limits and rules of a file. If memory or the
/// file is missing, it prints a warning and leaves the sizes as they are, because other rules are
/// loaded next.
///
/// # Errors
/// Fails if the host cannot be read, or if the instance cannot be opened or made for another reason
/// than memory.
pub fn make_room(args: &Args, file: &str) -> Result<()> {
    let source = match Source::read(file) {
        Ok(source) => source,
        Err(error) => {
            eprintln!("pfctl: warning: {error:#}: no memory is reserved for its rules");
            return Ok(());
        }
    };
    // at boot no name service answers yet, so each name counts as two addresses
    let resolve = |_: &str| vec![Ipv4Addr::UNSPECIFIED.into(), Ipv6Addr::UNSPECIFIED.into()];
    let room = in_context(&source, args, &host::read()?, &resolve, |context| {
        skipstep_pfconf::room(&source.text, context)
    });
    let (limits, rules) = (&room.limits, room.rules as u32);
    match Instance::open_with_room(&instance_name(args), limits, rules) {
        Ok(_) => {}
        Err(error @ Error::Bpf { .. }) => eprintln!(
            "pfctl: warning: no memory for the limits of {file} ({} states, {} source nodes, \
             {rules} rules): {error}: lower its limits",
            limits.states, limits.src_nodes
        ),
        Err(error) => return Err(error.into()),
    }
    Ok(())
}

/// Returns the queues of the loaded main rule set that rules of an anchor (`-a`) can name. Returns
/// none if the filter cannot be read.
fn queues_in_force(args: &Args) -> Vec<String> {
    let is_anchor = args.anchor.as_ref().is_some_and(|anchor| !anchor.path.is_empty());
    let loaded = is_anchor.then(|| access::open(args).ok()??.loaded().ok()).flatten();
    let queues = loaded.into_iter().flat_map(|loaded| loaded.ruleset.queues);
    queues.filter(|queue| queue.parent.is_some()).map(|queue| queue.name).collect()
}

/// Returns the loaded rules with their packet counters for `-o profile`. Returns none if the filter
/// cannot be read.
fn profile(args: &Args, path: &str) -> Vec<Counted> {
    let Ok(Some(instance)) = access::open(args) else { return Vec::new() };
    let (Ok(loaded), Ok(counters)) = (instance.loaded(), instance.rule_counters(path)) else {
        return Vec::new();
    };
    let rules = loaded.ruleset.rules_of(path).iter().cloned();
    let packets = counters.iter().map(|counters| counters.packets.iter().sum());
    rules.zip(packets).map(|(rule, packets)| Counted { rule, packets }).collect()
}

/// Reads the host's fingerprints, or the built-in ones if the host has no file.
///
/// # Errors
/// Fails if the file exists and cannot be read.
pub fn fingerprints() -> std::io::Result<String> {
    match std::fs::read_to_string(fingerprint::FILE) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            Ok(fingerprint::BUILT_IN.to_owned())
        }
        text => text,
    }
}

/// Returns the resolver of host names. With `-N` the resolver finds no addresses.
pub fn resolver(args: &Args) -> &'static (dyn Fn(&str) -> Vec<IpAddr> + Sync) {
    if args.no_dns { &|_| Vec::new() } else { &addresses_of }
}

/// Returns the addresses of a host name from the system's name service, IPv4 first. Returns none if
/// the lookup fails.
pub fn addresses_of(name: &str) -> Vec<IpAddr> {
    let Ok(found) = (name, 0).to_socket_addrs() else { return Vec::new() };
    let mut addresses: Vec<IpAddr> = found.map(|address| address.ip()).collect();
    addresses.sort_by_key(IpAddr::is_ipv6);
    addresses.dedup();
    addresses
}

/// Prints diagnostics as OpenBSD's lines; on a terminal, the source line follows.
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

/// Parses a source and prints the diagnostics and, with `-v`, the rules. Returns `None` if the
/// source has an error.
fn read_rules(args: &Args, source: &Source, host: &Host) -> Result<Option<Loaded>> {
    match parse(source, args, host) {
        Ok(loaded) => {
            // OpenBSD reports unused macros with `-vv` only
            let mut warnings = loaded.warnings.clone();
            warnings.retain(|warning| warning.kind != Severity::Note || args.verbose >= 2);
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

/// Reads the file of `-f`; on failure prints a message and returns `None`.
fn open(file: &str) -> Option<Source> {
    match Source::read(file) {
        Ok(source) => Some(source),
        Err(error) => {
            complain("pfctl", &error.context("cannot open the main config file!"));
            None
        }
    }
}

/// Implements `-nf`: parses a file and prints the diagnostics.
///
/// # Errors
/// Fails if the host cannot be read or standard output cannot be written. Errors in the file give
/// exit status 1.
pub fn check(args: &Args, file: &str) -> Result<ExitCode> {
    let Some(source) = open(file) else { return Ok(ExitCode::FAILURE) };
    Ok(match read_rules(args, &source, &host::read()?)? {
        Some(_) => ExitCode::SUCCESS,
        None => ExitCode::FAILURE,
    })
}

/// Implements `-f`: replaces the loaded rules, or with `-a` the rules of an anchor. If there is an
/// error, the loaded rules stay.
///
/// # Errors
/// Fails if the user is not root, if the host cannot be read, or if the kernel part refuses the
/// rules. Errors in the file give exit status 1.
pub fn load(args: &Args, file: &str) -> Result<ExitCode> {
    let host = host::read()?;
    let source = open(file);
    // a thread reads the loaded rule set while the new one is parsed
    let known = match args.anchor {
        None => access::open(args).ok().flatten().map(|instance| (instance.read_ahead(), instance)),
        Some(_) => None,
    };
    let loaded = source.as_ref().map(|source| read_rules(args, source, &host)).transpose()?;
    let Some(loaded) = loaded.flatten() else {
        eprintln!("pfctl: Syntax error in config file: pf rules not loaded");
        return Ok(ExitCode::FAILURE);
    };
    let ruleset = Arc::new(loaded.ruleset);
    if !session::may_load(args, &ruleset, &host)? {
        eprintln!("pfctl: pf rules not loaded");
        return Ok(ExitCode::FAILURE);
    }
    let text = source.map(|source| source.text);
    let ruleset = Arc::unwrap_or_clone(ruleset); // this is the only reference now
    commit(args, (ruleset, text.as_deref()), &host, known)?;
    trial::announce(args);
    Ok(ExitCode::SUCCESS)
}

/// Implements `-T load`: loads the tables of a rule set, but not its rules.
///
/// # Errors
/// Fails without `-f`, and otherwise like [`load`].
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
    create(args)?.load_tables(path, &loaded.ruleset.tables, &host)?;
    Ok(ExitCode::SUCCESS)
}

/// Commits a rule set, which was read from a text. `known` is the result of reading the loaded
/// rules ahead; it is used if the instance is still current.
fn commit(
    args: &Args,
    (ruleset, text): (Ruleset, Option<&str>),
    host: &Host,
    known: Option<(ReadAhead, Instance)>,
) -> Result<()> {
    for setting in routing::closed_across(&ruleset) {
        eprintln!(
            "pfctl: warning: this host does not forward, so it drops packets that af-to \
             translates: run sysctl -w {setting}=1"
        );
    }
    let path = args.anchor.as_ref().map_or("", |anchor| &anchor.path);
    if !path.is_empty() {
        let mut instance = create(args)?;
        instance.load_anchor(path, &ruleset, host)?;
        return warn_of_long_walk(&instance);
    }
    let states = ruleset.options.limits.states;
    let known = known.filter(|(_, instance)| instance.is_current());
    let (ahead, mut instance) = match known {
        Some((ahead, instance)) => (Some(ahead), instance),
        None => (None, Instance::open_or_create(&instance_name(args), states)?),
    };
    if let Some(request) = trial::request(args, text) {
        instance.set_trial(request);
    }
    match ahead {
        Some(ahead) => instance.load_ahead(ruleset, host, ahead)?,
        None => instance.load(ruleset, host)?,
    }
    if instance.has_lost_failsafe_list() {
        eprintln!("pfctl: warning: {}", failsafe::GONE);
    }
    if instance.running() {
        warn_of_interfaces(&instance)?;
    }
    warn_of_long_walk(&instance)
}

/// Warns of rules that can keep a CPU busy with one packet for more than a millisecond. The rules
/// are loaded anyway: a failed load would leave the previous rules in force, and only the user
/// knows how many packets are concerned.
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
            "trees cannot contain rules for fragments: write `set reassemble yes`"
        }
        Evaluator::Compiled => {
            "trees cannot contain some of these rules: put a `quick` rule for most packets in \
             front of them, or put them into an anchor that few packets enter"
        }
    };
    eprintln!(
        "pfctl: warning: a packet may be tested against {rules} rules, and more than {LONG_WALK} \
         take over a millisecond: {advice}"
    );
    Ok(())
}

/// Prints warnings for interfaces that are not filtered, and for interfaces of `set xdp on` whose
/// drivers lack XDP. The latter are filtered on tcx.
///
/// # Errors
/// Fails if the instance's files cannot be read.
pub fn warn_of_interfaces(instance: &Instance) -> Result<()> {
    let fate = if instance.is_guarded() { "are dropped" } else { "pass" };
    for (interface, why) in instance.unattached()? {
        eprintln!(
            "pfctl: warning: {interface}: not filtered, its packets {fate}: {why}: fix this, then \
             run `pfctl -e` again"
        );
    }
    if instance.lacks_guard() {
        eprintln!(
            "pfctl: warning: this kernel has no BPF programs for netfilter: new interfaces pass \
             all packets until skipstepd attaches them; write `set unattached pass` to accept this"
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
