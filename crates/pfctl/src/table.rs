//! `-T`: commands on a table's addresses. A command is planned first and executed then, so `-n`
//! prints the same without a change.

use std::collections::{HashMap, HashSet};
use std::net::IpAddr;
use std::process::ExitCode;
use std::time::SystemTime;

use anyhow::{Result, bail};
use ipnet::IpNet;
use skipstep_kernel::contents::EntryInfo;
use skipstep_kernel::table::TableInfo;
use skipstep_kernel::{Instance, host};
use skipstep_pfconf::{Context, Names};
use skipstep_ruleset::{TableEntry, TableName};

use crate::access::{create, open};
use crate::filter::Filter;
use crate::load::{Source, report};
use crate::output::print;
use crate::refusal::UsageError;
use crate::request::Args;
use crate::show::Detail;
use crate::show::tables::{Contents, Lookup, contents, contents_json, entry_line, test};
use crate::words::TableCommand;
use crate::{live, load, views};

/// Exit status of a failed table command, as of OpenBSD's pfctl.
const TABLE_ERROR: u8 = 255;
/// Exit status of `-T test` if an address does not match, as of OpenBSD's pfctl.
const NO_MATCH: u8 = 2;

/// The effect of a command on an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Feedback {
    /// no effect
    None,
    /// the address is added
    Added,
    /// the address is deleted
    Deleted,
    /// the negation of the address changes
    Changed,
    /// the counters of the address are cleared
    Cleared,
    /// the address was given twice
    Duplicate,
    /// the table has the address with the opposite negation
    Conflict,
}

impl Feedback {
    /// Returns OpenBSD's letter.
    fn letter(self) -> char {
        match self {
            Feedback::None => ' ',
            Feedback::Added => 'A',
            Feedback::Deleted => 'D',
            Feedback::Changed => 'C',
            Feedback::Cleared => 'Z',
            Feedback::Duplicate => 'X',
            Feedback::Conflict => 'Y',
        }
    }
}

/// Addresses with the effect of the command on each.
type Plan = Vec<(TableEntry, Feedback)>;

/// Returns the networks of a table, with true for negated entries.
fn negations(current: &[TableEntry]) -> HashMap<IpNet, bool> {
    current.iter().map(|entry| (entry.net, entry.negated)).collect()
}

fn plan_add(current: &[TableEntry], given: &[TableEntry]) -> Plan {
    let (there, mut seen) = (negations(current), HashSet::new());
    let feedback = |entry: &TableEntry| match there.get(&entry.net) {
        None if !seen.insert(entry.net) => Feedback::Duplicate,
        None => Feedback::Added,
        Some(negated) if *negated != entry.negated => Feedback::Conflict,
        Some(_) => Feedback::None,
    };
    given.iter().copied().zip(given.iter().map(feedback)).collect()
}

fn plan_delete(current: &[TableEntry], given: &[TableEntry]) -> Plan {
    let (there, mut seen) = (negations(current), HashSet::new());
    let feedback = |entry: &TableEntry| match there.get(&entry.net) {
        None => Feedback::None,
        Some(negated) if *negated != entry.negated => Feedback::Conflict,
        Some(_) if !seen.insert(entry.net) => Feedback::Duplicate,
        Some(_) => Feedback::Deleted,
    };
    given.iter().copied().zip(given.iter().map(feedback)).collect()
}

fn plan_replace(current: &[TableEntry], given: &[TableEntry]) -> Plan {
    let (there, mut seen) = (negations(current), HashSet::new());
    let feedback = |entry: &TableEntry| match there.get(&entry.net) {
        _ if !seen.insert(entry.net) => Feedback::Duplicate,
        None => Feedback::Added,
        Some(negated) if *negated != entry.negated => Feedback::Changed,
        Some(_) => Feedback::None,
    };
    let mut plan: Plan = given.iter().copied().zip(given.iter().map(feedback)).collect();
    let gone = current.iter().filter(|entry| !seen.contains(&entry.net));
    plan.extend(gone.map(|&entry| (entry, Feedback::Deleted)));
    plan
}

