//! Builds a rule set, statement by statement, and then loads the files of `load anchor`.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread;

use skipstep_ruleset::failsafe::{ANCHOR, FILE, call, is_reserved};
use skipstep_ruleset::fingerprint::{self, Fingerprints, OsMatch};
use skipstep_ruleset::rule::InterfaceMatch;
use skipstep_ruleset::{
    Address, Anchor, AnchorCall, AutomaticTables, BlockPolicy, LegacyKind, LegacyRule, Limiter,
    Not, Optimizer, Rule, Ruleset, Table, TablesMade, Timeout,
};

use crate::ast::{
    AnchorStatement, LegacyStatement, Setting, StateOption, Statement, StatementKind,
    TableDefinition,
};
use crate::context::Context;
use crate::diagnostics::{Diagnostic, Severity};
use crate::expand::{Expansion, MOST_POOLED, MOST_RULES, Message, Refused};
use crate::macros::Macros;
use crate::missing::Missing;
use crate::parallel::{self, SecondHalf};
use crate::parser::Parser;
use crate::print::{self, PrintOptions};
use crate::token::Place;
use crate::{Loaded, Rejected, Room, anchor, failsafe, label, queues, settings, table};

/// Most bytes of a pf.conf and of its `load anchor` files together. The largest rule set that the
/// data plane can hold is far smaller.
// Differs from OpenBSD: linux.md, "Files that a pf.conf names"
const MOST_TEXT: usize = 1 << 24;

/// Most `load anchor` statements, including those in loaded files.
const MOST_LOADS: usize = 1024;

/// Most bytes of an anchor's path.
const LONGEST_PATH: usize = 1023;

/// The rule set built so far.
struct Builder<'a> {
    context: &'a Context<'a>,
    /// Texts of at least this many bytes are parsed in parallel.
    long: usize,
    ruleset: Ruleset,
    echo: String,
    /// The unfinished rule sets: that of the text, and those of open braces.
    open: Vec<OpenRuleset>,
    /// True if the failsafe list comes before the main rule set.
    has_failsafe_list: bool,
    /// The file that is being read: that of `load anchor`, or the failsafe list. `None` for the
    /// main text.
    file: Option<Arc<str>>,
    /// Number of anchors with braces so far, which gives unnamed anchors their names.
    braces: u32,
    /// `load anchor` statements whose files are not read yet.
    to_load: VecDeque<LoadAnchor>,
    /// Number of `load anchor` statements so far.
    loads: usize,
    /// Bytes of all texts so far.
    size: usize,
    /// Number of rules in all rule sets.
    rules: usize,
    state_defaults: Option<Vec<StateOption>>,
    /// True after `set ruleset-optimization`, of which the first counts.
    optimization_chosen: bool,
    /// True after `set limit states`.
    states_limited: bool,
    /// True after `set timeout adaptive.start` or `adaptive.end`.
    adaptive_set: bool,
    /// Interfaces that the host does not have.
    missing: Missing,
    /// Number of addresses that may still be added to tables of pools.
    pooled: usize,
    /// Names of generated tables.
    automatic: AutomaticTables,
    /// Warnings that OpenBSD does not have. A rejected text drops these warnings.
    hints: Vec<Diagnostic>,
}

/// A rule set to which rules are being added.
#[derive(Default)]
struct OpenRuleset {
    path: String,
    contents: Anchor,
    /// Index of each table in the contents, by name.
    tables: HashMap<String, usize>,
}

/// A `load anchor` statement: path of the anchor, and the message for an unreadable file.
struct LoadAnchor {
    path: String,
    file: String,
    unreadable: Diagnostic,
}

/// Implements [`fn@crate::load`]. Texts of at least `long` bytes are parsed in parallel.
///
/// # Errors
/// Fails as [`fn@crate::load`] does.
pub fn load(text: &str, context: &Context, long: usize) -> Result<Loaded, Rejected> {
    let mut builder = Builder::new(context, long);
    let mut diagnostics = Vec::new();
    builder.read_failsafe_list(&mut diagnostics);
    if builder.read_main(text, &mut diagnostics) {
        builder.follow_adaptive_timeouts();
        builder.load_anchors(&mut diagnostics);
        builder.load_fingerprints(&mut diagnostics);
    }
    if diagnostics.iter().any(|diagnostic| !diagnostic.kind.is_harmless()) {
        diagnostics.retain(|diagnostic| diagnostic.kind != Severity::Note);
        return Err(Rejected { diagnostics, echo: builder.echo });
    }
    diagnostics.append(&mut builder.hints);
    Ok(Loaded { ruleset: builder.ruleset, warnings: diagnostics, echo: builder.echo })
}

