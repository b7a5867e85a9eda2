//! Parallel parsing: a second thread parses the second half of a long text. The meaning of a rule
//! depends on earlier macros, settings and queues, but long lists of rules rarely contain any.
//!
//! At the first rule, the main parser starts a second one at a line in the middle, with the
//! settings of that moment. When the main parser comes to that line, it checks that macros,
//! settings and queues are still the same. If so, the main parser takes the rules of the second
//! half and stops. Otherwise the main parser goes on as if there were no second parser. The same
//! happens if the second half has other statements than rules, or rules with messages.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, Scope, ScopedJoinHandle};

use skipstep_ruleset::{Options, Rule};

use crate::ast::{StateOption, Statement, StatementKind};
use crate::context::Context;
use crate::expand::{Expansion, MOST_POOLED, MOST_RULES};
use crate::missing::Missing;
use crate::parser::Parser;

/// Bytes from which a text is parsed in parallel. A shorter text is parsed before a thread has
/// started.
pub const PARALLEL_FROM: usize = 1 << 17;

/// The settings on which the meaning of rules depends, as they were when the second parser started.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// The options of `set` statements.
    pub options: Options,
    /// Options of `set state-defaults`, if that statement came before.
    pub state_defaults: Option<Vec<StateOption>>,
    /// The file of `load anchor` that is being parsed; `None` for the main text.
    pub file: Option<Arc<str>>,
}

/// The second half of a text, while a thread parses it.
pub struct SecondHalf<'scope, 'a> {
    /// Byte offset in the text at which the half begins.
    middle: usize,
    parser: Parser<'a>,
    settings: Settings,
    reader: ScopedJoinHandle<'scope, Option<Contents<'a>>>,
    stop: StopWhenDropped<'scope>,
}

/// The result of the second parser.
struct Contents<'a> {
    rules: Vec<Rule>,
    /// The parser at the end of the text.
    parser: Parser<'a>,
}

/// Stops the second parser when it is dropped.
struct StopWhenDropped<'scope>(&'scope AtomicBool);

impl Drop for StopWhenDropped<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Returns the byte offset of the first line in the second half that begins like a rule.
pub fn middle(text: &str) -> Option<usize> {
    let half = text.len() / 2;
    let mut place = half + text.as_bytes()[half..].iter().position(|byte| *byte == b'\n')? + 1;
    for line in text[place..].split_inclusive('\n') {
        if ["pass ", "block ", "match "].iter().any(|action| line.starts_with(action)) {
            return Some(place);
        }
        place += line.len();
    }
    None
}

impl<'scope, 'a: 'scope> SecondHalf<'scope, 'a> {
    /// Starts a thread that parses `text` from `middle` on, with the state of `parser` at the first
    /// rule. `None` if no thread can be started.
    pub fn begin(
        scope: &'scope Scope<'scope, '_>,
        stop: &'scope AtomicBool,
        (text, middle): (&'scope str, usize),
        parser: &Parser<'a>,
        settings: Settings,
        context: &'a Context<'a>,
    ) -> Option<Self> {
        let (own, ours) = (parser.clone(), settings.clone());
        let read = move || {
            let parser = own.moved_to(middle, text);
            read(parser, &text[middle..], &ours, context, stop)
        };
        let reader = thread::Builder::new().spawn_scoped(scope, read).ok()?;
        let stop = StopWhenDropped(stop);
        Some(SecondHalf { middle, parser: parser.clone(), settings, reader, stop })
    }

    /// True if the statement begins at the middle or behind it.
    pub fn is_reached_by(&self, statement: &Statement) -> bool {
        statement.place.source == 0 && statement.place.offset >= self.middle
    }

    /// Appends the rules of the second half to `rules`, and makes `parser` skip the remaining text.
    /// `parser` has just read `statement`. Returns false, and changes nothing, if the settings have
    /// changed or a limit would be exceeded.
    pub fn join(
        self,
        statement: &Statement,
        parser: &mut Parser<'a>,
        settings: &Settings,
        rules: &mut Vec<Rule>,
        room: usize,
    ) -> bool {
        let begins = statement.place.offset == self.middle;
        if !begins || self.settings != *settings || !parser.continues_like(&self.parser) {
            return false;
        }
        // wait: the main parser has nothing else to do
        let Ok(Some(contents)) = self.reader.join() else { return false };
        drop(self.stop);
        let Contents { rules: more, parser: at_end } = contents;
        if more.len() > room || !parser.adopt_end(&at_end, &self.parser) {
            return false;
        }
        let first = rules.len() as u32;
        rules.extend(more.into_iter().map(|rule| Rule { number: first + rule.number, ..rule }));
        #[cfg(test)]
        tests::JOINED.set(tests::JOINED.get() + 1);
        true
    }
}

