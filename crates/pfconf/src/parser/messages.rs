//! Messages, with their places and advice.

use super::rule::choices;
use super::{MOST_MESSAGES, MOST_SUGGESTIONS, Parse, Parser, Reported};
use crate::context::Dialect;
use crate::diagnostics::{Diagnostic, Severity};
use crate::suggest;
use crate::token::{Place, TokenKind};

impl Parser<'_> {
    pub(super) fn help_for_macro(&self, text: &str) -> Option<String> {
        let name = text.strip_prefix("macro '")?.strip_suffix("' not defined")?;
        if self.diagnostics.len() > MOST_SUGGESTIONS {
            return None;
        }
        suggest::nearest(name, self.lexer.macros.names())
            .map(|near| format!("did you mean `${near}`?"))
    }

    /// Reports an error at `place`.
    ///
    /// # Errors
    /// Always fails.
    pub(super) fn error_at<T>(&mut self, text: impl AsRef<str>, place: Place) -> Parse<T> {
        self.error_with_help(text, place, None)
    }

    pub(super) fn error_with_help<T>(
        &mut self,
        text: impl AsRef<str>,
        place: Place,
        help: Option<String>,
    ) -> Parse<T> {
        self.report(Severity::Error, text.as_ref(), place, help);
        Err(Reported)
    }

    /// Reports that the next token is unexpected.
    ///
    /// # Errors
    /// Always fails.
    pub(super) fn syntax_error<T>(&mut self) -> Parse<T> {
        let place = self.place();
        self.syntax_error_at(place, |parser| match parser.peek().kind.clone() {
            TokenKind::String(word) => suggest::nearest(&word, parser.expected.words())
                .map(|near| format!("did you mean `{near}`?")),
            TokenKind::NewLine => Some("the line ends too early".to_string()),
            TokenKind::Keyword(word) => parser
                .help_for_value(place)
                .or_else(|| help_for_order(word))
                .or_else(|| Some(format!("`{word}` is a reserved word: it is not allowed here"))),
            TokenKind::Sign('<') => parser
                .help_for_value(place)
                .or_else(|| Some("write a table behind `from` or `to`".to_string())),
            TokenKind::Sign('\r') => {
                Some("the text has DOS line endings: remove the carriage returns".to_string())
            }
            TokenKind::Sign(sign) if !sign.is_ascii() => Some(format!("write `{sign}` in quotes")),
            _ => parser.help_for_value(place),
        })
    }

    /// Returns the value of the macro at `place`, if there is one, because its text is invalid
    /// there.
    fn help_for_value(&self, place: Place) -> Option<String> {
        let (line, column, width) = self.lexer.source_line(place);
        let used: String = line.chars().skip(column.checked_sub(1)?).take(width).collect();
        let name = used.strip_prefix('$')?;
        let value = self.lexer.macros.value(name)?;
        Some(format!("`${name}` is `{value}`"))
    }

    pub(super) fn syntax_error_at<T>(
        &mut self,
        place: Place,
        help: impl FnOnce(&mut Self) -> Option<String>,
    ) -> Parse<T> {
        // OpenBSD also reports a syntax error where an undefined macro stands
        let is_reported = self.context.dialect == Dialect::Any
            && self.lexer_error_at == Some((place.source, place.offset));
        if self.silence == 0 && !is_reported {
            let help = help(self);
            self.report(Severity::Error, "syntax error", place, help);
        }
        Err(Reported)
    }

    /// Reports a syntax error where one of a few words is required, and lists the words.
    ///
    /// # Errors
    /// Always fails.
    pub(super) fn syntax_error_of_choice<T>(&mut self, words: &[&str]) -> Parse<T> {
        let place = self.place();
        self.syntax_error_at(place, |_| Some(choices(words)))
    }

    /// Adds a message at `place`.
    pub fn report(&mut self, kind: Severity, text: &str, place: Place, help: Option<String>) {
        let diagnostic = self.diagnostic(kind, text, place, help);
        self.add(diagnostic);
    }

    /// Returns a message at `place`.
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

    /// Adds a message that OpenBSD prints without a place.
    pub fn report_bare(&mut self, kind: Severity, text: &str, place: Place) {
        self.report(kind, text, place, None);
        if let Some(last) = self.diagnostics.last_mut() {
            last.bare = true;
        }
    }

    /// Adds a message about the last statement, with the number of its last line.
    pub fn report_statement(&mut self, kind: Severity, text: &str) {
        let diagnostic = self.statement_diagnostic(kind, text);
        self.add(diagnostic);
    }

    /// Adds a message. After [`MOST_MESSAGES`] messages the parser stops.
    pub fn add(&mut self, mut diagnostic: Diagnostic) {
        // the source line is printed once below several messages about it
        if let Some(last) = self.diagnostics.last()
            && (last.line, &last.file) == (diagnostic.line, &diagnostic.file)
            && (diagnostic.column == 0 || diagnostic.column == last.column)
        {
            diagnostic.source.clear();
        }
        if self.diagnostics.len() < MOST_MESSAGES {
            self.diagnostics.push(diagnostic);
        } else if self.diagnostics.len() == MOST_MESSAGES {
            let message = "too many errors: parsing ends here".to_string();
            self.diagnostics.push(Diagnostic { message, kind: Severity::Error, ..diagnostic });
            self.stop();
        }
    }

    /// Returns a message about the last statement.
    pub fn statement_diagnostic(&self, kind: Severity, text: &str) -> Diagnostic {
        let line = self.lexer.token_line();
        // no advice behind another error on the line, which explains this one
        let first = self.diagnostics.last().is_none_or(|last| last.line != line);
        let source = self.lexer.numbered_line(line);
        let (column, width) = crate::diagnostics::at_fault(text, &source);
        Diagnostic {
            kind,
            file: self.lexer.name().to_string(),
            line,
            column,
            width,
            message: text.to_string(),
            source,
            help: crate::diagnostics::help(text).filter(|_| first),
            ..Diagnostic::default()
        }
    }

    /// Adds a message that is not about a line.
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

/// Returns advice for a word of a rule's head in the wrong order.
fn help_for_order(word: &str) -> Option<String> {
    let order = ["in", "out", "log", "quick", "on", "inet", "inet6", "proto", "from", "to"];
    let is_of_head = order.contains(&word);
    is_of_head.then(|| {
        format!(
            "`{word}` is too late, or repeated: the order is `in` or `out`, `log`, `quick`, `on`, \
             `inet` or `inet6`, `proto`, `from`, `to`, then options"
        )
    })
}
