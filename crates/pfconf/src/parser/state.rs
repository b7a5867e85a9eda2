//! `keep state` and its options (pf-features section 7).

use skipstep_ruleset::{StatePolicy, Timeout};

use super::rule::did_you_mean;
use super::{Parse, Parser};
use crate::ast::{Keep, StateOption};
use crate::features;
use crate::token::Kind;

impl Parser<'_> {
    /// `keep state [(...)]`, `no state`
    pub(super) fn keep(&mut self) -> Parse<Keep> {
        if self.accept("no") {
            self.expect("state")?;
            return Ok(Keep::No);
        }
        self.expect("keep")?;
        self.expect("state")?;
        let mut options = Vec::new();
        if self.accept_sign('(') {
            options = self.until_parenthesis(Self::state_option)?.into_iter().flatten().collect();
        }
        Ok(Keep::State(options))
    }

    /// The options of `set state-defaults`, which have no parentheses.
    pub(super) fn state_options(&mut self) -> Parse<Vec<StateOption>> {
        let mut options = Vec::new();
        loop {
            options.extend(self.state_option()?);
            if !self.accept_sign(',') && matches!(self.peek().kind, Kind::NewLine | Kind::End) {
                return Ok(options);
            }
        }
    }

    /// One option, `None` if it is one that is not built.
    fn state_option(&mut self) -> Parse<Option<StateOption>> {
        if self.accept("max") {
            return self.unsigned().map(|max| Some(StateOption::Max(max)));
        }
        if self.accept("no-sync") {
            return Ok(Some(StateOption::NoSync));
        }
        if self.accept("sloppy") {
            return Ok(Some(StateOption::Sloppy));
        }
        if matches!(self.peek().kind, Kind::Keyword("if-bound" | "floating")) {
            return self.state_policy().map(|policy| Some(StateOption::Binding(policy)));
        }
        if let Kind::Keyword(word) = self.peek().kind {
            self.unbuilt_state_option(word)?;
            return Ok(None);
        }
        self.state_timeout().map(Some)
    }

    pub(super) fn state_policy(&mut self) -> Parse<StatePolicy> {
        if self.accept("if-bound") {
            return Ok(StatePolicy::IfBound);
        }
        self.expect("floating")?;
        Ok(StatePolicy::Floating)
    }

    fn state_timeout(&mut self) -> Parse<StateOption> {
        let place = self.place();
        let name = self.string()?;
        let value = self.unsigned()?;
        match Timeout::by_name(&name) {
            Some(timeout) if name.contains('.') => Ok(StateOption::Timeout(timeout, value)),
            Some(_) => self.error_at(format!("illegal state timeout {name}"), place),
            None => {
                let help = did_you_mean(&name, Timeout::ALL.map(Timeout::name));
                self.error_with_help(format!("illegal timeout name {name}"), place, help)
            }
        }
    }

    fn unbuilt_state_option(&mut self, word: &'static str) -> Parse<()> {
        let place = self.place();
        match (word, features::of_keyword(word)) {
            ("source-track", Some(feature)) => {
                self.note_not_built(feature, place);
                self.skip();
                if !self.accept("global") {
                    self.accept("rule");
                }
            }
            ("max-src-states" | "max-src-nodes" | "max-src-conn", Some(feature)) => {
                self.note_not_built(feature, place);
                self.skip();
                self.unsigned()?;
            }
            ("max-src-conn-rate", Some(feature)) => {
                self.note_not_built(feature, place);
                self.skip();
                self.unsigned()?;
                self.expect_sign('/')?;
                self.unsigned()?;
            }
            ("overload", Some(feature)) => {
                self.note_not_built(feature, place);
                self.skip();
                self.table_name()?;
                if self.accept("flush") {
                    self.accept("global");
                }
            }
            ("pflow", Some(feature)) => {
                self.note_not_built(feature, place);
                self.skip();
            }
            _ => return self.syntax_error(),
        }
        Ok(())
    }
}