/// Implements [`crate::room`]. Texts of at least `long` bytes are parsed in parallel.
pub fn room(text: &str, context: &Context, long: usize) -> Room {
    let mut builder = Builder::new(context, long);
    builder.read_failsafe_list(&mut Vec::new());
    builder.read_main(text, &mut Vec::new());
    builder.load_anchors(&mut Vec::new());
    Room { limits: builder.ruleset.options.limits, rules: builder.rules }
}

/// Reading of the texts.
impl<'a> Builder<'a> {
    fn new(context: &'a Context<'a>, long: usize) -> Self {
        Builder {
            context,
            long,
            ruleset: Ruleset::default(),
            echo: String::new(),
            open: Vec::new(),
            has_failsafe_list: false,
            file: context.is_failsafe_list.then(|| FILE.into()),
            braces: 0,
            to_load: VecDeque::new(),
            loads: 0,
            size: 0,
            rules: 0,
            state_defaults: None,
            optimization_chosen: false,
            states_limited: false,
            adaptive_set: false,
            missing: Missing::default(),
            pooled: MOST_POOLED,
            automatic: context.automatic_tables.clone(),
            hints: Vec::new(),
        }
    }

    /// Reads the failsafe list into its anchor, if the text is a main rule set.
    fn read_failsafe_list(&mut self, diagnostics: &mut Vec<Diagnostic>) {
        let is_main = self.context.anchor.is_empty();
        let Some(list) = is_main.then(|| failsafe::read(self.context)).flatten() else { return };
        self.has_failsafe_list = true;
        match list {
            Ok(Loaded { ruleset: Ruleset { rules, .. }, warnings, .. }) => {
                let count = rules.len();
                self.line(|| format!("# failsafe list: {count} rules of {FILE}"));
                self.rules = count;
                diagnostics.extend(warnings);
                let anchor = Anchor { rules, ..Anchor::default() };
                self.ruleset.anchors.insert(ANCHOR.to_owned(), anchor);
            }
            Err(rejected) => diagnostics.extend(rejected.diagnostics),
        }
    }

    /// Reads the main text. Returns false after an error.
    fn read_main(&mut self, text: &str, diagnostics: &mut Vec<Diagnostic>) -> bool {
        let (context, macros) = (self.context, Macros::given(self.context.macros));
        let main = self.read(context.file_name, text, macros, context.anchor, diagnostics);
        let Some(Anchor { rules, legacy_rules, tables }) = main else { return false };
        (self.ruleset.rules, self.ruleset.legacy_rules) = (rules, legacy_rules);
        self.ruleset.tables = tables;
        true
    }

    /// Reads a text into the rule set called `path`, and prints its rules. `None` after an error.
    fn read(
        &mut self,
        name: &str,
        text: &str,
        macros: Macros,
        path: &str,
        diagnostics: &mut Vec<Diagnostic>,
    ) -> Option<Anchor> {
        self.size += text.len();
        if self.size > MOST_TEXT {
            diagnostics.push(Diagnostic {
                file: name.to_string(),
                line: 1,
                column: 1,
                message: format!("file is too large: {} bytes, at most {MOST_TEXT}", self.size),
                help: Some("long lists of addresses belong in table files".to_string()),
                ..Diagnostic::default()
            });
            return None;
        }
        let mut main = OpenRuleset { path: path.to_string(), ..OpenRuleset::default() };
        main.contents.rules.reserve(parallel::most_rules(text));
        if path.is_empty() && self.has_failsafe_list {
            main.contents.rules.push(call());
            self.rules += 1;
        }
        self.open = vec![main];
        self.braces = 0;
        let mut parser = Parser::new(name, text, macros, self.context);
        // rules of an anchor may use queues and limiters of the main rule set
        parser.add_definitions(&self.ruleset.queues, &self.ruleset.limiters);
        self.statements(text, &mut parser);
        for name in parser.unused_macros() {
            parser.report_text(Severity::Note, &format!("warning: macro '{name}' not used"));
        }
        let accepted = parser.diagnostics.iter().all(|diagnostic| diagnostic.kind.is_harmless());
        diagnostics.append(&mut parser.diagnostics);
        let mut contents = self.open.pop()?.contents;
        if !accepted {
            return None;
        }
        if path.is_empty() && !self.check_queues(name, diagnostics) {
            return None;
        }
        let rules =
            contents.rules.iter().chain(contents.legacy_rules.iter().map(|legacy| &legacy.rule));
        mention_tables(rules, &mut contents.tables);
        if path.is_empty() {
            define_tables(&self.ruleset.limiters, &mut contents.tables);
        }
        let made = self.optimize(path, &mut contents);
        self.number_labels(&mut contents.rules);
        self.echo_legacy_rules(&contents.legacy_rules);
        self.echo_rules(path, &contents, &made);
        Some(contents)
    }

