//! Tokens to statements: recursive descent, one function a production of pf.conf(5).
//!
//! Names of services, protocols and hosts are looked up as they are read, so that the first thing
//! wrong with a line is the one reported. After an error the rest of the line is left out; a syntax
//! error among the first words behind that is not reported again (both as OpenBSD's parser does).

mod address;
mod anchor;
mod expected;
mod freebsd;
mod icmp;
mod include;
mod limiter;
mod messages;
mod old;
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
use crate::token::{Kind, Place, Token};

/// An error that has been reported already.
#[derive(Debug)]
pub struct Reported;

/// What a production gives.
type Parse<T> = Result<T, Reported>;

/// Most items that the lists of a text can have together.
const MOST_ITEMS: usize = 1 << 21;

/// Most items in a list that is none of a table: more rules than that there cannot be.
const LONGEST_LIST: usize = crate::expand::MOST_RULES;

/// Tokens to be accepted after an error before a syntax error is reported again.
const AFTER_ERROR: u8 = 3;

/// Most messages about a text; behind that nothing is read.
const MOST_MESSAGES: usize = 10_000;

/// Most messages that come with a near name.
const MOST_SUGGESTIONS: usize = 20;

/// Highest number of a routing table or domain.
const HIGHEST_RTABLE: u32 = 255;

/// Longest name of an interface, in bytes.
const LONGEST_INTERFACE: usize = 15;

/// Reads statements off a text.
#[derive(Clone)]
pub struct Parser<'a> {
    lexer: Lexer,
    context: &'a Context<'a>,
    lookahead: Option<Token>,
    /// Words that may stand where the next token does.
    expected: Expected,
    /// Tokens to be accepted before a syntax error is reported again.
    silence: u8,
    /// Where the lexer last found something wrong: a macro that is not defined.
    complained: Option<(usize, usize)>,
    /// Lists within lists that are open.
    depth: u32,
    /// Items of lists so far.
    items: usize,
    /// Anchors whose braces are open, with their places.
    anchors: Vec<(Place, AnchorStatement)>,
    /// Size of all included texts, in bytes.
    included: usize,
    /// Names of the queues that rules can assign to: those that have a parent.
    queues: HashSet<String>,
    /// Limiters so far.
    limiters: Vec<Limiter>,
    /// Something was read that only old texts and FreeBSD's have. From there on other things count
    /// that mean something else, or nothing, in OpenBSD's language of today.
    old: bool,
    /// `altq` was there: queues are its.
    altq: bool,
    /// The order that statements have to stand in, if one is required.
    order: Option<order::Stage>,
    /// Settings of the statement being read: they hold even if the rest of the line is wrong.
    settings: Vec<Setting>,
    /// Whether any token was accepted.
    started: bool,
    /// Messages so far.
    pub diagnostics: Vec<Diagnostic>,
}

impl<'a> Parser<'a> {
    /// A parser at the beginning of `text`, which messages call `name`.
    pub fn new(name: &str, text: &str, macros: Macros, context: &'a Context<'a>) -> Self {
        Parser {
            lexer: Lexer::new(name, text, macros),
            context,
            lookahead: None,
            expected: Expected::new(),
            silence: 0,
            complained: None,
            depth: 0,
            items: 0,
            anchors: Vec::new(),
            included: 0,
            queues: HashSet::new(),
            limiters: Vec::new(),
            old: false,
            altq: false,
            order: None,
            settings: Vec::new(),
            started: false,
            diagnostics: Vec::new(),
        }
    }

    /// Lets rules use queues and limiters that another text defines.
    pub fn know(&mut self, queues: &[Queue], limiters: &[Limiter]) {
        let leaves = queues.iter().filter(|queue| queue.parent.is_some());
        self.queues.extend(leaves.map(|queue| queue.name.clone()));
        self.limiters.extend_from_slice(limiters);
    }

