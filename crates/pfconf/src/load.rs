//! Puts a rule set together, statement by statement.

use skipstep_ruleset::{Address, Ruleset, Table, Timeout};

use crate::ast::{OldScrub, Setting, StateOption, Statement, StatementKind};
use crate::context::Context;
use crate::diagnostics::Kind;
use crate::expand::{Expansion, Refused};
use crate::missing::Missing;
use crate::parser::Parser;
use crate::print::{self, PrintOptions};
use crate::{Loaded, Rejected, settings, table};

/// What has been read so far.
struct Builder<'a> {
    context: &'a Context<'a>,
    ruleset: Ruleset,
    echo: String,
    state_defaults: Option<Vec<StateOption>>,
    /// `set limit states` was there.
    states_limited: bool,
    /// `set timeout adaptive.start` or `adaptive.end` was there.
    adaptive_set: bool,
    /// Interfaces that the host does not have.
    missing: Missing,
}

/// See [`crate::load`].
pub fn load(text: &str, context: &Context) -> Result<Loaded, Rejected> {
    let mut parser = Parser::new(text, context);
    let mut builder = Builder {
        context,
        ruleset: Ruleset::default(),
        echo: String::new(),
        state_defaults: None,
        states_limited: false,
        adaptive_set: false,
        missing: Missing::default(),
    };
    while let Some(statement) = parser.statement() {
        if builder.add(&statement, &mut parser).is_err() {
            parser.recover();
        }
    }
    for name in parser.unused_macros() {
        parser.report_text(Kind::Note, &format!("warning: macro '{name}' not used"));
    }
    let (warnings, errors): (Vec<_>, Vec<_>) =
        parser.diagnostics.into_iter().partition(|diagnostic| diagnostic.kind.is_harmless());
    if !errors.is_empty() {
        return Err(Rejected { diagnostics: errors, echo: builder.echo });
    }
    Ok(builder.finish(warnings))
}

impl Builder<'_> {
    fn add(&mut self, statement: &Statement, parser: &mut Parser) -> Result<(), Refused> {
        match &statement.kind {
            StatementKind::Macro { name, value } => self.line(&format!("{name} = \"{value}\"")),
            StatementKind::Set(list) => {
                for setting in list {
                    self.set(setting, parser)?;
                }
            }
            StatementKind::Table(definition) => {
                let mut bare = Vec::new();
                let defined = table::define(definition, self.context, &mut bare);
                for message in bare {
                    parser.report_bare(Kind::Error, &message, statement.place);
                }
                match defined {
                    Ok(defined) => {
                        self.line(&table::echo(definition));
                        self.define(defined);
                    }
                    Err(message) => {
                        parser.report_statement(Kind::Error, &message);
                        return Err(Refused);
                    }
                }
            }
            StatementKind::Rule(_) | StatementKind::Antispoof(_) => {
                return self.rules(statement, parser);
            }
            StatementKind::OldScrub(scrub) => self.old_scrub(scrub),
            StatementKind::NotBuilt => {}
        }
        Ok(())
    }

    fn line(&mut self, text: &str) {
        self.echo += text;
        self.echo.push('\n');
    }

    fn set(&mut self, setting: &Setting, parser: &mut Parser) -> Result<(), Refused> {
        match setting {
            Setting::StateDefaults(_) if self.state_defaults.is_some() => {
                parser.report_statement(Kind::Error, "cannot redefine state-defaults");
                return Err(Refused);
            }
            Setting::StateDefaults(options) => self.state_defaults = Some(options.clone()),
            Setting::Skip(interfaces) if interfaces.iter().any(|interface| interface.negated) => {
                parser.report_statement(Kind::Error, "skip on ! <interface> is not supported");
                parser.report_statement(Kind::Error, "error setting skip interface(s)");
                return Err(Refused);
            }
            Setting::Limit(crate::ast::Limit::States, _) => self.states_limited = true,
            Setting::Timeout(Timeout::AdaptiveStart | Timeout::AdaptiveEnd, _) => {
                self.adaptive_set = true
            }
            _ => {}
        }
        if let Setting::Skip(interfaces) = setting
            && !settings::skips_nothing(setting)
        {
            warn_of_missing(&self.missing.in_list(interfaces, self.context), parser);
        }
        settings::apply(setting, &mut self.ruleset.options);
        if let Some(text) = settings::echo(setting) {
            self.line(&text);
        }
        Ok(())
    }

    fn rules(&mut self, statement: &Statement, parser: &mut Parser) -> Result<(), Refused> {
        let before = self.ruleset.rules.len();
        let mut expansion = Expansion {
            context: self.context,
            options: &self.ruleset.options,
            state_defaults: self.state_defaults.as_deref().unwrap_or_default(),
            line: statement.place.line,
            rules: &mut self.ruleset.rules,
            messages: Vec::new(),
        };
        let result = match &statement.kind {
            StatementKind::Rule(rule) => expansion.rule(rule),
            StatementKind::Antispoof(antispoof) => expansion.antispoof(antispoof),
            _ => Ok(()),
        };
        for (message, bare) in expansion.messages {
            if bare {
                parser.report_bare(Kind::Error, &message, statement.place);
            } else {
                parser.report_statement(Kind::Error, &message);
            }
        }
        let missing = self.missing.in_rules(&self.ruleset.rules[before..], self.context);
        warn_of_missing(&missing, parser);
        result
    }

    /// Reassembly is on for all packets as soon as one old `scrub` rule asks for it.
    fn old_scrub(&mut self, scrub: &OldScrub) {
        self.ruleset.options.reassemble = true;
        self.line(&print::old_scrub(scrub));
    }

    /// A later definition of a table replaces an earlier one.
    fn define(&mut self, table: Table) {
        match self.ruleset.tables.iter_mut().find(|known| known.name == table.name) {
            Some(known) => *known = table,
            None => self.ruleset.tables.push(table),
        }
    }

    /// Tables that only rules mention exist too, empty.
    fn mention_tables(&mut self) {
        for rule in &self.ruleset.rules {
            for end in [&rule.source, &rule.destination] {
                if let Address::Table(name) = &end.host.address
                    && !self.ruleset.tables.iter().any(|table| table.name == *name)
                {
                    self.ruleset.tables.push(Table { name: name.clone(), ..Table::default() });
                }
            }
        }
    }

    fn finish(mut self, warnings: Vec<crate::Diagnostic>) -> Loaded {
        self.mention_tables();
        if self.states_limited && !self.adaptive_set {
            for (timeout, value) in settings::adaptive(self.ruleset.options.limits.states) {
                self.ruleset.options.timeouts.set(timeout, value);
            }
        }
        let options = PrintOptions { names: self.context.names, ..PrintOptions::default() };
        for rule in std::mem::take(&mut self.ruleset.rules) {
            self.line(&print::rule(&rule, &options));
            self.ruleset.rules.push(rule);
        }
        Loaded { ruleset: self.ruleset, warnings, echo: self.echo }
    }
}

fn warn_of_missing(names: &[String], parser: &mut Parser) {
    for name in names {
        let text = format!("warning: there is no interface or group {name} (yet)");
        parser.report_statement(Kind::Warning, &text);
    }
}