    /// Adds one statement after the other. The second half of a long text is parsed in parallel.
    fn statements(&mut self, text: &str, parser: &mut Parser<'a>) {
        if let Some(middle) = (text.len() >= self.long).then(|| parallel::middle(text)).flatten() {
            return self.statements_in_parallel((text, middle), parser);
        }
        while let Some(statement) = parser.statement() {
            self.add_or_recover(&statement, parser);
        }
    }

    /// Adds the statements of a text. After the first rule, another thread begins to parse the
    /// text `from` its middle.
    fn statements_in_parallel(&mut self, from: (&str, usize), parser: &mut Parser<'a>) {
        let mut from = Some(from);
        let stop = AtomicBool::new(false);
        thread::scope(|scope| {
            let mut half = None;
            while let Some(statement) = parser.statement() {
                let reached = half.take_if(|half: &mut SecondHalf| half.is_reached_by(&statement));
                if reached.is_some_and(|half| self.join(half, &statement, parser)) {
                    break;
                }
                self.add_or_recover(&statement, parser);
                let is_rule = matches!(statement.kind, StatementKind::Rule(_));
                if let Some(from) = from.take_if(|_| is_rule) {
                    let settings = self.settings();
                    half = SecondHalf::begin(scope, &stop, from, parser, settings, self.context);
                }
            }
        });
    }

    /// Adds a statement. After an error, the parser skips the remaining statement.
    fn add_or_recover(&mut self, statement: &Statement, parser: &mut Parser) {
        if self.add(statement, parser).is_err() {
            parser.recover();
        }
    }

    /// Adds the rules of the second half. Returns false if a statement before it changed its
    /// meaning.
    fn join(
        &mut self,
        half: SecondHalf<'_, 'a>,
        statement: &Statement,
        parser: &mut Parser<'a>,
    ) -> bool {
        let (settings, room) = (self.settings(), MOST_RULES.saturating_sub(self.rules));
        if self.open.len() != 1 {
            return false;
        }
        let rules = &mut self.current().contents.rules;
        let before = rules.len();
        let joined = half.join(statement, parser, &settings, rules, room);
        let added = rules.len() - before;
        self.rules += added;
        joined
    }

    /// Returns the settings on which the meaning of the next rules depends.
    fn settings(&self) -> parallel::Settings {
        let options = self.ruleset.options.clone();
        let (state_defaults, file) = (self.state_defaults.clone(), self.file.clone());
        parallel::Settings { options, state_defaults, file }
    }

    /// Reads the files of `load anchor`, and the files that these load. A file begins without
    /// macros and with the default block policy. Its settings hold for its own rules only.
    fn load_anchors(&mut self, diagnostics: &mut Vec<Diagnostic>) {
        while let Some(LoadAnchor { path, file, unreadable }) = self.to_load.pop_front() {
            let text = match (self.context.read_file)(&file) {
                Ok(text) => text,
                Err(error) => {
                    let message = format!("cannot load \"{file}\": {}", table::plain(&error));
                    diagnostics.push(Diagnostic { message, ..unreadable });
                    return;
                }
            };
            let options = self.ruleset.options.clone();
            self.ruleset.options.block_policy = BlockPolicy::Drop;
            self.file = Some(file.as_str().into());
            let anchor = self.read(&file, &text, Macros::default(), &path, diagnostics);
            self.ruleset.options = options;
            let Some(anchor) = anchor else {
                return;
            };
            self.ruleset.anchors.insert(path, anchor);
        }
    }

    /// Optimizes a rule set and the anchors in its braces, by `-o` or `set ruleset-optimization`.
    fn optimize(&mut self, path: &str, contents: &mut Anchor) -> TablesMade {
        let level = self.ruleset.options.ruleset_optimization;
        let mut optimizer = Optimizer {
            level: self.context.optimization.unwrap_or(level),
            names: &mut self.automatic,
            profile: self.context.profile,
        };
        optimizer.rule_set(path, contents, &mut self.ruleset.anchors)
    }

