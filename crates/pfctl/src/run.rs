//! Executes the command line in OpenBSD's order: disable, show, flush, kill, tables, load, enable,
//! debug level, store and load states.

use std::io;
use std::process::ExitCode;

use anyhow::{Result, bail};
use skipstep_kernel::Instance;

use crate::access::{create, instance_name, open, read_host};
use crate::args;
use crate::doc::help;
use crate::filter::Filter;
use crate::output::{complain, is_broken_pipe, print};
use crate::refusal::{Refusal, UsageError};
use crate::request::Args;
use crate::verbs::Verb;
use crate::words::debug_level_name;
use crate::{
    anchors, bridge, diff, doctor, drops, explain, flush, import, kill, live, load, log, scenarios,
    state_file, table, trial,
};

/// Parses and executes the command line, prints errors, and returns the exit status.
pub fn main() -> ExitCode {
    let words: Vec<String> =
        std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
    let mut args = match args::parse(&words) {
        Ok(args) => args,
        Err(Refusal::Failure(message)) => return fail(&message),
        Err(Refusal::Usage(message)) => {
            if !message.is_empty() {
                eprintln!("pfctl: {message}");
            }
            eprint!("{}", help::usage());
            return ExitCode::FAILURE;
        }
    };
    match resolve_interface(&mut args).and_then(|()| run(&args)) {
        Ok(status) => status,
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) if error.is::<UsageError>() => {
            eprint!("{}", help::usage());
            ExitCode::FAILURE
        }
        Err(error) => {
            complain("pfctl", &error);
            ExitCode::FAILURE
        }
    }
}

fn fail(message: &str) -> ExitCode {
    eprintln!("pfctl: {message}");
    ExitCode::FAILURE
}

/// Replaces the interface of `-i` by the host's name for it, as in rules.
fn resolve_interface(args: &mut Args) -> Result<()> {
    if let Some(name) = &args.interface {
        args.interface = Some(read_host()?.interface_name(name).to_owned());
    }
    Ok(())
}

fn run(args: &Args) -> Result<ExitCode> {
    if args.version {
        print(&help::version())?;
        return Ok(ExitCode::SUCCESS);
    }
    if args.help {
        print(&match args.verb {
            Some(Verb::Explain) => explain::help(),
            _ => help::help(),
        })?;
        return Ok(ExitCode::SUCCESS);
    }
    match args.verb {
        Some(Verb::Explain) => explain::run(args),
        Some(Verb::Test) => scenarios::run(args),
        Some(Verb::Import) => import::run(args),
        Some(Verb::Fmt) => crate::fmt::run(args),
        Some(Verb::Diff) => diff::run(args),
        Some(Verb::Log) => log::run(args),
        Some(Verb::Drops) => drops::run(args),
        Some(Verb::Bridge) => bridge::run(args),
        Some(Verb::Confirm) => trial::confirm(args),
        Some(Verb::Revert) => trial::revert(args),
        Some(Verb::Doctor) => doctor::run(args),
        None if args.no_action => run_dry(args),
        None => run_flags(args),
    }
}

/// Executes a command line with `-n`: parses the input and changes nothing.
fn run_dry(args: &Args) -> Result<ExitCode> {
    if let Some(command) = args.command {
        return table::run(args, command);
    }
    match &args.file {
        Some(file) => load::check(args, file),
        None => Ok(ExitCode::SUCCESS),
    }
}

fn run_flags(args: &Args) -> Result<ExitCode> {
    let report = |message: &str| {
        if !args.quiet {
            eprintln!("{message}");
        }
    };
    if args.disable {
        match open(args)? {
            Some(instance) if instance.disable()? => report("pf disabled"),
            _ => bail!("pf not enabled"),
        }
    }
    if let Some(token) = args.release {
        report(&release(args, token)?);
    }
    if args.remove {
        // works on instances of other versions, too
        Instance::remove_named(&instance_name(args))?;
        report("pf removed");
    }
    show_and_zero(args)?;
    if let Some(what) = args.flush {
        flush::run(open(args)?.as_mut(), what, args, &report)?;
    }
    if !args.kill.is_empty() {
        report(&kill::run(open(args)?.as_ref(), args)?);
    }
    if !args.kill_sources.is_empty() {
        report(&kill::sources(open(args)?.as_ref(), &args.kill_sources)?);
    }
    if let Some(command) = args.command {
        // the file holds addresses, not rules
        return table::run(args, command);
    }
    if let Some(file) = &args.room_for {
        load::make_room(args, file)?;
    }
    if let Some(file) = &args.file {
        let status = load::load(args, file)?;
        if status != ExitCode::SUCCESS {
            return Ok(status);
        }
    }
    enable(args, &report)?;
    if let Some(level) = args.debug_level {
        create(args)?.set_debug(level)?;
        report(&format!("debug level set to '{}'", debug_level_name(level)));
    }
    if let Some(file) = &args.store_states {
        state_file::store(open(args)?.as_ref(), file)?;
    }
    if let Some(file) = &args.load_states {
        state_file::load(&create(args)?, file)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Implements `-e`, and macOS's `-E`.
fn enable(args: &Args, report: &dyn Fn(&str)) -> Result<()> {
    if args.enable {
        let instance = create(args)?;
        let is_new = instance.enable()?;
        load::warn_of_interfaces(&instance)?;
        // Differs from OpenBSD: linux.md, "Exit status of -e"
        // the filter is enabled as requested, so the exit status is 0; OpenBSD's pfctl exits 1
        report(if is_new { "pf enabled" } else { "pfctl: pf already enabled" });
    }
    if args.take_reference {
        let instance = create(args)?;
        let token = instance.enable_by_reference()?;
        load::warn_of_interfaces(&instance)?;
        report(&format!("pf enabled\nToken : {token}"));
    }
    Ok(())
}

/// Implements macOS's `-X`: releases the reference with this token, and returns the message.
fn release(args: &Args, token: u64) -> Result<String> {
    let Some(instance) = open(args)?.filter(Instance::running) else {
        bail!("pf not enabled");
    };
    match instance.release_reference(token)? {
        None => bail!("pf: token invalid"),
        Some(0) => Ok("pf disabled".into()),
        Some(left) => Ok(format!(
            "disable request successful. {left} more pf enable reference(s) remaining, pf still \
             enabled."
        )),
    }
}

/// Executes `-s` and `-z`. The counters are shown before they are cleared.
fn show_and_zero(args: &Args) -> Result<()> {
    if args.show.is_none() && !args.zero {
        return Ok(());
    }
    let instance = open(args)?;
    if let Some(show) = args.show {
        let filter = instance.as_ref().map(|instance| instance as &dyn Filter);
        let mut out = io::BufWriter::new(io::stdout().lock());
        live::write(filter, &read_host, show, args, &mut out)?;
    }
    if let (true, Some(instance)) = (args.zero, &instance) {
        let anchor = args.anchor.clone().unwrap_or_default();
        for path in anchors::selected_paths(Some(instance), &anchor)? {
            instance.zero_rule_counters(&path)?;
        }
    }
    Ok(())
}
