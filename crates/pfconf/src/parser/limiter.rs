//! Parses `state limiter` and `source limiter` of later OpenBSD releases (pf-features sections 2
//! and 5). Statements define limiters, and options of rules use them. Their words are not reserved.

use skipstep_ruleset::{Limiter, LimiterUse};

use super::{Parse, Parser};
use crate::ast::StatementKind;
use crate::table::LONGEST_NAME as LONGEST_TABLE;
use crate::token::{Place, TokenKind};

/// Most bytes of a limiter's name.
const LONGEST_NAME: usize = 15;
/// Highest number of a limiter. The lowest is 1.
const HIGHEST_ID: i64 = 255;
/// Highest limit of states. The lowest is 1.
const HIGHEST_LIMIT: i64 = 1 << 24;

impl Parser<'_> {
    /// Parses `state limiter "name" id n limit n [rate n/s]`.
    pub(super) fn state_limiter(&mut self) -> Parse<StatementKind> {
        self.expect("state")?;
        self.limiter(false)
    }

    /// Parses `source limiter "name" id n entries n limit n ...`, without `source`.
    pub(super) fn source_limiter(&mut self) -> Parse<StatementKind> {
        self.limiter(true)
    }

    fn limiter(&mut self, source: bool) -> Parse<StatementKind> {
        let kind = kind(source);
        self.expect_word("limiter")?;
        let place = self.place();
        let mut name = self.string()?;
        while !self.at_limiter_option() && matches!(self.peek().kind, TokenKind::String(_)) {
            name = format!("{name} {}", self.string()?);
        }
        if name.is_empty() {
            return self.error_at(format!("{kind} name is too short"), place);
        }
        if name.len() > LONGEST_NAME {
            return self.error_at(format!("{kind} name is too long"), place);
        }
        if self.peek().kind == TokenKind::NewLine {
            return self.error_at(format!("{kind} missing options"), place);
        }
        let mut written = Written::default();
        while self.at_limiter_option() {
            self.limiter_option(source, &mut written)?;
        }
        if self.peek().kind != TokenKind::NewLine {
            return self.syntax_error();
        }
        let Some(id) = written.id else {
            return self.error_at("id not specified", place);
        };
        if source && written.entries.is_none() {
            return self.error_at("entries not specified", place);
        }
        let Some(limit) = written.limit else {
            let text = if source { "state limit not specified" } else { "limit not specified" };
            return self.error_at(text, place);
        };
        let limiter = Limiter {
            source,
            name,
            line: place.line,
            id,
            entries: written.entries,
            limit,
            rate: written.rate,
            inet_mask: written.inet_mask,
            inet6_mask: written.inet6_mask,
            table: written.table,
        };
        let same = |known: &&Limiter| known.source == source;
        let taken = self.limiters.iter().filter(same);
        if taken.into_iter().any(|known| known.id == id || known.name == limiter.name) {
            let text = format!("{kind} {} id {id} already exists", limiter.name);
            return self.error_at(text, place);
        }
        self.limiters.push(limiter.clone());
        Ok(StatementKind::Limiter(limiter))
    }

    fn at_limiter_option(&mut self) -> bool {
        match &self.peek().kind {
            TokenKind::Keyword(word) => ["limit", "table", "inet", "inet6"].contains(word),
            TokenKind::String(word) => ["id", "entries", "rate"].contains(&word.as_str()),
            _ => false,
        }
    }

    fn limiter_option(&mut self, source: bool, written: &mut Written) -> Parse<()> {
        let place = self.place();
        let word = match self.advance().kind {
            TokenKind::Keyword(word) => word.to_string(),
            TokenKind::String(word) => word,
            _ => return self.syntax_error(),
        };
        match word.as_str() {
            "id" => {
                let id = self.limiter_id(source)?;
                let twice = if source { "entries" } else { "id" };
                self.once(&mut written.id, id, twice, place)
            }
            "limit" => {
                let number = self.number()?;
                let twice = if source { "state limit" } else { "limit" };
                match u32::try_from(number) {
                    Ok(limit) if (1..=HIGHEST_LIMIT).contains(&number) => {
                        self.once(&mut written.limit, limit, twice, place)
                    }
                    _ => self.error_at(format!("invalid {} limit", kind(source)), place),
                }
            }
            "rate" => {
                let states = self.number()?;
                self.expect_sign('/')?;
                let seconds = self.number()?;
                let Some(states) = positive(states) else {
                    return self.error_at(format!("invalid rate limit {states}"), place);
                };
                let Some(seconds) = positive(seconds) else {
                    return self.error_at(format!("invalid rate seconds {seconds}"), place);
                };
                self.once(&mut written.rate, (states, seconds), "rate", place)
            }
            "entries" if source => {
                let number = self.number()?;
                match positive(number) {
                    Some(entries) => self.once(&mut written.entries, entries, "entries", place),
                    None => self.error_at(format!("invalid number of entries {number}"), place),
                }
            }
            "table" if source => {
                let table = self.limiter_table(place)?;
                self.once(&mut written.table, table, "table", place)
            }
            "inet" if source => {
                let mask = self.limiter_mask(32, "inet", place)?;
                self.once(&mut written.inet_mask, mask, "inet mask", place)
            }
            "inet6" if source => {
                let mask = self.limiter_mask(128, "inet6", place)?;
                self.once(&mut written.inet6_mask, mask, "inet6 mask", place)
            }
            _ => self.syntax_error(),
        }
    }

    fn once<T>(&mut self, option: &mut Option<T>, value: T, name: &str, place: Place) -> Parse<()> {
        if option.replace(value).is_some() {
            return self.error_at(format!("{name} cannot be respecified"), place);
        }
        Ok(())
    }

    fn limiter_id(&mut self, source: bool) -> Parse<u32> {
        let place = self.place();
        let number = self.number()?;
        if !(1..=HIGHEST_ID).contains(&number) {
            let text = format!("{} id {number}: invalid identifier", kind(source));
            return self.error_at(text, place);
        }
        Ok(number as u32)
    }

    /// Parses `<name> above n [below n]`.
    fn limiter_table(&mut self, place: Place) -> Parse<(String, u32, u32)> {
        self.expect_sign('<')?;
        let name = self.string()?;
        self.expect_sign('>')?;
        if name.is_empty() || name.len() > LONGEST_TABLE {
            return self.error_at("invalid table name", place);
        }
        self.expect_word("above")?;
        let Ok(above) = u32::try_from(self.number()?) else {
            return self.error_at("above limit is invalid", place);
        };
        let mut below = 0;
        if self.at_word("below") {
            self.skip();
            match positive(self.number()?) {
                Some(number) => below = number,
                None => return self.error_at("below limit is invalid", place),
            }
        }
        if below > above {
            return self.error_at("below limit higher than above limit", place);
        }
        Ok((name, above, below))
    }

    fn limiter_mask(&mut self, whole: u8, family: &str, place: Place) -> Parse<u8> {
        self.expect_word("mask")?;
        match u8::try_from(self.number()?) {
            Ok(length) if (1..=whole).contains(&length) => Ok(length),
            _ => self.error_at(format!("{family} mask length out of range"), place),
        }
    }

    /// Parses `state limiter "name" [(block|no-match)]` of a rule, without `state` or `source`.
    pub(super) fn limiter_use(&mut self, source: bool) -> Parse<LimiterUse> {
        self.expect_word("limiter")?;
        let place = self.place();
        let id = if self.at_word("id") {
            self.skip();
            self.limiter_id(source)?
        } else {
            let name = self.string()?;
            let of_name = |known: &&Limiter| known.source == source && known.name == name;
            match self.limiters.iter().find(of_name) {
                Some(known) => known.id,
                None => return self.error_at(format!("{} not found", kind(source)), place),
            }
        };
        let mut no_match = false;
        if self.accept_sign('(') {
            no_match = !self.accept("block");
            if no_match {
                self.expect_word("no-match")?;
            }
            self.expect_sign(')')?;
        }
        Ok(LimiterUse { id, no_match })
    }
}

/// The options of a limiter read so far.
#[derive(Default)]
struct Written {
    id: Option<u32>,
    entries: Option<u32>,
    limit: Option<u32>,
    rate: Option<(u32, u32)>,
    inet_mask: Option<u8>,
    inet6_mask: Option<u8>,
    table: Option<(String, u32, u32)>,
}

fn kind(source: bool) -> &'static str {
    if source { "source limiter" } else { "state limiter" }
}

fn positive(number: i64) -> Option<u32> {
    u32::try_from(number).ok().filter(|number| *number > 0)
}