    /// Replaces `$nr` in labels. The optimizer has numbered the rules.
    fn number_labels(&mut self, rules: &mut [Rule]) {
        let anchors = self.ruleset.anchors.values_mut().flat_map(|anchor| &mut anchor.rules);
        rules.iter_mut().chain(anchors).for_each(label::number);
    }

    /// Returns the options for printing rules.
    fn print_options(&self) -> PrintOptions<'a> {
        PrintOptions {
            names: self.context.names,
            port_names: self.context.port_names,
            ..PrintOptions::default()
        }
    }

    /// Prints the legacy rules, list by list.
    fn echo_legacy_rules(&mut self, rules: &[LegacyRule]) {
        let options = self.print_options();
        for kind in LegacyKind::ALL {
            for rule in rules.iter().filter(|rule| rule.kind == kind) {
                self.line(|| print::legacy::rule(rule, &options));
            }
        }
    }

    /// Prints the rules as `pfctl -nv` does, including those in braces.
    fn echo_rules(&mut self, path: &str, contents: &Anchor, made: &TablesMade) {
        if !self.context.echo {
            return;
        }
        let options = self.print_options();
        let nested = print::Nested { anchors: &self.ruleset.anchors, made, options: &options };
        nested.print(path, contents, 0, &mut self.echo);
    }

    /// Checks the tree of queues and prints it. Returns false if it is wrong.
    fn check_queues(&mut self, name: &str, diagnostics: &mut Vec<Diagnostic>) -> bool {
        match queues::echo(&self.ruleset.queues) {
            Ok(lines) => {
                lines.into_iter().for_each(|line| self.line(|| line));
                true
            }
            Err(message) => {
                diagnostics.push(Diagnostic {
                    file: name.to_string(),
                    message: format!("pfctl: {message}"),
                    bare: true,
                    ..Diagnostic::default()
                });
                false
            }
        }
    }
}

