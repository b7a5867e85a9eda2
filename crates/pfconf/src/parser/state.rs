//! Parses `keep state` and its options (pf-features section 7).

use skipstep_ruleset::{KeepKind, Overload, SourceTrack, StatePolicy, Timeout};

use super::rule::did_you_mean;
use super::{Parse, Parser};
use crate::ast::{FilterOptions, Keep, StateOption};
use crate::diagnostics::Severity;
use crate::token::TokenKind;

impl Parser<'_> {
    /// Parses `keep state [(...)]`, `modulate state`, `synproxy state` or `no state`.
    pub(super) fn keep(&mut self) -> Parse<Keep> {
        let kind = if self.accept("no") {
            None
        } else if self.accept("modulate") {
            Some(KeepKind::Modulate)
        } else if self.accept("synproxy") {
            Some(KeepKind::Synproxy)
        } else {
            self.expect("keep")?;
            Some(KeepKind::Keep)
        };
        self.expect("state")?;
        let Some(kind) = kind else {
            return Ok(Keep::No);
        };
        let options = if self.accept_sign('(') { self.in_state_parentheses()? } else { Vec::new() };
        Ok(Keep::State(kind, options))
    }

    /// Parses the options of `keep state probability 50% (...)`. OpenBSD's pfctl prints that form
    /// and does not read it.
    pub(super) fn late_state_options(&mut self, options: &mut FilterOptions) -> Parse<()> {
        let late = self.in_state_parentheses()?;
        if let Some(Keep::State(_, options)) = &mut options.keep {
            *options = late;
        }
        Ok(())
    }

    fn in_state_parentheses(&mut self) -> Parse<Vec<StateOption>> {
        Ok(self.until_parenthesis(Self::state_option)?.into_iter().flatten().collect())
    }

    /// Parses the options of `set state-defaults`, which have no parentheses.
    pub(super) fn state_options(&mut self) -> Parse<Vec<StateOption>> {
        let mut options = Vec::new();
        loop {
            options.extend(self.state_option()?);
            if !self.accept_sign(',')
                && matches!(self.peek().kind, TokenKind::NewLine | TokenKind::End)
            {
                return Ok(options);
            }
        }
    }

    /// Parses a state option. `None` for an option of FreeBSD that has no effect here.
    fn state_option(&mut self) -> Parse<Option<StateOption>> {
        let place = self.place();
        if self.accept_word("allow-related") {
            self.note_foreign_form(place)?;
            let text = "allow-related is ignored: each address pair of an SCTP association needs \
                        its own rule here";
            self.report(Severity::Warning, text, place, None);
            return Ok(None);
        }
        let TokenKind::Keyword(word) = self.peek().kind else {
            return self.state_timeout();
        };
        if let "if-bound" | "floating" = word {
            return self.state_policy().map(StateOption::Binding).map(Some);
        }
        let option: fn(&mut Self) -> Parse<StateOption> = match word {
            "max" => |parser| parser.unsigned().map(StateOption::Max),
            "no-sync" => |_| Ok(StateOption::NoSync),
            "sloppy" => |_| Ok(StateOption::Sloppy),
            "pflow" => |_| Ok(StateOption::Pflow),
            "source-track" => Self::source_track,
            "max-src-states" => |parser| parser.unsigned().map(StateOption::MaxSrcStates),
            "max-src-nodes" => |parser| parser.unsigned().map(StateOption::MaxSrcNodes),
            "max-src-conn" => |parser| parser.unsigned().map(StateOption::MaxSrcConn),
            "max-src-conn-rate" => |parser| {
                let (connections, seconds) = parser.rate()?;
                Ok(StateOption::MaxSrcConnRate(connections, seconds))
            },
            "overload" => Self::overload,
            _ => return self.syntax_error(),
        };
        self.skip();
        option(self).map(Some)
    }

    /// Parses `number/seconds`.
    pub(super) fn rate(&mut self) -> Parse<(u32, u32)> {
        let place = self.place();
        let number = self.number()?;
        self.expect_sign('/')?;
        let seconds = self.number()?;
        match (u32::try_from(number), u32::try_from(seconds)) {
            (Ok(number), Ok(seconds)) => Ok((number, seconds)),
            _ => self.error_at("only positive values permitted", place),
        }
    }

    fn source_track(&mut self) -> Parse<StateOption> {
        let track = if self.accept("global") {
            Some(SourceTrack::Global)
        } else if self.accept("rule") {
            Some(SourceTrack::Rule)
        } else {
            None
        };
        Ok(StateOption::SourceTrack(track))
    }

    /// Parses `<table> [flush [global]]`.
    fn overload(&mut self) -> Parse<StateOption> {
        let table = self.table_name()?;
        let flush = match self.accept("flush") {
            true if self.accept("global") => Some(SourceTrack::Global),
            true => Some(SourceTrack::Rule),
            false => None,
        };
        Ok(StateOption::Overload(Overload { table, flush }))
    }

    pub(super) fn state_policy(&mut self) -> Parse<StatePolicy> {
        if self.accept("if-bound") {
            return Ok(StatePolicy::IfBound);
        }
        if self.accept("floating") {
            return Ok(StatePolicy::Floating);
        }
        self.syntax_error_of_choice(&["if-bound", "floating"])
    }

    fn state_timeout(&mut self) -> Parse<Option<StateOption>> {
        let place = self.place();
        let name = self.string()?;
        let value = self.unsigned()?;
        if self.is_timeout_of_sctp(&name, place)? {
            return Ok(None);
        }
        match Timeout::by_name(&name) {
            Some(timeout) if name.contains('.') => Ok(Some(StateOption::Timeout(timeout, value))),
            Some(_) => self.error_at(format!("illegal state timeout {name}"), place),
            None => {
                let help = did_you_mean(&name, Timeout::ALL.map(Timeout::name));
                self.error_with_help(format!("illegal timeout name {name}"), place, help)
            }
        }
    }
}