    /// The next statement without syntax errors, `None` at the end of the text. What follows its
    /// line is not read yet.
    pub fn statement(&mut self) -> Option<Statement> {
        loop {
            let mut place = self.place();
            match self.peek().kind {
                Kind::End => {
                    if !self.anchors.is_empty() {
                        let _ = self.syntax_error::<()>();
                    }
                    return None;
                }
                Kind::NewLine => self.skip(),
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

    /// This parser, which has read a rule of the text, at a line of it.
    pub fn moved_to(mut self, offset: usize, text: &str) -> Self {
        let lines = text[..offset].bytes().filter(|byte| *byte == b'\n').count();
        self.lexer.move_to(offset, lines as u32 + 1);
        self.lookahead = None;
        self
    }

    /// Whether what follows is read as by another parser that has read less, but rules.
    pub fn is_as_after_rules(&self, other: &Parser) -> bool {
        let in_anchors = !self.anchors.is_empty() || !other.anchors.is_empty();
        let ways = |parser: &Parser| (parser.old, parser.altq, parser.order, parser.silence);
        !in_anchors
            && ways(self) == ways(other)
            && self.queues == other.queues
            && self.limiters == other.limiters
            && self.lexer.is_as(&other.lexer)
    }

    /// Leaves out the rest of the text, which was read from `begin` to `end`. False, and unchanged,
    /// if there is more than a text can have then.
    pub fn end_as(&mut self, end: &Parser, begin: &Parser) -> bool {
        let items = self.items + (end.items - begin.items);
        if items > MOST_ITEMS || !self.lexer.count_as_read(&end.lexer, &begin.lexer) {
            return false;
        }
        self.items = items;
        self.stop();
        true
    }

    /// Leaves out the rest of the line after an error in a statement's meaning. OpenBSD's parser
    /// forgets the anchors that are open, too, and reports their braces as further errors.
    pub fn recover(&mut self) {
        self.silence = AFTER_ERROR;
        if self.context.dialect == Dialect::OpenBsd {
            self.anchors.clear();
        }
        if !self.started {
            // OpenBSD's parser gives up if the very first word is wrong.
            self.lexer.stop();
        }
        // the lexer has left out the line of what is no token; OpenBSD's parser leaves out the next
        // one, too
        if self.context.dialect == Dialect::Any && self.peek().kind == Kind::Bad {
            self.lookahead = None;
            return;
        }
        while !matches!(self.peek().kind, Kind::NewLine | Kind::End) {
            self.lookahead = None;
        }
    }

    /// Anchors whose braces are open.
    pub fn open_anchors(&self) -> usize {
        self.anchors.len()
    }

    /// Names of the macros nothing has used.
    pub fn unused_macros(&self) -> Vec<String> {
        self.lexer.macros.unused().map(str::to_string).collect()
    }

    fn statement_kind(&mut self) -> Parse<StatementKind> {
        let inside = !self.anchors.is_empty();
        match self.peek().kind.clone() {
            Kind::Keyword("pass" | "block" | "match") => self.rule(),
            Kind::Keyword("table") => self.table(),
            Kind::Keyword("anchor") => self.anchor(),
            Kind::Keyword("include") => self.include(),
            Kind::Sign('}') if inside => self.end_anchor(),
            // The braces of an anchor hold nothing else.
            _ if inside => self.syntax_error(),
            Kind::Keyword("set") => self.set(),
            Kind::Keyword("antispoof") => self.antispoof(),
            Kind::Keyword("scrub") => self.old_scrub(false),
            Kind::Keyword("load") => self.load_anchor(),
            Kind::Keyword("state") => self.state_limiter(),
            Kind::Keyword("queue") if self.altq => self.queue_of_altq(),
            Kind::Keyword("queue") => self.queue(),
            Kind::Keyword("no") => self.old_exception(),
            Kind::String(word) => self.macro_or_name(&word),
            Kind::Keyword(word) if freebsd::is_name(word, self.context.dialect) => {
                self.macro_or_name(word)
            }
            _ => self.syntax_error(),
        }
    }

    /// `name = value`, or a statement that begins with a word that is not reserved.
    fn macro_or_name(&mut self, word: &str) -> Parse<StatementKind> {
        let place = self.place();
        self.skip();
        if word == "source" && self.at_word("limiter") {
            return self.source_limiter();
        }
        if !self.accept_sign('=') {
            return self.old_statement(word, place);
        }
        if self.at_sign('{') {
            let here = self.place();
            let help = format!("a list as a value stands in quotes: `{word} = \"{{ a, b }}\"`");
            return self.syntax_error_at(here, |_| Some(help));
        }
        let mut words = vec![self.word_or_number()?];
        while matches!(self.peek().kind, Kind::String(_) | Kind::Number(_)) {
            words.push(self.word_or_number()?);
        }
        if word.contains(char::is_whitespace) {
            return self.error_at("macro name cannot contain whitespace", place);
        }
        if !matches!(self.peek().kind, Kind::NewLine | Kind::End) {
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
            Kind::NewLine => Ok(kind),
            _ => self.syntax_error(),
        }
    }
}

/// Productions used everywhere.
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

    /// `on`, if it is there: interfaces, each perhaps negated.
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

    /// `rtable`, if that is the next word. Every routing table exists on Linux, if only empty.
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
        Ok(name)
    }
}