fn plan_zero(current: &[TableEntry], given: &[TableEntry]) -> Plan {
    let there = negations(current);
    let feedback = |entry: &TableEntry| match there.get(&entry.net) {
        None => Feedback::None,
        Some(_) => Feedback::Cleared,
    };
    given.iter().copied().zip(given.iter().map(feedback)).collect()
}

/// Removes repetitions of a network; the first entry stays.
fn first_of_each(given: &[TableEntry]) -> Vec<TableEntry> {
    let mut seen = HashSet::new();
    given.iter().copied().filter(|entry| seen.insert(entry.net)).collect()
}

fn entries_with(plan: &Plan, wanted: Feedback) -> Vec<TableEntry> {
    plan.iter().filter(|(_, feedback)| *feedback == wanted).map(|(entry, _)| *entry).collect()
}

/// Prints the addresses for `-v` (those with an effect) or `-vv` (all).
fn plan_text(plan: &Plan, verbose: u8) -> String {
    plan.iter()
        .filter(|(_, feedback)| verbose >= 2 || (verbose == 1 && *feedback != Feedback::None))
        .map(|(entry, feedback)| entry_line(feedback.letter(), *entry) + "\n")
        .collect()
}

/// Executes a table command.
///
/// # Errors
/// Fails if the command line is wrong, if the user is not root, or if the host or table cannot be
/// read. Also fails if the kernel part refuses the change. A missing or constant table is no error
/// here, but gives OpenBSD's message and exit status.
pub fn run(args: &Args, command: TableCommand) -> Result<ExitCode> {
    let Some(name) = &args.table else { return load::load_tables(args) };
    let name = &TableName::new(args.anchor.as_ref().map_or("", |anchor| &anchor.path), name);
    let seconds = match command {
        TableCommand::Expire => Some(expiry(&args.operands)?),
        _ => None,
    };
    let takes_addresses = !matches!(
        command,
        TableCommand::Show | TableCommand::Flush | TableCommand::Kill | TableCommand::Expire
    );
    if !takes_addresses && (args.file.is_some() || !args.operands.is_empty() && seconds.is_none()) {
        return Err(UsageError.into());
    }
    let Some(given) = (if takes_addresses {
        addresses(args, command == TableCommand::Test)?
    } else {
        Some(Vec::new())
    }) else {
        return Ok(ExitCode::from(TABLE_ERROR));
    };
    let instance = open(args)?;
    let table = match &instance {
        Some(instance) => Table::find(instance, name)?,
        None => None,
    };
    let creates = matches!(command, TableCommand::Add | TableCommand::Replace | TableCommand::Kill);
    if table.is_none() && !creates {
        eprintln!("pfctl: Table does not exist.");
        return Ok(ExitCode::from(TABLE_ERROR));
    }
    let changes = !matches!(command, TableCommand::Show | TableCommand::Test | TableCommand::Zero);
    if changes && table.as_ref().is_some_and(|table| table.info.constant) {
        eprintln!("pfctl: Operation not permitted.");
        return Ok(ExitCode::from(TABLE_ERROR));
    }
    let instance = match instance {
        _ if args.no_action => None,
        None => Some(create(args)?),
        some => some,
    };
    let created = table.is_none();
    let infos = table.map(|table| table.entries).unwrap_or_default();
    let entries: Vec<TableEntry> = infos.iter().map(|info| info.entry).collect();
    let work = Work { args, name, instance: instance.as_ref(), created };
    match command {
        TableCommand::Add => work.add(&entries, &given),
        TableCommand::Delete => work.delete(&entries, &given),
        TableCommand::Replace => work.replace(&entries, &given),
        TableCommand::Flush => work.flush(&entries),
        TableCommand::Kill => work.kill(),
        TableCommand::Zero => work.zero(&entries, &given),
        TableCommand::Expire => work.expire(&infos, seconds.unwrap_or(0)),
        TableCommand::Show => {
            print(&shown(&infos, args))?;
            Ok(ExitCode::SUCCESS)
        }
        TableCommand::Test => {
            let tested = tested(&infos, &given, args);
            if !args.quiet {
                eprintln!("{}", tested.summary);
            }
            print(&tested.text)?;
            Ok(ExitCode::from(tested.status))
        }
        TableCommand::Load => bail!("-T load takes no table"),
    }
}