/// Parses rules to the end of the text. `None` if there is another statement, or a message.
fn read<'a>(
    mut parser: Parser<'a>,
    text: &str,
    settings: &Settings,
    context: &Context,
    stop: &AtomicBool,
) -> Option<Contents<'a>> {
    let mut rules = Vec::with_capacity(most_rules(text));
    let (mut missing, messages) = (Missing::default(), parser.diagnostics.len());
    let (mut pooled, mut automatic) = (MOST_POOLED, context.automatic_tables.clone());
    while let Some(statement) = parser.statement() {
        let StatementKind::Rule(rule) = &statement.kind else { return None };
        let before = rules.len();
        let mut expansion = Expansion {
            context,
            options: &settings.options,
            state_defaults: settings.state_defaults.as_deref().unwrap_or_default(),
            line: statement.place.line,
            file: settings.file.as_ref(),
            rules: &mut rules,
            room: MOST_RULES.saturating_sub(before),
            pooled: &mut pooled,
            automatic: &mut automatic,
            tables: Vec::new(),
            messages: Vec::new(),
        };
        expansion.rule(rule).ok()?;
        let is_plain = expansion.tables.is_empty() && expansion.messages.is_empty();
        let is_plain = is_plain && pooled == MOST_POOLED;
        if !is_plain
            || !missing.in_rules(&rules[before..], context).is_empty()
            || stop.load(Ordering::Relaxed)
        {
            return None;
        }
    }
    (parser.diagnostics.len() == messages).then_some(Contents { rules, parser })
}

