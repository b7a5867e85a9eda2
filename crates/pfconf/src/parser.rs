//! The parser: recursive descent with one function for each production of pf.conf(5).
//!
//! Names of services, protocols and hosts are resolved while they are read, so the first error of a
//! line is the one reported. After an error the remaining line is skipped, and a syntax error in
//! the next few tokens is not reported. OpenBSD's parser does the same.

mod address;
mod anchor;
mod expected;
pub(crate) mod freebsd;
mod icmp;
mod include;
mod legacy;
mod limiter;
mod messages;
mod options;
mod order;
mod owner;
mod pool;
mod queue;
mod rule;
mod scrub;
mod settings;
mod state;
mod table;
mod tokens;
mod translation;

use std::collections::HashSet;

use expected::Expected;
use skipstep_ruleset::rule::InterfaceMatch;
use skipstep_ruleset::{Family, Limiter, Not, Queue};

use crate::ast::{AnchorStatement, Setting, Statement, StatementKind};
use crate::context::{Context, Dialect};
use crate::diagnostics::Diagnostic;
use crate::lexer::Lexer;
use crate::macros::Macros;
use crate::suggest;
use crate::token::{Place, Token, TokenKind};

/// An error that has been reported.
#[derive(Debug)]
pub struct Reported;

/// The result of a production.
type Parse<T> = Result<T, Reported>;

/// Most items in all lists of a text together.
// Differs from OpenBSD: linux.md, "Files that a pf.conf names"
const MOST_ITEMS: usize = 1 << 21;

/// Most items in a list other than a table's, because each item makes a rule.
const LONGEST_LIST: usize = crate::expand::MOST_RULES;

/// Number of tokens to accept after an error before another syntax error is reported.
const AFTER_ERROR: u8 = 3;

/// Most messages about a text; the parser then stops.
const MOST_MESSAGES: usize = 10_000;

/// Most messages with a suggested name.
const MOST_SUGGESTIONS: usize = 20;

/// Highest number of a routing table or routing domain.
// Differs from OpenBSD: linux.md, "Names in pf.conf"
const HIGHEST_RTABLE: u32 = 255;

/// Most bytes of an interface name.
const LONGEST_INTERFACE: usize = 15;

/// Reads statements from a text.
#[derive(Clone)]
pub struct Parser<'a> {
    lexer: Lexer,
    context: &'a Context<'a>,
    lookahead: Option<Token>,
    /// The words that would be accepted as the next token.
    expected: Expected,
    /// Number of tokens to accept before another syntax error is reported.
    silence: u8,
    /// Source and offset of the last error that the lexer reported, such as an undefined macro.
    lexer_error_at: Option<(usize, usize)>,
    /// Depth of nested lists.
    depth: u32,
    /// Number of list items so far.
    items: usize,
    /// The anchors whose braces are open, with their places.
    anchors: Vec<(Place, AnchorStatement)>,
    /// Bytes of all included texts.
    included: usize,
    /// Names of the queues that rules may use, which are those with a parent.
    queues: HashSet<String>,
    /// The limiters defined so far.
    limiters: Vec<Limiter>,
    /// True after a form that only legacy texts and FreeBSD have. Words that mean something else,
    /// or nothing, in OpenBSD's present language then have their legacy meaning.
    legacy: bool,
    /// True after `altq`: `queue` statements then have ALTQ's syntax.
    altq: bool,
    /// The required order of statements, if there is one.
    order: Option<order::Stage>,
    /// Settings of the present statement, which hold even if the remaining line is wrong.
    settings: Vec<Setting>,
    /// True after the first accepted token.
    started: bool,
    /// The messages so far.
    pub diagnostics: Vec<Diagnostic>,
}

impl<'a> Parser<'a> {
    /// Returns a parser at the beginning of `text`, which messages call `name`.
    pub fn new(name: &str, text: &str, macros: Macros, context: &'a Context<'a>) -> Self {
        Parser {
            lexer: Lexer::new(name, text, macros),
            context,
            lookahead: None,
            expected: Expected::new(),
            silence: 0,
            lexer_error_at: None,
            depth: 0,
            items: 0,
            anchors: Vec::new(),
            included: 0,
            queues: HashSet::new(),
            limiters: Vec::new(),
            legacy: false,
            altq: false,
            order: None,
            settings: Vec::new(),
            started: false,
            diagnostics: Vec::new(),
        }
    }

    /// Adds queues and limiters of another text, which rules may use.
    pub fn add_definitions(&mut self, queues: &[Queue], limiters: &[Limiter]) {
        let leaves = queues.iter().filter(|queue| queue.parent.is_some());
        self.queues.extend(leaves.map(|queue| queue.name.clone()));
        self.limiters.extend_from_slice(limiters);
    }