/// Handling of statements.
impl Builder<'_> {
    fn add(&mut self, statement: &Statement, parser: &mut Parser) -> Result<(), Refused> {
        if self.context.is_failsafe_list {
            failsafe::check_statement(&statement.kind, parser)?;
        }
        match &statement.kind {
            StatementKind::Macro { name, value } => {
                self.line(|| format!("{name} = {}", print::quoted(value)))
            }
            StatementKind::Set(list) => {
                for setting in list {
                    self.set(setting, parser)?;
                }
            }
            StatementKind::Table(definition) => {
                return self.table(definition, statement.place, parser);
            }
            StatementKind::Rule(rule) => {
                return self.rules(statement, parser, |expansion| expansion.rule(rule));
            }
            StatementKind::Antispoof(antispoof) => {
                return self.rules(statement, parser, |expansion| expansion.antispoof(antispoof));
            }
            StatementKind::BeginAnchor { name } => {
                // after an error, anchors may be open that no brace closes
                self.open.truncate(parser.open_anchors());
                self.begin_anchor(name.as_deref());
                let path = self.current().path.clone();
                check_path(&path, parser)?;
                self.check_reserved(&path, parser)?;
            }
            StatementKind::Anchor(anchor) => return self.anchor(anchor, statement, parser),
            StatementKind::LoadAnchor { name, file } => {
                return self.load_anchor(name, file, statement.place, parser);
            }
            StatementKind::Queues(queues) => {
                self.ruleset.queues.extend(queues.iter().cloned());
            }
            StatementKind::Limiter(limiter) => {
                self.line(|| queues::limiter(limiter));
                self.ruleset.limiters.push(limiter.clone());
            }
            StatementKind::Legacy(legacy) => return self.legacy(legacy, statement, parser),
            StatementKind::Include => {}
        }
        Ok(())
    }

    /// Defines a table, and prints it.
    fn table(
        &mut self,
        definition: &TableDefinition,
        place: Place,
        parser: &mut Parser,
    ) -> Result<(), Refused> {
        let mut bare = Vec::new();
        let defined = table::define(definition, self.context, &mut bare);
        for message in bare {
            parser.report_bare(Severity::Error, &message, place);
        }
        match defined {
            Ok(defined) => {
                self.line(|| table::echo(definition));
                self.define(defined);
                Ok(())
            }
            Err(message) => refuse(parser, &message),
        }
    }

    /// Notes a file to load into an anchor, after the text.
    fn load_anchor(
        &mut self,
        name: &str,
        file: &str,
        place: Place,
        parser: &mut Parser,
    ) -> Result<(), Refused> {
        let path = anchor::join(&self.current().path, name.trim_start_matches('/'));
        self.loads += 1;
        if self.loads > MOST_LOADS {
            let text = format!("more than {MOST_LOADS} files are loaded into anchors");
            return refuse(parser, &text);
        }
        check_path(&path, parser)?;
        self.check_reserved(&path, parser)?;
        let unreadable = parser.diagnostic(Severity::Error, "", place, None);
        self.to_load.push_back(LoadAnchor { path, file: file.to_owned(), unreadable });
        Ok(())
    }

    /// Adds a line to the output, if the caller wants output.
    fn line(&mut self, text: impl FnOnce() -> String) {
        if self.context.echo {
            self.echo += &text();
            self.echo.push('\n');
        }
    }

    fn set(&mut self, setting: &Setting, parser: &mut Parser) -> Result<(), Refused> {
        match setting {
            Setting::StateDefaults(_) if self.state_defaults.is_some() => {
                return refuse(parser, "cannot redefine state-defaults");
            }
            Setting::StateDefaults(options) => self.state_defaults = Some(options.clone()),
            Setting::Skip(on) => self.interfaces("skip", on, parser)?,
            Setting::Xdp(on) => self.interfaces("xdp", on, parser)?,
            Setting::RulesetOptimization(_) if self.optimization_chosen => return Ok(()),
            Setting::RulesetOptimization(_) => self.optimization_chosen = true,
            Setting::Fingerprints(file) if self.context.anchor.is_empty() => {
                if let Err(error) = (self.context.read_file)(file) {
                    self.line(|| format!("set fingerprints \"{file}\""));
                    let text = format!("error loading fingerprints {file}");
                    let diagnostic = parser.statement_diagnostic(Severity::Error, &text);
                    parser.add(Diagnostic { help: Some(table::plain(&error)), ..diagnostic });
                    return Err(Refused);
                }
            }
            Setting::Limit(crate::ast::Limit::States, ..) => self.states_limited = true,
            Setting::Timeout(Timeout::AdaptiveStart | Timeout::AdaptiveEnd, ..) => {
                self.adaptive_set = true
            }
            _ => {}
        }
        settings::apply(setting, &mut self.ruleset.options);
        if let Some(text) = settings::echo(setting) {
            self.line(|| text);
        }
        Ok(())
    }

    /// Checks the interfaces of `skip` or `xdp`.
    fn interfaces(
        &mut self,
        option: &str,
        on: &[Not<InterfaceMatch>],
        parser: &mut Parser,
    ) -> Result<(), Refused> {
        let wrong = if on.iter().any(|interface| interface.negated) {
            "! <interface>"
        } else if on.iter().any(|on| matches!(on.value, InterfaceMatch::Rdomain(_))) {
            "rdomain <num>"
        } else {
            if !settings::is_none(on) {
                let missing = self.missing.in_list(on, self.context);
                self.warn_of_missing(&missing, parser);
            }
            return Ok(());
        };
        parser.report_statement(Severity::Error, &format!("{option} on {wrong} is not supported"));
        refuse(parser, &format!("error setting {option} interface(s)"))
    }

    /// Returns the rule set to which statements belong now.
    fn current(&mut self) -> &mut OpenRuleset {
        if self.open.is_empty() {
            self.open.push(OpenRuleset::default());
        }
        let last = self.open.len() - 1;
        &mut self.open[last]
    }

    fn begin_anchor(&mut self, name: Option<&str>) {
        self.braces += 1;
        let own = format!("_{}", self.braces);
        let path = anchor::join(&self.current().path, name.unwrap_or(&own));
        self.open.push(OpenRuleset { path, ..OpenRuleset::default() });
    }

    /// Adds the rule that calls an anchor. Also adds the contents of an anchor with braces.
    fn anchor(
        &mut self,
        anchor: &AnchorStatement,
        statement: &Statement,
        parser: &mut Parser,
    ) -> Result<(), Refused> {
        let name = anchor.name.clone().unwrap_or_default();
        let call = if anchor.braces {
            let Some(OpenRuleset { path, mut contents, .. }) = self.open.pop() else {
                return Err(Refused);
            };
            if self.has_failsafe_list && is_reserved(&path) {
                return Err(Refused); // its opening brace has been refused
            }
            let known = self.ruleset.anchors.get(&path);
            if known.is_some_and(|known| !known.rules.is_empty()) {
                return refuse(parser, &format!("inline anchor '{name}' already exists"));
            }
            mention_tables(contents.rules.iter(), &mut contents.tables);
            self.ruleset.anchors.insert(path.clone(), contents);
            AnchorCall { path, wildcard: false, name, braces: true }
        } else {
            let parent = self.current().path.clone();
            match anchor::call(&name, &parent) {
                Some(call) => call,
                None => return refuse(parser, &format!("no anchor above '{parent}': {name}")),
            }
        };
        if !call.braces {
            self.check_reserved(&call.path, parser)?;
        }
        self.rules(statement, parser, |expansion| expansion.anchor(anchor, call))
    }

    fn rules(
        &mut self,
        statement: &Statement,
        parser: &mut Parser,
        expand: impl FnOnce(&mut Expansion) -> Result<(), Refused>,
    ) -> Result<(), Refused> {
        let mut rules = std::mem::take(&mut self.current().contents.rules);
        let before = rules.len();
        let mut expansion = Expansion {
            context: self.context,
            options: &self.ruleset.options,
            state_defaults: self.state_defaults.as_deref().unwrap_or_default(),
            line: statement.place.line,
            file: statement.file.as_ref().or(self.file.as_ref()),
            rules: &mut rules,
            room: MOST_RULES.saturating_sub(self.rules),
            pooled: &mut self.pooled,
            automatic: &mut self.automatic,
            tables: Vec::new(),
            messages: Vec::new(),
        };
        let result = expand(&mut expansion);
        let (tables, messages) = (expansion.tables, expansion.messages);
        for (echo, table) in tables {
            self.line(|| echo);
            self.define(table);
        }
        for message in messages {
            match message {
                Message::Bare(text) => parser.report_bare(Severity::Error, &text, statement.place),
                Message::Error(text) => parser.report_statement(Severity::Error, &text),
                Message::Warning(text) => parser.report_statement(Severity::Warning, &text),
            }
        }
        self.rules += rules.len() - before;
        let refusal = rules[before..].iter().find_map(failsafe::refusal_of_rule);
        if let Some(message) = refusal.filter(|_| self.context.is_failsafe_list) {
            parser.report_statement(Severity::Error, message);
        }
        let missing = self.missing.in_rules(&rules[before..], self.context);
        self.warn_of_missing(&missing, parser);
        self.current().contents.rules = rules;
        result
    }

    /// Refuses the anchor of the failsafe list in a rule set that begins with the list.
    fn check_reserved(&self, path: &str, parser: &mut Parser) -> Result<(), Refused> {
        if self.has_failsafe_list && is_reserved(path) {
            let text = format!(
                "anchor \"{ANCHOR}\" is the failsafe list of {FILE}: remove this line, or remove \
                 the file"
            );
            return refuse(parser, &text);
        }
        Ok(())
    }

    fn warn_of_missing(&mut self, names: &[String], parser: &Parser) {
        for name in names {
            let text = format!("warning: there is no interface or group {name} (yet)");
            self.hints.push(parser.statement_diagnostic(Severity::Warning, &text));
        }
    }

    /// Adds a legacy rule. Fragment options of a `scrub` rule hold for all packets.
    fn legacy(
        &mut self,
        legacy: &LegacyStatement,
        statement: &Statement,
        parser: &mut Parser,
    ) -> Result<(), Refused> {
        let parent = self.current().path.clone();
        let call = match legacy.anchor.as_deref().map(|name| (name, anchor::call(name, &parent))) {
            Some((name, None)) => {
                return refuse(parser, &format!("no anchor above '{parent}': {name}"));
            }
            Some((_, call)) => call,
            None => None,
        };
        if let Some(call) = &call {
            self.check_reserved(&call.path, parser)?;
        }
        let mut rules = std::mem::take(&mut self.current().contents.legacy_rules);
        if legacy.kind == LegacyKind::Scrub && !legacy.no {
            let options = &mut self.ruleset.options;
            options.reassemble =
                !legacy.leave_fragments || rules.iter().any(LegacyRule::reassembles);
            options.reassemble_no_df |= legacy.rule.options.scrub.no_df;
        }
        let before = rules.len();
        let result =
            self.rules(statement, parser, |expansion| expansion.legacy(legacy, call, &mut rules));
        self.rules += rules.len() - before;
        self.current().contents.legacy_rules = rules;
        result
    }

    /// Adds a table, in place of an earlier table of the same name.
    fn define(&mut self, table: Table) {
        let OpenRuleset { contents, tables, .. } = self.current();
        match tables.get(&table.name) {
            Some(place) => contents.tables[*place] = table,
            None => {
                tables.insert(table.name.clone(), contents.tables.len());
                contents.tables.push(table);
            }
        }
    }

    /// Resolves the `os` criteria of rules. As in OpenBSD, an unknown name is no error, and only a
    /// note reports it; such a rule never matches.
    fn load_fingerprints(&mut self, diagnostics: &mut Vec<Diagnostic>) {
        let names = self.ruleset.os_names();
        if names.is_empty() {
            return;
        }
        let named = self.ruleset.options.fingerprints.as_deref();
        let text = match named {
            Some(file) => (self.context.read_file)(file),
            None => (self.context.fingerprints)(),
        };
        let file = named.unwrap_or(fingerprint::FILE);
        let mut report = |kind, message| {
            // not about a line
            diagnostics.push(Diagnostic { kind, message, bare: true, ..Diagnostic::default() });
        };
        let fingerprints =
            text.map_err(|error| format!(" {error}")).and_then(|text| Fingerprints::parse(&text));
        match fingerprints {
            Err(error) => {
                report(Severity::Error, format!("error loading fingerprints {file}:{error}"))
            }
            Ok(fingerprints) => {
                for name in names {
                    let wanted = fingerprints.os_match(&name);
                    if wanted == OsMatch::Nothing {
                        report(Severity::Note, format!("warning: unknown '{name}' OS fingerprint"));
                    }
                    self.ruleset.systems.insert(name, wanted);
                }
                self.ruleset.fingerprints = fingerprints.all;
            }
        }
    }

    /// Derives the adaptive timeouts from `set limit states`, unless they were set.
    fn follow_adaptive_timeouts(&mut self) {
        if self.states_limited && !self.adaptive_set {
            for (timeout, value) in settings::adaptive(self.ruleset.options.limits.states) {
                self.ruleset.options.timeouts.set(timeout, value);
            }
        }
    }
}