/// Returns the number of rules to reserve memory for, which is the number of lines. Most lines of
/// large texts are one rule, and counting lines is faster than moving rules.
pub fn most_rules(text: &str) -> usize {
    text.bytes().filter(|byte| *byte == b'\n').count().min(MOST_RULES)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::io;

    use skipstep_ruleset::interface::Host;

    use super::*;
    use crate::load::load;

    thread_local! {
        /// Number of second halves that were joined on this thread.
        pub static JOINED: Cell<u32> = const { Cell::new(0) };
    }

    /// Returns the result of a load as text. Texts of at least `long` bytes are parsed in parallel.
    fn read(text: &str, long: usize) -> String {
        let resolve = |name: &str| {
            if name == "gateway" { vec!["192.0.2.1".parse().unwrap()] } else { Vec::new() }
        };
        let read_file = |name: &str| match name {
            "more" => Ok("pass to 10.9.9.9\nset block-policy return\n".to_owned()),
            _ => Err(io::ErrorKind::NotFound.into()),
        };
        let host = Host::default();
        let context = Context {
            resolve: &resolve,
            read_file: &read_file,
            random: &|| 7,
            ..Context::new(&host)
        };
        format!("{:?}", load(text, &context, long))
    }

    /// Asserts that a text has the same result in parallel. Returns true if the halves were joined.
    fn is_read_in_halves(text: &str) -> bool {
        let before = JOINED.get();
        let in_halves = read(text, 0);
        let joined = JOINED.get() - before;
        assert_eq!(in_halves, read(text, usize::MAX), "{text}");
        assert_eq!(JOINED.get() - before, joined, "a short text was read in halves: {text}");
        joined > 0
    }

    #[test]
    fn lists_of_rules_are_parsed_in_parallel() {
        let rules = "pass in quick proto tcp to gateway port 80 label \"$nr\"\nblock to gateway\n";
        for (text, in_halves) in [
            (rules.repeat(20), true),
            ("set block-policy return\nx = gateway\n".to_owned() + &rules.repeat(20), true),
            (format!("x = 1\n{}pass proto tcp to gateway port $x\n", rules.repeat(20)), true),
            (
                rules.repeat(20) + "pass proto tcp to gateway port {\n 1\n 2 3 }\npass to gateway",
                true,
            ),
            // statements between the rules have an effect
            (
                format!("x = 80\npass proto tcp to port $x\n{rules}x = 80\n{}", rules.repeat(20)),
                false,
            ),
            (rules.repeat(4) + "set block-policy return\n" + &rules.repeat(20), false),
            (rules.repeat(4) + "set state-policy if-bound\n" + &rules.repeat(20), false),
            (rules.repeat(4) + "x = \"gateway\"\n" + &rules.repeat(20), false),
            (rules.repeat(4) + "include \"more\"\n" + &rules.repeat(20), false),
            (rules.repeat(4) + "anchor a {\n" + &rules.repeat(20) + "}\n", false),
            // and so have statements in the second half
            (rules.repeat(20) + "set block-policy return\nblock to gateway\n", false),
            (rules.repeat(20) + "table <t> { gateway }\n", false),
            (rules.repeat(20) + "pass to gateway nat-to { 10.0.0.1 10.0.0.2 }\n", false),
            (rules.repeat(20) + "pass proto tcp to gateway port\n" + rules, false),
            (rules.repeat(20) + "pass on nowhere0 to gateway\n", false),
            // a line that begins like a rule may be something else
            (
                format!("{0}# {1} \\\npass to gateway\n{0}", "block\n".repeat(9), "x".repeat(99)),
                false,
            ),
            (format!("{rules}pass to gateway label \"a\n{}\"\n", "pass to\n".repeat(40)), false),
            (format!("{rules}block to {{ 10.0.0.1 \\\n{} }}\n", "block \\\n".repeat(40)), false),
        ] {
            assert_eq!(is_read_in_halves(&text), in_halves, "{text}");
        }
    }

    #[test]
    fn golden_texts_mean_the_same_in_parallel() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/conf");
        let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        let texts = files.filter(|file| file.extension().is_some_and(|name| name == "in"));
        let is_joined =
            |file: &std::path::PathBuf| is_read_in_halves(&std::fs::read_to_string(file).unwrap());
        let joined = texts.filter(is_joined).count();
        assert!(joined >= 4, "only {joined} golden texts were read in halves");
    }

    #[test]
    fn any_text_means_the_same_in_parallel() {
        let lines = [
            "pass in to gateway",
            "block drop in quick inet proto udp from any to 10.0.0.7 port 7",
            "match out on em0 from 10.0.0.0/8 nat-to 192.0.2.7 label \"$dstport\"",
            "pass proto udp from 10.0.0.1 to { 10.0.0.2 \n 10.0.0.3 } port $port",
            "block from { $nets }",
            "port = \"80\"",
            "nets = \"10.1.0.0/16, 10.2.0.0/16\"",
            "set state-defaults no-sync",
            "set block-policy return",
            "set require-order yes",
            "pass tag \"one\ntwo\"",
            "# pass to here, \\\npass proto tcp to port 1",
            "table <t> { 10.0.0.9 }",
            "pass to <t> rdr-to { 10.0.0.4, 10.0.0.5 } round-robin",
            "anchor \"a\" {",
            "}",
            "include \"more\"",
            "rdr on em0 proto tcp to port 21 -> 127.0.0.1",
            "state limiter l id 7 limit 9",
            "pass state limiter l",
            "pass quick to port nobody",
            "nonsense",
            "queue q on em0 bandwidth 1M",
            "pass set queue q",
        ];
        let mut seed = 1u64;
        let mut draw = |below: usize| {
            seed = seed.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
            (seed >> 33) as usize % below
        };
        let mut in_halves = 0;
        for _ in 0..3000 {
            let kinds = [2, 5, 9, lines.len()][draw(4)];
            let chosen: Vec<&str> = (0..1 + draw(24)).map(|_| lines[draw(kinds)]).collect();
            in_halves += usize::from(is_read_in_halves(&(chosen.join("\n") + "\n")));
        }
        assert!((300..2000).contains(&in_halves), "{in_halves}");
    }
}