/// Parses the operand of `-T expire`, as strtonum(3) does. The unit is seconds.
fn expiry(operands: &[String]) -> Result<u32> {
    let [seconds] = operands else { return Err(UsageError.into()) };
    match seconds.parse::<i128>() {
        Ok(seconds) => match u32::try_from(seconds) {
            Ok(seconds) => Ok(seconds),
            Err(_) if seconds < 0 => bail!("expiry time: too small"),
            Err(_) => bail!("expiry time: too large"),
        },
        Err(_) => bail!("expiry time: invalid"),
    }
}

/// Parses the addresses of operands and file. If one is wrong, prints a message and returns `None`.
fn addresses(args: &Args, hosts_only: bool) -> Result<Option<Vec<TableEntry>>> {
    let mut sources = Vec::new();
    if !args.operands.is_empty() {
        sources.push(Source { name: "command line".into(), text: args.operands.join(" ") });
    }
    if let Some(file) = &args.file {
        sources.push(Source::read(file)?);
    }
    let host = host::read()?;
    let mut entries = Vec::new();
    for source in &sources {
        let context = Context {
            file_name: &source.name,
            names: Names::builtin(),
            resolve: load::resolver(args),
            ..Context::new(&host)
        };
        match skipstep_pfconf::table_file(&source.text, &context) {
            Ok(read) => entries.extend(read),
            Err(mut diagnostic) => {
                // an operand has no line in a file
                diagnostic.bare = args.file.as_ref() != Some(&source.name);
                report(std::slice::from_ref(&diagnostic));
                return Ok(None);
            }
        }
    }
    let is_host = |entry: &TableEntry| entry.net.prefix_len() == entry.net.max_prefix_len();
    if hosts_only && let Some(entry) = entries.iter().find(|entry| !is_host(entry)) {
        eprintln!("pfctl: cannot decode {}: only single addresses can be tested", entry.net);
        return Ok(None);
    }
    Ok(Some(entries))
}

/// A table that exists, with its entries.
pub struct Table {
    info: TableInfo,
    /// Entries with their counters.
    pub entries: Vec<EntryInfo>,
}

impl Table {
    /// Looks a table up by name. A table that only rules name does not exist, so the result is
    /// `None`.
    ///
    /// # Errors
    /// Fails if the tables or the entries cannot be read.
    pub fn find(filter: &dyn Filter, name: &TableName) -> Result<Option<Table>> {
        let found = filter.tables()?.into_iter().find(|table| table.name == *name);
        let Some(info) = found.filter(|table| table.active) else {
            return Ok(None);
        };
        let entries = filter.table_entries(name)?;
        Ok(Some(Table { info, entries }))
    }
}

/// A table command in execution. Without an instance (`-n`) it changes nothing.
struct Work<'a> {
    args: &'a Args,
    name: &'a TableName,
    instance: Option<&'a Instance>,
    created: bool,
}