    /// Returns the next statement without syntax errors; `None` at the end of the text. The text
    /// behind the statement's line is not read yet.
    pub fn statement(&mut self) -> Option<Statement> {
        loop {
            let mut place = self.place();
            match self.peek().kind {
                TokenKind::End => {
                    if !self.anchors.is_empty() {
                        let _ = self.syntax_error::<()>();
                    }
                    return None;
                }
                TokenKind::NewLine => self.skip(),
                _ => {
                    let head = self.anchors.last().map(|(head, _)| *head);
                    if let Some(head) = head.filter(|_| self.at_sign('}')) {
                        place = head;
                    }
                    let result = self.statement_kind().and_then(|kind| self.end_of_line(kind));
                    let result = result.and_then(|kind| self.in_order(&kind, place).map(|()| kind));
                    let settings = std::mem::take(&mut self.settings);
                    let kind = match result {
                        Ok(kind) => kind,
                        Err(Reported) => {
                            self.recover();
                            if settings.is_empty() {
                                continue;
                            }
                            StatementKind::Set(settings)
                        }
                    };
                    let file = self.lexer.included_name(place).cloned();
                    return Some(Statement { place, file, kind });
                }
            }
        }
    }

    /// Returns this parser moved to the line at byte `offset` of the text.
    pub fn moved_to(mut self, offset: usize, text: &str) -> Self {
        let lines = text[..offset].bytes().filter(|byte| *byte == b'\n').count();
        self.lexer.move_to(offset, lines as u32 + 1);
        self.lookahead = None;
        self
    }

    /// True if another parser that has read fewer rules would parse the remaining text in the same
    /// way.
    pub fn continues_like(&self, other: &Parser) -> bool {
        let in_anchors = !self.anchors.is_empty() || !other.anchors.is_empty();
        let ways = |parser: &Parser| (parser.legacy, parser.altq, parser.order, parser.silence);
        !in_anchors
            && ways(self) == ways(other)
            && self.queues == other.queues
            && self.limiters == other.limiters
            && self.lexer.continues_like(&other.lexer)
    }

    /// Skips the remaining text, which another parser has read from state `begin` to state `end`.
    /// Returns false, and changes nothing, if the text would then exceed a limit.
    pub fn adopt_end(&mut self, end: &Parser, begin: &Parser) -> bool {
        let items = self.items + (end.items - begin.items);
        if items > MOST_ITEMS || !self.lexer.adopt_counts(&end.lexer, &begin.lexer) {
            return false;
        }
        self.items = items;
        self.stop();
        true
    }

    /// Skips the remaining line after a semantic error. OpenBSD's parser also forgets the open
    /// anchors, and reports their closing braces as further errors.
    pub fn recover(&mut self) {
        self.silence = AFTER_ERROR;
        if self.context.dialect == Dialect::OpenBsd {
            self.anchors.clear();
        }
        if !self.started {
            // OpenBSD's parser stops if the first word is wrong
            self.lexer.stop();
        }
        // the lexer has skipped the line of an invalid token; OpenBSD's parser skips the next line,
        // too
        if self.context.dialect == Dialect::Any && self.peek().kind == TokenKind::Bad {
            self.lookahead = None;
            return;
        }
        while !matches!(self.peek().kind, TokenKind::NewLine | TokenKind::End) {
            self.lookahead = None;
        }
    }

    /// Returns the number of anchors whose braces are open.
    pub fn open_anchors(&self) -> usize {
        self.anchors.len()
    }

    /// Returns the names of unused macros.
    pub fn unused_macros(&self) -> Vec<String> {
        self.lexer.macros.unused().map(str::to_string).collect()
    }

    fn statement_kind(&mut self) -> Parse<StatementKind> {
        let inside = !self.anchors.is_empty();
        match self.peek().kind.clone() {
            TokenKind::Keyword("pass" | "block" | "match") => self.rule(),
            TokenKind::Keyword("table") => self.table(),
            TokenKind::Keyword("anchor") => self.anchor(),
            TokenKind::Keyword("include") => self.include(),
            TokenKind::Sign('}') if inside => self.end_anchor(),
            // an anchor's braces contain no other statements
            _ if inside => self.syntax_error(),
            TokenKind::Keyword("set") => self.set(),
            TokenKind::Keyword("antispoof") => self.antispoof(),
            TokenKind::Keyword("scrub") => self.legacy_scrub(false),
            TokenKind::Keyword("load") => self.load_anchor(),
            TokenKind::Keyword("state") => self.state_limiter(),
            TokenKind::Keyword("queue") if self.altq => self.queue_of_altq(),
            TokenKind::Keyword("queue") => self.queue(),
            TokenKind::Keyword("no") => self.legacy_exception(),
            TokenKind::String(word) => self.macro_or_name(&word),
            TokenKind::Keyword(word) if freebsd::is_name(word, self.context.dialect) => {
                self.macro_or_name(word)
            }
            _ => self.syntax_error(),
        }
    }

