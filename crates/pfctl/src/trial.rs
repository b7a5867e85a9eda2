//! Loads on trial: `--confirm`, `pfctl confirm` and `pfctl revert`.

use std::fs;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use skipstep_kernel::Instance;
use skipstep_kernel::trial::{Trial, TrialRequest};

use crate::access;
use crate::output::replace_file;
use crate::request::Args;
use crate::show::trial::user;

/// The file that `--write` replaces when a load is confirmed.
const CONF: &str = "/etc/pf.conf";

/// Returns the wish of `--confirm`, or `None` without this flag. `text` is the loaded text.
pub fn request(args: &Args, text: Option<&str>) -> Option<TrialRequest> {
    Some(TrialRequest {
        seconds: args.confirm?,
        keep_states: args.keep_states,
        file: args.file.clone().unwrap_or_default(),
        text: text.filter(|_| args.write).map(str::to_owned),
    })
}

/// Implements `pfctl confirm`: the load on trial stays. Writes its text to `/etc/pf.conf` if the
/// load asked for that.
///
/// # Errors
/// Fails if nothing is on trial, if the time is over, if the user is not root, or if the filter or
/// the file cannot be written.
pub fn confirm(args: &Args) -> Result<ExitCode> {
    let trial = open(args)?.confirm()?;
    report(args, &format!("confirmed: {} stays", description(&trial)));
    if let Some(text) = &trial.text {
        // a link stays, and the file that it names is replaced
        let conf = fs::canonicalize(CONF).unwrap_or_else(|_| CONF.into());
        replace_file(&conf, text, fs::metadata(&conf).ok().as_ref())
            .with_context(|| format!("the rules stay until a reboot, but {CONF} is unchanged"))?;
        report(args, &format!("{CONF} has the confirmed rules"));
    }
    Ok(ExitCode::SUCCESS)
}

/// Implements `pfctl revert`: ends the trial at once.
///
/// # Errors
/// Fails if nothing is on trial, if the user is not root, or if the filter cannot be written.
pub fn revert(args: &Args) -> Result<ExitCode> {
    let trial = open(args)?.revert()?;
    let load = description(&trial);
    report(args, &format!("reverted: the rules before {load} are in force again"));
    Ok(ExitCode::SUCCESS)
}

fn open(args: &Args) -> Result<Instance> {
    match access::open(args)? {
        Some(instance) => Ok(instance),
        None => bail!("no rules are loaded"),
    }
}

/// Describes a load: its file and its user.
fn description(trial: &Trial) -> String {
    let user = user(trial.load.uid);
    match trial.file.as_str() {
        "" => format!("the change by {user}"),
        "-" => format!("the load from standard input by {user}"),
        file => format!("the load of {file} by {user}"),
    }
}

/// Tells how a load on trial goes on.
pub fn announce(args: &Args) {
    if let Some(seconds) = args.confirm {
        let advice = "run `pfctl confirm` to keep these rules, or the rules before come back";
        report(args, &format!("on trial for {seconds} s: {advice}"));
    }
}

fn report(args: &Args, message: &str) {
    if !args.quiet {
        eprintln!("pfctl: {message}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_has_the_text_only_with_write() {
        let args = Args { confirm: Some(9), file: Some("a".into()), ..Args::default() };
        let asked = request(&args, Some("pass")).unwrap();
        assert_eq!((asked.seconds, asked.file.as_str(), asked.text), (9, "a", None));
        let args = Args { write: true, ..args };
        assert_eq!(request(&args, Some("pass")).unwrap().text.as_deref(), Some("pass"));
        assert_eq!(request(&Args::default(), None), None);
    }
}
