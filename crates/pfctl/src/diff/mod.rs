//! `pfctl diff`: the differences between two pf.confs.
//!
//! [`rules`] compares the meaning of the texts, rule by rule. [`examples`] looks for packets with
//! different fates, at the boundaries of the criteria of both rule sets ([`classes`]).

mod address;
mod automatic;
mod classes;
mod examples;
mod fate;
mod packet;
mod rules;
mod settings;

pub use rules::{Change, changes};

use std::process::ExitCode;

use anyhow::Result;
use serde_json::json;
use skipstep_kernel::host;
use skipstep_pfconf::PrintOptions;
use skipstep_pfconf::print::rule as print_rule;
use skipstep_ruleset::interface::Host;
use skipstep_ruleset::{Optimization, Rule, Ruleset};

use crate::load::{self, Source, report};
use crate::output::{complain, print};
use crate::request::Args;

/// Exit status if the files cannot be compared, as of diff(1).
const TROUBLE: u8 = 2;
/// Number of examples without `--examples`.
const EXAMPLES: usize = 20;

/// One of the two compared rule sets.
pub struct Side {
    /// Name of the file, as messages show it.
    pub file: String,
    /// The rule set that the file means.
    pub ruleset: Ruleset,
}

impl Side {
    /// Returns the file and line of a rule, as `file:line`, or the file of a generated rule.
    fn location(&self, rule: &Rule) -> String {
        let file = rule.file.as_deref().unwrap_or(&self.file);
        match rule.line {
            0 => file.to_owned(),
            line => format!("{file}:{line}"),
        }
    }
}

/// Compares the two files of the operands. The exit status is 0 if they mean the same, 1 if they
/// differ, and 2 if an error prevents the comparison.
///
/// # Errors
/// Never fails: errors are printed and become exit status 2.
pub fn run(args: &Args) -> Result<ExitCode> {
    match compare(args) {
        Ok(Some(true)) => Ok(ExitCode::SUCCESS),
        Ok(Some(false)) => Ok(ExitCode::FAILURE),
        Ok(None) => Ok(TROUBLE.into()),
        Err(error) => {
            complain("pfctl", &error);
            Ok(TROUBLE.into())
        }
    }
}

/// Prints the differences. Returns true if there are none, and `None` if a file has errors.
fn compare(args: &Args) -> Result<Option<bool>> {
    let host = host::read()?;
    // without optimization, and with the same names for automatic tables in both rule sets
    let args = &Args { optimization: Some(Optimization::None), no_action: true, ..args.clone() };
    let mut sides = Vec::new();
    for file in &args.operands {
        let source = Source::read(file)?;
        match load::parse(&source, args, &host) {
            Ok(loaded) => sides.push(Side { file: source.name, ruleset: loaded.ruleset }),
            Err(rejected) => report(&rejected.diagnostics),
        }
    }
    let [old, new] = sides.as_slice() else {
        return Ok(None);
    };
    let difference = Difference::between(old, new, &host, args.examples.unwrap_or(EXAMPLES));
    print(&match args.json {
        true => format!("{:#}\n", difference.json()),
        false => difference.text(),
    })?;
    Ok(Some(difference.is_empty()))
}

/// The differences between two rule sets.
pub struct Difference<'a> {
    old: &'a Side,
    new: &'a Side,
    changes: Vec<rules::Change>,
    /// Packets with different fates.
    examples: Vec<examples::Example>,
}

impl<'a> Difference<'a> {
    /// Compares two rule sets on `host`, and looks for at most `limit` examples.
    pub fn between(old: &'a Side, new: &'a Side, host: &Host, limit: usize) -> Self {
        let changes = rules::changes(old, new);
        let examples = match changes.is_empty() {
            true => Vec::new(),
            false => examples::find(old, new, &changes, host, limit),
        };
        Difference { old, new, changes, examples }
    }

    /// True if the rule sets mean the same.
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// Prints the changes in the style of diff(1). Rules are in pf's syntax, with file and line as
    /// comments.
    pub fn text(&self) -> String {
        if self.is_empty() {
            return String::new();
        }
        let mut text = format!("--- {}\n+++ {}\n", self.old.file, self.new.file);
        for change in &self.changes {
            text += &format!("{change}\n");
        }
        text += match self.examples.is_empty() {
            true => "# no packet with different verdicts was found\n",
            false => "# packets with different verdicts\n",
        };
        for example in &self.examples {
            text += &example.text(self.old, self.new);
        }
        text
    }

    /// Returns an object with the changes and the examples.
    pub fn json(&self) -> serde_json::Value {
        let examples = &self.examples;
        json!({
            "old": self.old.file,
            "new": self.new.file,
            "rules": self.changes.iter().map(rules::Change::json).collect::<Vec<_>>(),
            "packets": examples.iter().map(|example| example.json(self.old, self.new)).collect::<Vec<_>>(),
        })
    }
}

fn printed(rule: &Rule) -> String {
    print_rule(rule, &PrintOptions::default())
}