    /// Parses `name = value`, or a statement that begins with a word that is not reserved.
    fn macro_or_name(&mut self, word: &str) -> Parse<StatementKind> {
        let place = self.place();
        self.skip();
        if word == "source" && self.at_word("limiter") {
            return self.source_limiter();
        }
        if !self.accept_sign('=') {
            return self.legacy_statement(word, place);
        }
        if self.at_sign('{') {
            let here = self.place();
            let help = format!("write a list as a value in quotes: `{word} = \"{{ a, b }}\"`");
            return self.syntax_error_at(here, |_| Some(help));
        }
        let mut words = vec![self.word_or_number()?];
        while matches!(self.peek().kind, TokenKind::String(_) | TokenKind::Number(_)) {
            words.push(self.word_or_number()?);
        }
        if word.contains(char::is_whitespace) {
            return self.error_at("macro name cannot contain whitespace", place);
        }
        if !matches!(self.peek().kind, TokenKind::NewLine | TokenKind::End) {
            return self.syntax_error();
        }
        let value = words.join(" ");
        self.lexer.macros.define(word, &value);
        Ok(StatementKind::Macro { name: word.to_string(), value })
    }

    fn unknown_statement(&mut self, word: &str, place: Place) -> Parse<StatementKind> {
        let here = self.place();
        self.syntax_error_at(if here.line == place.line { place } else { here }, |_| {
            let starters = [
                "pass",
                "block",
                "match",
                "set",
                "table",
                "antispoof",
                "anchor",
                "queue",
                "load",
                "include",
            ];
            suggest::nearest(word, starters).map(|near| format!("did you mean `{near}`?"))
        })
    }

    fn end_of_line(&mut self, kind: StatementKind) -> Parse<StatementKind> {
        if matches!(kind, StatementKind::Include) {
            return Ok(kind);
        }
        match self.peek().kind {
            TokenKind::NewLine => Ok(kind),
            _ => self.syntax_error(),
        }
    }
}

/// Productions that many statements use.
impl Parser<'_> {
    fn family(&mut self) -> Option<Family> {
        if self.accept("inet") {
            Some(Family::Inet)
        } else if self.accept("inet6") {
            Some(Family::Inet6)
        } else {
            None
        }
    }

    /// Parses an optional `on`: interfaces that may be negated.
    fn interfaces(&mut self) -> Parse<Vec<Not<InterfaceMatch>>> {
        if !self.accept("on") {
            return Ok(Vec::new());
        }
        self.list(|parser| {
            let negated = parser.accept_sign('!');
            Ok(Not { negated, value: parser.interface()? })
        })
    }

    fn interface(&mut self) -> Parse<InterfaceMatch> {
        if self.accept("any") {
            return Ok(InterfaceMatch::Any);
        }
        let place = self.place();
        if self.accept("rdomain") {
            let number = self.number()?;
            return match u32::try_from(number) {
                Ok(number) if number <= HIGHEST_RTABLE => Ok(InterfaceMatch::Rdomain(number)),
                _ => self.error_at(format!("rdomain {number} outside range"), place),
            };
        }
        self.interface_name().map(InterfaceMatch::Named)
    }

    /// Parses an optional `rtable`. On Linux all routing tables exist, some of them empty.
    fn rtable(&mut self) -> Parse<Option<u32>> {
        if !self.accept("rtable") {
            return Ok(None);
        }
        let place = self.place();
        let number = self.number()?;
        match u32::try_from(number) {
            Ok(number) if number <= HIGHEST_RTABLE => Ok(Some(number)),
            _ => self.error_at("invalid rtable id", place),
        }
    }

    fn interface_name(&mut self) -> Parse<String> {
        let place = self.place();
        let name = self.string()?;
        if name.len() > LONGEST_INTERFACE {
            return self.error_at("interface name too long", place);
        }
        Ok(self.interface_called(name))
    }

    /// Returns the host's name of an interface.
    fn interface_called(&self, name: String) -> String {
        let own = self.context.host.interface_name(&name);
        if own == name { name } else { own.to_owned() }
    }
}
