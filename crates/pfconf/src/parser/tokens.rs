//! Tokens and lists.

use super::freebsd::is_name;
use super::{LONGEST_LIST, MOST_ITEMS, Parse, Parser};
use crate::diagnostics::Severity;
use crate::token::{Place, Token, TokenKind};

impl Parser<'_> {
    #[inline]
    pub(super) fn peek(&mut self) -> &Token {
        if self.lookahead.is_none() {
            self.lookahead = Some(self.read());
        }
        self.lookahead.get_or_insert_default()
    }

    fn read(&mut self) -> Token {
        let token = self.lexer.token();
        if !self.lexer.errors.is_empty() {
            self.report_lexer_errors();
        }
        token
    }

    /// Reports the errors that the lexer found.
    fn report_lexer_errors(&mut self) {
        for (text, place) in std::mem::take(&mut self.lexer.errors) {
            let help = self.help_for_macro(&text);
            self.report(Severity::Error, &text, place, help);
            self.lexer_error_at = Some((place.source, place.offset));
        }
    }

    pub(super) fn place(&mut self) -> Place {
        self.peek().place
    }

    /// Takes the next token.
    pub(super) fn advance(&mut self) -> Token {
        self.silence = self.silence.saturating_sub(1);
        self.started = true;
        self.expected.clear();
        match self.lookahead.take() {
            Some(token) => token,
            None => self.read(),
        }
    }

    pub(super) fn skip(&mut self) {
        self.advance();
    }

    #[inline]
    pub(super) fn at_keyword(&mut self, word: &'static str) -> bool {
        let found = matches!(self.peek().kind, TokenKind::Keyword(here) if here == word);
        if !found {
            self.expected.note(word);
        }
        found
    }

    /// True if the next token is `word`, which is not reserved.
    pub(super) fn at_word(&mut self, word: &'static str) -> bool {
        let found = matches!(&self.peek().kind, TokenKind::String(here) if here == word);
        if !found {
            self.expected.note(word);
        }
        found
    }

    /// Takes the next token if it is `word`, which is not reserved.
    pub(super) fn accept_word(&mut self, word: &'static str) -> bool {
        let found = self.at_word(word);
        if found {
            self.skip();
        }
        found
    }

    pub(super) fn expect_word(&mut self, word: &'static str) -> Parse<()> {
        if self.accept_word(word) { Ok(()) } else { self.syntax_error() }
    }

    #[inline]
    pub(super) fn accept(&mut self, word: &'static str) -> bool {
        let found = self.at_keyword(word);
        if found {
            self.skip();
        }
        found
    }

    pub(super) fn expect(&mut self, word: &'static str) -> Parse<()> {
        if self.accept(word) { Ok(()) } else { self.syntax_error() }
    }

    #[inline]
    pub(super) fn at_sign(&mut self, sign: char) -> bool {
        self.peek().kind == TokenKind::Sign(sign)
    }

    #[inline]
    pub(super) fn accept_sign(&mut self, sign: char) -> bool {
        let found = self.at_sign(sign);
        if found {
            self.skip();
        }
        found
    }

    pub(super) fn expect_sign(&mut self, sign: char) -> Parse<()> {
        if self.accept_sign(sign) { Ok(()) } else { self.syntax_error() }
    }

    /// Parses a name. In FreeBSD's language it may be a word that only OpenBSD reserves.
    pub(super) fn name(&mut self) -> Parse<String> {
        let dialect = self.context.dialect;
        match self.peek().kind {
            TokenKind::Keyword(word) if is_name(word, dialect) => {
                let place = self.place();
                self.note_foreign_form(place)?;
                self.skip();
                Ok(word.to_string())
            }
            _ => self.string(),
        }
    }

    pub(super) fn string(&mut self) -> Parse<String> {
        match self.peek().kind {
            TokenKind::String(_) => match self.advance().kind {
                TokenKind::String(word) => Ok(word),
                _ => self.syntax_error(),
            },
            TokenKind::Keyword(word) => {
                let place = self.place();
                let help = format!("`{word}` is a reserved word: as a name it needs quotes");
                self.syntax_error_at(place, |_| Some(help))
            }
            _ => self.syntax_error(),
        }
    }

    /// Parses one or several words, and joins them with spaces.
    pub(super) fn strings(&mut self) -> Parse<String> {
        let first = self.string()?;
        self.strings_until(first, |_, _| Ok(false))
    }

    /// Parses the words behind `first`, up to the word for which `ends` returns true.
    pub(super) fn strings_until(
        &mut self,
        first: String,
        mut ends: impl FnMut(&mut Self, &str) -> Parse<bool>,
    ) -> Parse<String> {
        let mut words = vec![first];
        while matches!(self.peek().kind, TokenKind::String(_)) {
            let word = self.string()?;
            if ends(self, &word)? {
                break;
            }
            words.push(word);
        }
        Ok(words.join(" "))
    }

    pub(super) fn number(&mut self) -> Parse<i64> {
        match self.peek().kind {
            TokenKind::Number(number) => {
                self.skip();
                Ok(number)
            }
            _ => self.syntax_error(),
        }
    }

    pub(super) fn unsigned(&mut self) -> Parse<u32> {
        let place = self.place();
        let number = self.number()?;
        match u32::try_from(number) {
            Ok(number) => Ok(number),
            Err(_) => self.error_at("only positive values permitted", place),
        }
    }

    pub(super) fn word_or_number(&mut self) -> Parse<String> {
        match self.peek().kind.clone() {
            TokenKind::Number(number) => {
                self.skip();
                Ok(number.to_string())
            }
            _ => self.string(),
        }
    }

    pub(super) fn new_lines(&mut self) {
        while self.peek().kind == TokenKind::NewLine {
            self.skip();
        }
    }

    /// Parses one item, or several in braces with or without commas.
    pub(super) fn list<T>(&mut self, mut item: impl FnMut(&mut Self) -> Parse<T>) -> Parse<Vec<T>> {
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
    pub(super) fn count_item(&mut self) -> Parse<()> {
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

    /// Skips the remaining text.
    pub(super) fn stop(&mut self) {
        self.lexer.stop();
        self.lookahead = None;
    }

    /// Parses an optional comma between the items of a list. A comma must not end a line.
    pub(super) fn list_comma(&mut self) -> Parse<()> {
        if self.accept_sign(',') && self.peek().kind == TokenKind::NewLine {
            let place = self.place();
            let help = "leave out the comma, or join the lines with a backslash";
            return self.syntax_error_at(place, |_| Some(help.to_string()));
        }
        Ok(())
    }

    /// Parses items up to the closing parenthesis, with or without commas. The opening one has been
    /// read.
    pub(super) fn until_parenthesis<T>(
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
