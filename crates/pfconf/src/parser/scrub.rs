//! Parses normalization: the `scrub` option of a rule, and the legacy `scrub` statement
//! (pf-features sections 10 and 12).

use skipstep_ruleset::{Action, LegacyKind, Scrub};

use super::{Parse, Parser};
use crate::ast::{FilterOptions, LegacyStatement, RuleStatement, StatementKind};
use crate::diagnostics::Severity;
use crate::token::Place;

/// The scrub options as written. Numbers may be 0.
#[derive(Default)]
struct Written {
    scrub: Scrub,
    min_ttl: Option<u8>,
    max_mss: Option<u16>,
}

impl Written {
    /// Returns the options. A number that is 0 has no effect.
    fn meaning(self) -> Scrub {
        Scrub {
            min_ttl: self.min_ttl.filter(|ttl| *ttl > 0),
            max_mss: self.max_mss.filter(|mss| *mss > 0),
            ..self.scrub
        }
    }
}

impl Parser<'_> {
    /// Parses the contents of `scrub (...)`.
    pub(super) fn scrub(&mut self, options: &mut FilterOptions) -> Parse<()> {
        let mut written = Written::default();
        self.until_parenthesis(|parser| {
            let place = parser.place();
            if parser.scrub_option(&mut written)? || parser.scrub_tos(options)? {
                return Ok(());
            }
            if parser.accept("fragment") {
                return parser.fragment_of_rule(place);
            }
            parser.syntax_error()
        })?;
        options.scrub = written.meaning();
        Ok(())
    }

    /// Parses an option. Returns false if there is none.
    fn scrub_option(&mut self, written: &mut Written) -> Parse<bool> {
        let place = self.place();
        if self.accept("no-df") {
            self.set_once(&mut written.scrub.no_df, "no-df", place)?;
        } else if self.accept("random-id") {
            self.set_once(&mut written.scrub.random_id, "random-id", place)?;
        } else if self.accept("min-ttl") {
            let place = self.place();
            let number = self.number()?;
            if written.min_ttl.is_some() {
                return self.error_at("min-ttl cannot be respecified", place);
            }
            match u8::try_from(number) {
                Ok(ttl) => written.min_ttl = Some(ttl),
                Err(_) => return self.error_at(format!("illegal min-ttl value {number}"), place),
            }
        } else if self.accept("max-mss") {
            let place = self.place();
            let number = self.number()?;
            if written.max_mss.is_some() {
                return self.error_at("max-mss cannot be respecified", place);
            }
            match u16::try_from(number) {
                Ok(mss) => written.max_mss = Some(mss),
                Err(_) => return self.error_at(format!("illegal max-mss value {number}"), place),
            }
        } else if self.accept("reassemble") {
            let word = self.string()?;
            if !word.eq_ignore_ascii_case("tcp") {
                let text = format!("scrub reassemble supports only tcp, not '{word}'");
                return self.error_at(text, place);
            }
            self.set_once(&mut written.scrub.reassemble_tcp, "reassemble tcp", place)?;
        } else {
            return Ok(false);
        }
        Ok(true)
    }

    fn set_once(&mut self, option: &mut bool, name: &str, place: Place) -> Parse<()> {
        if std::mem::replace(option, true) {
            return self.error_at(format!("{name} cannot be respecified"), place);
        }
        Ok(())
    }

    /// Parses `[no] scrub [in|out] [log] [on ...] [af] [proto ...] [hosts] [options]`.
    pub(super) fn legacy_scrub(&mut self, no: bool) -> Parse<StatementKind> {
        let place = self.place();
        self.note_foreign_form(place)?;
        self.expect("scrub")?;
        let direction = self.direction();
        let place = self.place();
        let (log, quick) = self.log_quick()?;
        if quick {
            return self.error_at("scrub rules do not support 'quick'", place);
        }
        let head = self.head(Action::Match, None)?;
        let mut options = FilterOptions::default();
        let leave_fragments = self.legacy_scrub_options(&mut options)?;
        if options.scrub.reassemble_tcp && direction.is_some() {
            return self.error_at("reassemble tcp rules can not specify direction", place);
        }
        let rule = RuleStatement { direction, log, options, ..head };
        Ok(StatementKind::Legacy(Box::new(LegacyStatement {
            kind: LegacyKind::Scrub,
            no,
            leave_fragments,
            ..LegacyStatement::new(rule)
        })))
    }

    /// Parses options with or without commas. Returns true for `fragment no reassemble`.
    fn legacy_scrub_options(&mut self, options: &mut FilterOptions) -> Parse<bool> {
        let mut written = Written::default();
        let mut fragments = None;
        loop {
            let place = self.place();
            if self.accept("fragment") {
                let leave = self.fragment_mode()?;
                if fragments.replace(leave).is_some() {
                    return self.error_at("fragcache cannot be respecified", place);
                }
            } else if !self.scrub_option(&mut written)?
                && !self.scrub_tos(options)?
                && !self.legacy_option(options)?
            {
                options.scrub = written.meaning();
                return Ok(fragments.unwrap_or(false));
            }
            self.accept_sign(',');
        }
    }

    /// Parses the words behind `fragment` in the option of a rule, where they have no effect, as in
    /// FreeBSD.
    fn fragment_of_rule(&mut self, place: Place) -> Parse<()> {
        self.note_foreign_form(place)?;
        if self.fragment_mode()? {
            let text = "fragment no reassemble is ignored: it applies to separate scrub rules only";
            self.report(Severity::Warning, text, place, None);
        }
        Ok(())
    }

    /// Parses the words behind `fragment`. Returns true for `no reassemble`.
    fn fragment_mode(&mut self) -> Parse<bool> {
        let place = self.place();
        for word in ["crop", "drop-ovl"] {
            if self.accept_word(word) {
                let text = format!("fragment {word} means fragment reassemble");
                self.report(Severity::Note, &text, place, None);
                return Ok(false);
            }
        }
        let leave = self.accept("no");
        self.expect("reassemble")?;
        Ok(leave)
    }

    /// Parses `set-tos`, which OpenBSD calls `set tos`.
    fn scrub_tos(&mut self, options: &mut FilterOptions) -> Parse<bool> {
        let place = self.place();
        if !self.accept_word("set-tos") {
            return Ok(false);
        }
        self.note_foreign_form(place)?;
        let tos = self.tos()?;
        if options.set_tos.replace(tos).is_some() {
            return self.error_at("set-tos cannot be respecified", place);
        }
        Ok(true)
    }
}
