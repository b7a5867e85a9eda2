//! `pfctl diff`: what changes from one pf.conf to another.
//!
//! [`rules`] compares what the texts mean, rule by rule; [`examples`] looks for packets that fare
//! differently, between the values that the criteria of both rule sets tell apart ([`classes`]).

mod address;
mod automatic;
mod classes;
mod examples;
mod outcome;
mod packet;
mod rules;
mod settings;

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

/// Exit status of trouble, as of diff(1).
const TROUBLE: u8 = 2;
/// Examples that are printed unless `--examples` says otherwise.
const EXAMPLES: usize = 20;

/// One of the two rule sets.
pub struct Side {
    /// Name of the file.
    pub file: String,
    /// What it means.
    pub ruleset: Ruleset,
}

impl Side {
    /// Where a rule stands.
    fn place(&self, rule: &Rule) -> String {
        format!("{}:{}", rule.file.as_deref().unwrap_or(&self.file), rule.line)
    }
}

/// Compares the two files of the operands. Exit status 0: they mean the same, 1: they do not, 2:
/// that cannot be said.
pub fn run(args: &Args) -> Result<ExitCode> {
    match compare(args) {
        Ok(Some(true)) => Ok(ExitCode::SUCCESS),
        Ok(Some(false)) => Ok(ExitCode::FAILURE),
        Ok(None) => Ok(TROUBLE.into()),
        Err(error) => {
            complain(&error);
            Ok(TROUBLE.into())
        }
    }
}

/// Prints the differences and says whether there are none; nothing if a file cannot be read.
fn compare(args: &Args) -> Result<Option<bool>> {
    let host = host::read()?;
    // as they were written, with names for lists that are the same in both
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

/// What changes from one rule set to another.
pub struct Difference<'a> {
    old: &'a Side,
    new: &'a Side,
    changes: Vec<rules::Change>,
    /// Packets that fare differently.
    examples: Vec<examples::Example>,
}

impl<'a> Difference<'a> {
    /// Compares on `host`, with so many examples.
    pub fn between(old: &'a Side, new: &'a Side, host: &Host, limit: usize) -> Self {
        let changes = rules::changes(old, new);
        let examples = match changes.is_empty() {
            true => Vec::new(),
            false => examples::find(old, new, &changes, host, limit),
        };
        Difference { old, new, changes, examples }
    }

    /// Whether nothing changes.
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// Lines as diff(1) prints them, the rules in pf's words with their places as comments.
    pub fn text(&self) -> String {
        if self.is_empty() {
            return String::new();
        }
        let mut text = format!("--- {}\n+++ {}\n", self.old.file, self.new.file);
        for change in &self.changes {
            text += &format!("{change}\n");
        }
        text += match self.examples.is_empty() {
            true => "# no packet was found that fares differently\n",
            false => "# packets that fare differently\n",
        };
        for example in &self.examples {
            text += &example.text(self.old, self.new);
        }
        text
    }

    /// The same as an object.
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
