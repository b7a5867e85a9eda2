//! Tokens to statements: recursive descent, one function a production of pf.conf(5).
//!
//! Names of services, protocols and hosts are looked up as they are read, so that the first thing
//! wrong with a line is the one reported. After an error the rest of the line is left out; a syntax
//! error among the first words behind that is not reported again (both as OpenBSD's parser does).

mod address;
mod anchor;
mod freebsd;
mod include;
mod limiter;
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
mod translation;

use std::collections::HashSet;

use skipstep_ruleset::rule::InterfaceMatch;
use skipstep_ruleset::{Family, Limiter, Not};

use crate::ast::{AnchorStatement, Setting, Statement, StatementKind};
use crate::context::Context;
use crate::diagnostics::{Diagnostic, Kind as Severity};
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

/// Most messages about a text; behind that nothing is read.
const MOST_MESSAGES: usize = 10_000;

/// Most messages that come with a near name.
const MOST_SUGGESTIONS: usize = 20;

/// Highest number of a routing table or domain.
const HIGHEST_RTABLE: u32 = 255;

/// Longest name of an interface, in bytes.
const LONGEST_INTERFACE: usize = 15;

/// Reads statements off a text.
pub struct Parser<'a> {
    lexer: Lexer,
    context: &'a Context<'a>,
    lookahead: Option<Token>,
    /// Tokens to be accepted before a syntax error is reported again.
    silence: u8,
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
    /// Something was read that only old texts and FreeBSD's have. From there on other things count that
    /// mean something else, or nothing, in OpenBSD's language of today.
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
            silence: 0,
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
                    let file = self.lexer.included_name(place).map(str::to_string);
                    return Some(Statement { place, file, kind });
                }
            }
        }
    }

    /// Leaves out the rest of the line after an error in a statement's meaning, and forgets the
    /// anchors that are open, as OpenBSD's parser does.
    pub fn recover(&mut self) {
        self.silence = 3;
        self.anchors.clear();
        if !self.started {
            // OpenBSD's parser gives up if the very first word is wrong.
            self.lexer.stop();
        }
        while !matches!(self.peek().kind, Kind::NewLine | Kind::End) {
            self.lookahead = None;
        }
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

/// Tokens.
impl Parser<'_> {
    fn peek(&mut self) -> &Token {
        let token = match self.lookahead.take() {
            Some(token) => token,
            None => self.read(),
        };
        self.lookahead.insert(token)
    }

    fn read(&mut self) -> Token {
        let token = self.lexer.token();
        for (text, place) in std::mem::take(&mut self.lexer.complaints) {
            let help = self.help_for_macro(&text);
            self.report(Severity::Error, &text, place, help);
        }
        token
    }

    fn help_for_macro(&self, text: &str) -> Option<String> {
        let name = text.strip_prefix("macro '")?.strip_suffix("' not defined")?;
        if self.diagnostics.len() > MOST_SUGGESTIONS {
            return None;
        }
        suggest::nearest(name, self.lexer.macros.names())
            .map(|near| format!("did you mean `${near}`?"))
    }

    fn place(&mut self) -> Place {
        self.peek().place
    }

    /// Takes the next token.
    fn advance(&mut self) -> Token {
        self.silence = self.silence.saturating_sub(1);
        self.started = true;
        match self.lookahead.take() {
            Some(token) => token,
            None => self.read(),
        }
    }

    fn skip(&mut self) {
        self.advance();
    }

    fn at_keyword(&mut self, word: &str) -> bool {
        matches!(self.peek().kind, Kind::Keyword(here) if here == word)
    }

    /// Whether the next token is `word`, which is not reserved.
    fn at_word(&mut self, word: &str) -> bool {
        matches!(&self.peek().kind, Kind::String(here) if here == word)
    }

    fn expect_word(&mut self, word: &str) -> Parse<()> {
        if !self.at_word(word) {
            return self.syntax_error();
        }
        self.skip();
        Ok(())
    }

    fn accept(&mut self, word: &str) -> bool {
        let found = self.at_keyword(word);
        if found {
            self.skip();
        }
        found
    }

    fn expect(&mut self, word: &str) -> Parse<()> {
        if self.accept(word) { Ok(()) } else { self.syntax_error() }
    }

    fn at_sign(&mut self, sign: char) -> bool {
        self.peek().kind == Kind::Sign(sign)
    }

    fn accept_sign(&mut self, sign: char) -> bool {
        let found = self.at_sign(sign);
        if found {
            self.skip();
        }
        found
    }

    fn expect_sign(&mut self, sign: char) -> Parse<()> {
        if self.accept_sign(sign) { Ok(()) } else { self.syntax_error() }
    }

    fn string(&mut self) -> Parse<String> {
        match self.peek().kind.clone() {
            Kind::String(word) => {
                self.skip();
                Ok(word)
            }
            Kind::Keyword(word) => {
                let place = self.place();
                let help = format!("`{word}` is a reserved word: as a name it needs quotes");
                self.syntax_error_at(place, |_| Some(help))
            }
            _ => self.syntax_error(),
        }
    }

    /// Several words are one, with spaces between them.
    fn strings(&mut self) -> Parse<String> {
        let mut words = vec![self.string()?];
        while matches!(self.peek().kind, Kind::String(_)) {
            words.push(self.string()?);
        }
        Ok(words.join(" "))
    }

    fn number(&mut self) -> Parse<i64> {
        match self.peek().kind {
            Kind::Number(number) => {
                self.skip();
                Ok(number)
            }
            _ => self.syntax_error(),
        }
    }

    fn unsigned(&mut self) -> Parse<u32> {
        let place = self.place();
        let number = self.number()?;
        match u32::try_from(number) {
            Ok(number) => Ok(number),
            Err(_) => self.error_at("only positive values permitted", place),
        }
    }

    fn word_or_number(&mut self) -> Parse<String> {
        match self.peek().kind.clone() {
            Kind::Number(number) => {
                self.skip();
                Ok(number.to_string())
            }
            _ => self.string(),
        }
    }

    fn new_lines(&mut self) {
        while self.peek().kind == Kind::NewLine {
            self.skip();
        }
    }

    /// One item, or several in braces with or without commas between them. `item` is told whether it
    /// stands in a list.
    fn list<T>(&mut self, mut item: impl FnMut(&mut Self) -> Parse<T>) -> Parse<Vec<T>> {
        if !self.accept_sign('{') {
            return Ok(vec![item(self)?]);
        }
        self.new_lines();
        let mut items = Vec::new();
        loop {
            items.push(item(self)?);
            self.count_item()?;
            if items.len() > LONGEST_LIST {
                let place = self.place();
                return self.error_at(format!("list of more than {LONGEST_LIST} items"), place);
            }
            self.new_lines();
            if self.accept_sign('}') {
                return Ok(items);
            }
            self.list_comma()?;
        }
    }

    /// Counts an item of a list, so that no text can exhaust the memory.
    fn count_item(&mut self) -> Parse<()> {
        self.items += 1;
        if self.items <= MOST_ITEMS {
            return Ok(());
        }
        let place = self.place();
        let help = Some("long lists of addresses belong in table files".to_string());
        let result =
            self.error_with_help(format!("more than {MOST_ITEMS} items in lists"), place, help);
        self.stop();
        result
    }

    /// Leaves out the rest of the text.
    fn stop(&mut self) {
        self.lexer.stop();
        self.lookahead = None;
    }

    /// A comma between the items of a list, which may be left out, but not end a line.
    fn list_comma(&mut self) -> Parse<()> {
        if self.accept_sign(',') && self.peek().kind == Kind::NewLine {
            let place = self.place();
            let help = "leave out the comma, or join the lines with a backslash";
            return self.syntax_error_at(place, |_| Some(help.to_string()));
        }
        Ok(())
    }

    /// Items in parentheses, which are open already, with or without commas between them.
    fn until_parenthesis<T>(
        &mut self,
        mut item: impl FnMut(&mut Self) -> Parse<T>,
    ) -> Parse<Vec<T>> {
        let mut items = vec![item(self)?];
        while !self.accept_sign(')') {
            self.accept_sign(',');
            items.push(item(self)?);
        }
        Ok(items)
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

/// Messages.
impl Parser<'_> {
    /// Reports an error whose place is `place`.
    fn error_at<T>(&mut self, text: impl AsRef<str>, place: Place) -> Parse<T> {
        self.error_with_help(text, place, None)
    }

    fn error_with_help<T>(
        &mut self,
        text: impl AsRef<str>,
        place: Place,
        help: Option<String>,
    ) -> Parse<T> {
        self.report(Severity::Error, text.as_ref(), place, help);
        Err(Reported)
    }

    /// Reports that the next token is not what was expected.
    fn syntax_error<T>(&mut self) -> Parse<T> {
        let place = self.place();
        self.syntax_error_at(place, |parser| match parser.peek().kind.clone() {
            Kind::String(word) => suggest::nearest(&word, crate::token::KEYWORDS)
                .map(|near| format!("did you mean `{near}`?")),
            Kind::NewLine => Some("the line ends too early".to_string()),
            Kind::Keyword(word) => parser
                .help_for_value(place)
                .or_else(|| Some(format!("`{word}` is a reserved word: it cannot stand here"))),
            Kind::Sign('<') => parser
                .help_for_value(place)
                .or_else(|| Some("a table stands behind `from` or `to`".to_string())),
            Kind::Sign('\r') => Some("the text has line ends of DOS".to_string()),
            Kind::Sign(sign) if !sign.is_ascii() => {
                Some(format!("`{sign}` can stand in quotes only"))
            }
            _ => parser.help_for_value(place),
        })
    }

    /// What a macro's value is whose text cannot stand here.
    fn help_for_value(&self, place: Place) -> Option<String> {
        let (line, column, width) = self.lexer.source_line(place);
        let used: String = line.chars().skip(column.checked_sub(1)?).take(width).collect();
        let name = used.strip_prefix('$')?;
        let value = self.lexer.macros.value(name)?;
        Some(format!("`${name}` is `{value}`"))
    }

    fn syntax_error_at<T>(
        &mut self,
        place: Place,
        help: impl FnOnce(&mut Self) -> Option<String>,
    ) -> Parse<T> {
        if self.silence == 0 {
            let help = help(self);
            self.report(Severity::Error, "syntax error", place, help);
        }
        Err(Reported)
    }

    /// Adds a message at `place`.
    pub fn report(&mut self, kind: Severity, text: &str, place: Place, help: Option<String>) {
        let diagnostic = self.diagnostic(kind, text, place, help);
        self.add(diagnostic);
    }

    /// A message at `place`.
    pub fn diagnostic(
        &self,
        kind: Severity,
        text: &str,
        place: Place,
        help: Option<String>,
    ) -> Diagnostic {
        let (source, column, width) = self.lexer.source_line(place);
        Diagnostic {
            kind,
            file: self.lexer.name().to_string(),
            line: self.lexer.token_line(),
            column: column as u32,
            width: width as u32,
            message: text.to_string(),
            bare: false,
            source,
            help,
        }
    }

    /// Adds a message that OpenBSD prints without its place.
    pub fn report_bare(&mut self, kind: Severity, text: &str, place: Place) {
        self.report(kind, text, place, None);
        if let Some(last) = self.diagnostics.last_mut() {
            last.bare = true;
        }
    }

    /// Adds a message about the statement that has just been read: on its last line.
    pub fn report_statement(&mut self, kind: Severity, text: &str) {
        let diagnostic = self.statement_diagnostic(kind, text);
        self.add(diagnostic);
    }

    fn add(&mut self, diagnostic: Diagnostic) {
        if self.diagnostics.len() < MOST_MESSAGES {
            self.diagnostics.push(diagnostic);
        } else if self.diagnostics.len() == MOST_MESSAGES {
            let message = "too many errors: the rest is not read".to_string();
            self.diagnostics.push(Diagnostic { message, kind: Severity::Error, ..diagnostic });
            self.stop();
        }
    }

    /// Anchors whose braces are open.
    pub fn open_anchors(&self) -> usize {
        self.anchors.len()
    }

    /// A message about the statement that has just been read.
    pub fn statement_diagnostic(&self, kind: Severity, text: &str) -> Diagnostic {
        let line = self.lexer.token_line();
        // Behind another error on the line this one explains itself.
        let first = self.diagnostics.last().is_none_or(|last| last.line != line);
        Diagnostic {
            kind,
            file: self.lexer.name().to_string(),
            line,
            message: text.to_string(),
            source: self.lexer.numbered_line(line),
            help: crate::diagnostics::help(text).filter(|_| first),
            ..Diagnostic::default()
        }
    }

    /// Adds a message that is about no line.
    pub fn report_text(&mut self, kind: Severity, text: &str) {
        self.diagnostics.push(Diagnostic {
            kind,
            file: self.context.file_name.to_string(),
            message: text.to_string(),
            bare: true,
            ..Diagnostic::default()
        });
    }
}