impl Work<'_> {
    fn report(&self, message: &str) {
        if !self.args.quiet {
            let dummy = if self.instance.is_none() { " (dummy)" } else { "" };
            eprintln!("{message}{dummy}.");
        }
    }

    fn add(&self, current: &[TableEntry], given: &[TableEntry]) -> Result<ExitCode> {
        let plan = plan_add(current, given);
        let added = entries_with(&plan, Feedback::Added);
        if let Some(instance) = self.instance {
            instance.table_add(self.name, &added)?;
        }
        self.report_created();
        self.report(&format!("{}/{} addresses added", added.len(), given.len()));
        self.finish(&plan)
    }

    fn delete(&self, current: &[TableEntry], given: &[TableEntry]) -> Result<ExitCode> {
        let plan = plan_delete(current, given);
        let deleted = entries_with(&plan, Feedback::Deleted);
        if let Some(instance) = self.instance {
            instance.table_delete(self.name, &deleted)?;
        }
        self.report(&format!("{}/{} addresses deleted", deleted.len(), given.len()));
        self.finish(&plan)
    }

    fn replace(&self, current: &[TableEntry], given: &[TableEntry]) -> Result<ExitCode> {
        let plan = plan_replace(current, given);
        if let Some(instance) = self.instance {
            instance.table_replace(self.name, &first_of_each(given))?;
        }
        self.report_created();
        let counts = [
            (Feedback::Added, "added"),
            (Feedback::Deleted, "deleted"),
            (Feedback::Changed, "changed"),
        ]
        .map(|(feedback, word)| (entries_with(&plan, feedback).len(), word));
        for (count, word) in counts.iter().filter(|(count, _)| *count > 0) {
            self.report(&format!("{count} addresses {word}"));
        }
        if counts.iter().all(|(count, _)| *count == 0) {
            self.report("no changes");
        }
        self.finish(&plan)
    }

    fn flush(&self, current: &[TableEntry]) -> Result<ExitCode> {
        if let Some(instance) = self.instance {
            instance.table_flush(self.name)?;
        }
        self.report(&format!("{} addresses deleted", current.len()));
        Ok(ExitCode::SUCCESS)
    }

    fn kill(&self) -> Result<ExitCode> {
        if let (Some(instance), false) = (self.instance, self.created) {
            instance.table_kill(self.name)?;
        }
        self.report(&format!("{} table deleted", u32::from(!self.created)));
        Ok(ExitCode::SUCCESS)
    }

    fn zero(&self, current: &[TableEntry], given: &[TableEntry]) -> Result<ExitCode> {
        if given.is_empty() && self.args.file.is_none() {
            if let Some(instance) = self.instance {
                instance.table_zero(self.name)?;
            }
            self.report("1 table/stats cleared");
            return Ok(ExitCode::SUCCESS);
        }
        let plan = plan_zero(current, given);
        let cleared = entries_with(&plan, Feedback::Cleared);
        if let Some(instance) = self.instance {
            instance.table_zero_entries(self.name, &cleared)?;
        }
        self.report(&format!("{}/{} addresses cleared", cleared.len(), given.len()));
        self.finish(&plan)
    }

    fn expire(&self, current: &[EntryInfo], seconds: u32) -> Result<ExitCode> {
        let now = views::seconds(SystemTime::now());
        let old = current.iter().filter(|info| now - i64::from(info.cleared) >= seconds.into());
        let plan: Plan = old.map(|info| (info.entry, Feedback::Deleted)).collect();
        if let Some(instance) = self.instance {
            instance.table_delete(self.name, &entries_with(&plan, Feedback::Deleted))?;
        }
        self.report(&format!("{}/{} addresses expired", plan.len(), plan.len()));
        self.finish(&plan)
    }

    fn report_created(&self) {
        if self.created {
            self.report("1 table created");
        }
    }

    fn finish(&self, plan: &Plan) -> Result<ExitCode> {
        print(&plan_text(plan, self.args.verbose))?;
        Ok(ExitCode::SUCCESS)
    }
}

/// Returns the output of `-T show` for these entries.
pub fn shown(entries: &[EntryInfo], args: &Args) -> String {
    let addresses = views::addresses(entries);
    let detail = Detail { verbose: args.verbose, debug: args.debug };
    let host_name: Option<&dyn Fn(IpAddr) -> String> =
        if args.host_names { Some(&live::host_name) } else { None };
    match args.json {
        true => format!("{:#}\n", contents_json(&addresses)),
        false => contents(&addresses, detail, host_name),
    }
}