/// Adds the tables that only rules mention, as empty tables. A table of `overload` counts as
/// defined.
fn mention_tables<'a>(rules: impl Iterator<Item = &'a Rule>, tables: &mut Vec<Table>) {
    let mut known: HashMap<String, usize> =
        tables.iter().zip(0..).map(|(table, place)| (table.name.clone(), place)).collect();
    for rule in rules {
        let compared = [&rule.source, &rule.destination].into_iter().filter_map(|end| {
            match &end.host.address {
                Address::Table(name) => Some(name.as_str()),
                _ => None,
            }
        });
        let pools = rule.pools().flat_map(|pool| pool.address.tables());
        let filled = rule.state.iter().filter_map(|options| options.overload.as_ref());
        let filled = filled.map(|overload| overload.table.as_str());
        let mentioned = compared.chain(pools).map(|name| (name, false));
        for (name, defined) in mentioned.chain(filled.map(|name| (name, true))) {
            let place = *known.entry(name.to_owned()).or_insert_with(|| {
                tables.push(Table { name: name.to_owned(), ..Table::default() });
                tables.len() - 1
            });
            tables[place].defined |= defined;
        }
    }
}

/// Adds the tables of source limiters, which count as defined.
fn define_tables(limiters: &[Limiter], tables: &mut Vec<Table>) {
    for (name, ..) in limiters.iter().filter_map(|limiter| limiter.table.as_ref()) {
        match tables.iter_mut().find(|table| table.name == *name) {
            Some(table) => table.defined = true,
            None => {
                tables.push(Table { name: name.clone(), defined: true, ..Table::default() });
            }
        }
    }
}

fn check_path(path: &str, parser: &mut Parser) -> Result<(), Refused> {
    if path.len() > LONGEST_PATH {
        return refuse(parser, &format!("anchor name is longer than {LONGEST_PATH}"));
    }
    Ok(())
}

fn refuse<T>(parser: &mut Parser, message: &str) -> Result<T, Refused> {
    parser.report_statement(Severity::Error, message);
    Err(Refused)
}
