//! `pfctl doctor`: checks the host and the filter, and names the command that mends each fault.
//!
//! Each module has a group of checks. `collect` reads facts, and `judge` turns facts into findings.
//! A fact that this user may not read is a finding, too.

mod clock;
mod failsafe;
mod filter;
pub mod finding;
mod interfaces;
mod kernel;
mod limits;
mod log;
mod marks;
mod netfilter;
mod settings;
mod units;

use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Error, Result, bail};
use nix::unistd::geteuid;
use skipstep_kernel::Instance;
use skipstep_kernel::instance::Loaded;
use skipstep_kernel::report::InstanceStatus;
use skipstep_ruleset::interface::Host;

use self::finding::Finding;
use crate::access::{instance_name, open, read_host};
use crate::output::print;
use crate::request::Args;
use crate::shell;

/// The file that the units of systemd load, and proposed commands without `-f`.
const FILE: &str = "/etc/pf.conf";

/// Checks the host and the filter, and prints the findings; with `-q` only faults. The exit status
/// is 0 without faults, 1 with warnings, and 2 with failures.
///
/// # Errors
/// Fails if the host's interfaces cannot be read, if there is no interface of the name in `-i`, or
/// if standard output cannot be written.
pub fn run(args: &Args) -> Result<ExitCode> {
    let mut findings = check(&Inputs::new(args)?)?;
    let status = finding::status(&findings);
    if args.quiet {
        findings.retain(|finding| finding.level != finding::Level::Ok);
    }
    print(&match args.json {
        true => format!("{:#}\n", finding::json(&findings)),
        false => finding::text(&findings),
    })?;
    Ok(ExitCode::from(status))
}

/// The command line, the host and the filter: the inputs of all checks.
struct Inputs<'a> {
    args: &'a Args,
    /// True if this user may read everything.
    is_root: bool,
    host: Host,
    filter: Filter,
}

/// The filter, as far as this user may read it.
enum Filter {
    /// No rules were loaded yet.
    Absent,
    /// Only root may read the filter.
    Hidden,
    /// The filter cannot be read, for this reason.
    Broken(Error),
    /// The filter with its rules and its status.
    Open(Box<(Instance, Loaded, InstanceStatus)>),
}

impl Filter {
    fn read(args: &Args, is_root: bool) -> Self {
        if !is_root {
            return Filter::Hidden;
        }
        let read = || -> Result<Filter> {
            let Some(instance) = open(args)? else { return Ok(Filter::Absent) };
            let (loaded, status) = (instance.loaded()?, instance.status()?);
            Ok(Filter::Open(Box::new((instance, loaded, status))))
        };
        read().unwrap_or_else(Filter::Broken)
    }
}

impl<'a> Inputs<'a> {
    fn new(args: &'a Args) -> Result<Self> {
        let is_root = geteuid().is_root();
        let filter = Filter::read(args, is_root);
        Ok(Inputs { args, is_root, host: read_host()?, filter })
    }

    /// Returns filter, rules and status, if this user may read them.
    fn open(&self) -> Option<&(Instance, Loaded, InstanceStatus)> {
        match &self.filter {
            Filter::Open(open) => Some(open),
            _ => None,
        }
    }

    /// Returns the words of proposed commands.
    fn words(&self) -> Words {
        let instance = self.args.instance.as_ref().map(|name| format!(" -p {name}"));
        let instance = instance.unwrap_or_default();
        Words {
            pfctl: format!("pfctl{instance}"),
            skipstepd: format!("skipstepd{instance}"),
            file: shell::quoted(self.args.file.as_deref().unwrap_or(FILE)),
        }
    }

    /// True if the units of systemd are those of this filter.
    fn is_main(&self) -> bool {
        instance_name(self.args) == "main"
    }
}

/// Words of the commands that findings propose.
struct Words {
    /// pfctl with the instance of `-p`.
    pfctl: String,
    /// skipstepd with the instance of `-p`.
    skipstepd: String,
    /// File of the rules.
    file: String,
}

/// Runs all checks, or with `-i` those of the filter and of the interface.
///
/// # Errors
/// Fails if there is no interface of the name in `-i`.
fn check(inputs: &Inputs) -> Result<Vec<Finding>> {
    let words = inputs.words();
    let filter = filter::judge(&filter::collect(inputs), &words);
    let interfaces =
        seen("interfaces", interfaces::collect(inputs), |it| interfaces::judge(&it, &words));
    if let Some(name) = &inputs.args.interface {
        if !inputs.host.interfaces.iter().any(|interface| interface.name == *name) {
            bail!("{name}: no such interface");
        }
        return Ok([filter, interfaces].concat());
    }
    let tables = netfilter::collect(inputs.is_root);
    let groups = [
        kernel::judge(&kernel::collect()),
        filter,
        failsafe::judge(&failsafe::collect(inputs), &words),
        interfaces,
        netfilter::judge(&tables, inputs.open().is_some_and(|(.., status)| status.running)),
        marks::judge(&marks::collect(&tables)),
        settings::judge(&settings::collect(inputs, &tables)),
        seen("skipstepd", units::collect(inputs), |it| units::judge(&it, &words)),
        clock::judge(&clock::collect(inputs), &words),
        log::judge(&log::collect(inputs), &words),
        seen("limits", limits::collect(inputs), |it| limits::judge(&it, &words)),
    ];
    Ok(groups.concat())
}

/// Judges facts, or reports the reason why they cannot be read.
fn seen<F>(subject: &str, facts: Result<F>, judge: impl Fn(F) -> Vec<Finding>) -> Vec<Finding> {
    facts.map_or_else(|error| vec![Finding::unseen(subject, &format!("{error:#}"))], judge)
}

#[cfg(test)]
impl Words {
    /// Returns the words without flags.
    fn usual() -> Self {
        let [pfctl, skipstepd, file] = ["pfctl", "skipstepd", FILE].map(str::to_owned);
        Words { pfctl, skipstepd, file }
    }
}

/// True if systemd runs.
fn has_systemd() -> bool {
    Path::new("/run/systemd/system").exists()
}

/// Returns the standard output of a program; `None` if there is no such program, or if it fails.
fn output_of(program: &str, arguments: &[&str]) -> Option<String> {
    let mut command = Command::new(program);
    command.args(arguments).env("LC_ALL", "C").stdin(Stdio::null()).stderr(Stdio::null());
    let output = command.output().ok().filter(|output| output.status.success())?;
    String::from_utf8(output.stdout).ok()
}