/// The output of `-T test`.
pub struct Tested {
    /// Text for standard output.
    pub text: String,
    /// Closing line for standard error.
    pub summary: String,
    /// Exit status: 0 if all addresses match, else 2.
    pub status: u8,
}

/// Looks the `given` addresses up in a table with these entries.
pub fn tested(entries: &[EntryInfo], given: &[TableEntry], args: &Args) -> Tested {
    let contents = Contents::new(entries.iter().map(|info| info.entry));
    let lookups: Vec<Lookup> =
        given.iter().map(|given| contents.look_up(given.net.addr())).collect();
    let matches = lookups.iter().filter(|lookup| lookup.matches()).count();
    Tested {
        text: test(&lookups, Detail { verbose: args.verbose, debug: args.debug }),
        summary: format!("{matches}/{} addresses match.", lookups.len()),
        status: if matches < lookups.len() { NO_MATCH } else { 0 },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(text: &str) -> Vec<TableEntry> {
        let entry = |word: &str| {
            let net = word.trim_start_matches('!');
            let net = net
                .parse()
                .unwrap_or_else(|_| IpNet::from(net.parse::<std::net::IpAddr>().unwrap()));
            TableEntry { negated: word.starts_with('!'), net, weight: 0 }
        };
        text.split_whitespace().map(entry).collect()
    }

    fn lines(plan: Plan) -> String {
        plan_text(&plan, 2).replace('\n', ";")
    }

    const CURRENT: &str = "10.0.0.1 10.1.0.0/16 !10.1.1.1";

    #[test]
    fn adding_leaves_present_addresses_alone() {
        let given = entries("10.0.0.1 10.0.0.1 10.0.0.2 10.0.0.2 10.1.1.1");
        let plan = plan_add(&entries(CURRENT), &given);
        let expected = "   10.0.0.1;   10.0.0.1;A  10.0.0.2;X  10.0.0.2;Y  10.1.1.1;";
        assert_eq!(lines(plan), expected);
    }

    #[test]
    fn deleting_takes_the_exact_address() {
        let given = entries("10.0.0.1 10.0.0.1 10.1.0.1 10.1.1.1 !10.1.1.1");
        let plan = plan_delete(&entries(CURRENT), &given);
        assert_eq!(lines(plan), "D  10.0.0.1;X  10.0.0.1;   10.1.0.1;Y  10.1.1.1;D !10.1.1.1;");
    }

    #[test]
    fn replacing_deletes_addresses_that_are_not_given() {
        let given = entries("10.0.0.1 10.1.1.1 10.2.0.0/16");
        let plan = plan_replace(&entries(CURRENT), &given);
        assert_eq!(lines(plan), "   10.0.0.1;C  10.1.1.1;A  10.2.0.0/16;D  10.1.0.0/16;");
    }

    #[test]
    fn clearing_takes_the_exact_address() {
        let plan = plan_zero(&entries(CURRENT), &entries("10.0.0.1 10.1.0.1 !10.1.1.1"));
        assert_eq!(lines(plan), "Z  10.0.0.1;   10.1.0.1;Z !10.1.1.1;");
    }

    #[test]
    fn expiry_is_a_number_of_seconds() {
        let read = |text: &str| expiry(&[text.to_owned()]).map_err(|error| error.to_string());
        assert_eq!(read("3600"), Ok(3600));
        assert_eq!(read("-1"), Err("expiry time: too small".into()));
        assert_eq!(read("1h"), Err("expiry time: invalid".into()));
        assert!(expiry(&[]).is_err());
    }

    #[test]
    fn one_v_lists_only_changed_addresses() {
        let plan = plan_add(&entries(CURRENT), &entries("10.0.0.1 10.0.0.2"));
        assert_eq!(plan_text(&plan, 0), "");
        assert_eq!(plan_text(&plan, 1), "A  10.0.0.2\n");
    }
}
