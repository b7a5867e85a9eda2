//! Parses the options behind the hosts of a rule, in any order (pf-features sections 5, 6 and 10).

use skipstep_ruleset::rule::{InterfaceMatch, MOST_LABELS, TcpFlags};
use skipstep_ruleset::{Family, Not};

use super::address::unsigned_number;
use super::{Parse, Parser};
use crate::ast::{FilterOptions, Translation};
use crate::context::Dialect;
use crate::packet_names as names;
use crate::token::{Place, TokenKind};

/// First words of rule options.
pub(super) const OPTIONS: [&str; 38] = [
    "af-to",
    "allow-opts",
    "binat-to",
    "divert-packet",
    "divert-reply",
    "divert-to",
    "dup-to",
    "flags",
    "fragment",
    "group",
    "icmp-type",
    "icmp6-type",
    "keep",
    "label",
    "max-pkt-rate",
    "max-pkt-size",
    "modulate",
    "nat-to",
    "no",
    "once",
    "prio",
    "probability",
    "queue",
    "rdr-to",
    "received-on",
    "reply-to",
    "ridentifier",
    "route-to",
    "rtable",
    "scrub",
    "set",
    "source",
    "state",
    "synproxy",
    "tag",
    "tagged",
    "tos",
    "user",
];

/// Highest priority of a packet.
const HIGHEST_PRIO: i64 = 7;

impl Parser<'_> {
    /// Parses the options of a rule. `translation` has the route of the rule's head, if there was
    /// one.
    pub(super) fn filter_options(&mut self, translation: Translation) -> Parse<FilterOptions> {
        let mut options = FilterOptions { translation, ..FilterOptions::default() };
        loop {
            match self.peek().kind {
                TokenKind::Keyword(word) => {
                    if !self.filter_option(word, &mut options)? {
                        return Ok(options);
                    }
                }
                TokenKind::Sign('!') => {
                    self.skip();
                    self.negatable_option(true, &mut options)?;
                }
                TokenKind::Sign('(') if options.awaits_state_options() => {
                    let place = self.place();
                    self.note_foreign_form(place)?;
                    self.skip();
                    self.late_state_options(&mut options)?;
                }
                TokenKind::String(ref word) if word == "source" => {
                    let place = self.place();
                    self.skip();
                    let limiter = self.limiter_use(true)?;
                    if options.source_limiter.replace(limiter).is_some() {
                        return self.error_at("source limiter already specified", place);
                    }
                }
                TokenKind::String(ref word) => {
                    let word = word.clone();
                    if !self.option_of_freebsd(&word, &mut options)? {
                        OPTIONS.into_iter().for_each(|word| self.expected.note(word));
                        return Ok(options);
                    }
                }
                _ => return Ok(options),
            }
        }
    }

    /// Parses one option. Returns false if `word` begins none.
    pub(super) fn filter_option(
        &mut self,
        word: &'static str,
        options: &mut FilterOptions,
    ) -> Parse<bool> {
        let place = self.place();
        match word {
            "flags" => {
                self.skip();
                let flags = self.flags()?;
                if options.flags.replace(flags).is_some() {
                    return self.error_at("flags cannot be redefined", place);
                }
            }
            "icmp-type" | "icmp6-type" => {
                self.skip();
                let family = if word == "icmp-type" { Family::Inet } else { Family::Inet6 };
                let icmp = self.list(|parser| parser.icmp(family))?;
                if options.icmp.replace(icmp).is_some() {
                    return self.error_at("icmp-type cannot be redefined", place);
                }
            }
            "prio" => {
                self.skip();
                let place = self.place();
                let number = self.number()?;
                if options.prio.is_some() {
                    return self.error_at("prio cannot be redefined", place);
                }
                options.prio = Some(self.priority(number, place)?);
            }
            "tos" => {
                self.skip();
                let tos = self.tos()?;
                if options.tos.replace(tos).is_some() {
                    return self.error_at("tos cannot be redefined", place);
                }
            }
            "user" => {
                // users of a later `user` come first
                let users = self.users()?;
                options.users.splice(0..0, users);
            }
            "group" => {
                let groups = self.groups()?;
                options.groups.splice(0..0, groups);
            }
            "keep" | "modulate" | "synproxy" | "no" => {
                let keep = self.keep()?;
                if options.keep.replace(keep).is_some() {
                    return self.error_at("modulate or keep cannot be redefined", place);
                }
            }
            "fragment" => {
                self.skip();
                options.fragment = true;
            }
            "allow-opts" => {
                self.skip();
                options.allow_opts = true;
            }
            "label" => {
                self.skip();
                let label = self.name()?;
                self.add_label(label, &mut options.labels, place)?;
            }
            "tag" => {
                self.skip();
                options.tag = Some(self.tag_name(options)?);
            }
            "tagged" | "received-on" => self.negatable_option(false, options)?,
            "probability" => {
                self.skip();
                options.probability = Some(self.probability()?);
            }
            "max-pkt-rate" => {
                self.skip();
                let rate = self.rate()?;
                if options.max_pkt_rate.is_some_and(|(packets, _)| packets > 0) {
                    return self.error_at("cannot respecify max-pkt-rate", place);
                }
                options.max_pkt_rate = Some(rate);
            }
            "once" => {
                self.skip();
                options.once = true;
            }
            "rtable" => options.rtable = self.rtable()?,
            "queue" => {
                self.skip();
                self.set_queue(options, place)?;
            }
            "state" => {
                self.skip();
                let limiter = self.limiter_use(false)?;
                if options.state_limiter.replace(limiter).is_some() {
                    return self.error_at("state limiter already specified", place);
                }
            }
            "scrub" => {
                self.skip();
                self.expect_sign('(')?;
                self.scrub(options)?;
            }
            "set" => {
                self.skip();
                self.set_options(options)?;
            }
            _ => return self.translation_option(word, &mut options.translation),
        }
        Ok(true)
    }

    pub(super) fn negatable_option(
        &mut self,
        negated: bool,
        options: &mut FilterOptions,
    ) -> Parse<()> {
        if self.accept("tagged") {
            options.tagged = Some(Box::new(Not { negated, value: self.tag_name(options)? }));
            return Ok(());
        }
        let place = self.place();
        self.expect("received-on")?;
        let value = self.interface()?;
        if let InterfaceMatch::Rdomain(_) = value {
            return self.error_at("received-on rdomain is not supported", place);
        }
        if options.received_on.replace(Box::new(Not { negated, value })).is_some() {
            return self.error_at("cannot respecify received-on", place);
        }
        Ok(())
    }

    /// Parses `S/SA`, `/SA` or `any`.
    fn flags(&mut self) -> Parse<Option<TcpFlags>> {
        if self.accept("any") {
            return Ok(None);
        }
        let set = if self.at_sign('/') { 0 } else { self.flag_letters()? };
        self.expect_sign('/')?;
        let mask = self.flag_letters()?;
        Ok(Some(TcpFlags { set, mask }))
    }

    fn flag_letters(&mut self) -> Parse<u8> {
        let place = self.place();
        let letters = self.string()?;
        match names::tcp_flags(&letters) {
            Some(flags) => Ok(flags),
            None => {
                let help = Some("flags are F S R P A U E W".to_string());
                self.error_with_help(format!("bad flags {letters}"), place, help)
            }
        }
    }

    fn priority(&mut self, number: i64, place: crate::token::Place) -> Parse<u8> {
        if !(0..=HIGHEST_PRIO).contains(&number) {
            return self.error_at(format!("prio must be 0 - {HIGHEST_PRIO}"), place);
        }
        Ok(number as u8)
    }

    pub(super) fn tos(&mut self) -> Parse<u8> {
        let place = self.place();
        let text = self.word_or_number()?;
        let tos = match text.parse::<i64>() {
            Ok(number) => u8::try_from(number).ok(),
            Err(_) if text.starts_with("0x") => {
                unsigned_number(&text).and_then(|n| u8::try_from(n).ok())
            }
            Err(_) => names::tos_by_name(&text),
        };
        tos.map_or_else(|| self.error_at(format!("illegal tos value {text}"), place), Ok)
    }

    /// Parses a fraction or a percentage. pf stores it as a fraction of 2^32 - 1, at least 1.
    fn probability(&mut self) -> Parse<u32> {
        let place = self.place();
        let text = self.word_or_number()?;
        let (digits, scale) = match text.strip_suffix('%') {
            Some(digits) => (digits, 0.01),
            None => (text.as_str(), 1.0),
        };
        let Some(fraction) = decimal(digits).map(|number| number * scale) else {
            return self.error_at(format!("invalid probability: {text}"), place);
        };
        let stored = (fraction * f64::from(u32::MAX) + 0.5).floor();
        if !(0.0..=f64::from(u32::MAX)).contains(&stored) {
            let percent = significant(fraction * 100.0);
            return self.error_at(format!("invalid probability: {percent}%"), place);
        }
        Ok((stored as u32).max(1))
    }

    /// Parses `prio 3` or `(prio (3, 5), tos 0x10)` behind `set`.
    fn set_options(&mut self, options: &mut FilterOptions) -> Parse<()> {
        if !self.accept_sign('(') {
            return self.set_option(options);
        }
        self.until_parenthesis(|parser| parser.set_option(options)).map(|_| ())
    }

    fn set_option(&mut self, options: &mut FilterOptions) -> Parse<()> {
        let place = self.place();
        if self.accept("prio") {
            let priorities = self.set_prio()?;
            if options.set_prio.replace(priorities).is_some() {
                return self.error_at("prio cannot be redefined", place);
            }
        } else if self.accept("tos") {
            let tos = self.tos()?;
            if options.set_tos.replace(tos).is_some() {
                return self.error_at("tos cannot be respecified", place);
            }
        } else if self.accept("delay") {
            let number = self.number()?;
            if options.set_delay.is_some_and(|delay| delay > 0) {
                return self.error_at("delay cannot be respecified", place);
            }
            match u16::try_from(number) {
                Ok(delay) => options.set_delay = Some(delay),
                Err(_) => {
                    let text = format!("illegal delay value {number} (0-{})", u16::MAX);
                    return self.error_at(text, place);
                }
            }
        } else {
            self.expect("queue")?;
            self.set_queue(options, place)?;
        }
        Ok(())
    }

    /// Adds a label, which may be empty. OpenBSD's rules have one label, FreeBSD's several.
    ///
    /// # Errors
    /// Fails if the rule has too many labels.
    pub(super) fn add_label(
        &mut self,
        label: String,
        labels: &mut Vec<String>,
        place: Place,
    ) -> Parse<()> {
        if self.context.dialect == Dialect::OpenBsd && !labels.is_empty() {
            return self.error_at("label cannot be redefined", place);
        }
        if labels.len() == MOST_LABELS {
            let text = format!("label can only be used {MOST_LABELS} times");
            return self.error_at(text, place);
        }
        labels.push(label);
        Ok(())
    }

    fn set_queue(&mut self, options: &mut FilterOptions, place: Place) -> Parse<()> {
        let names = self.queue_names()?;
        if options.set_queue.replace(Box::new(names)).is_some() {
            return self.error_at("queue cannot be redefined", place);
        }
        Ok(())
    }

    fn set_prio(&mut self) -> Parse<(u8, u8)> {
        let place = self.place();
        if !self.accept_sign('(') {
            let number = self.number()?;
            let priority = self.priority(number, place)?;
            return Ok((priority, priority));
        }
        let first = self.number()?;
        self.accept_sign(',');
        let second = self.number()?;
        self.expect_sign(')')?;
        Ok((self.priority(first, place)?, self.priority(second, place)?))
    }
}

/// Parses a number as C's `strtod` does, without infinity and NaN.
fn decimal(text: &str) -> Option<f64> {
    let plain = text.chars().all(|c| c.is_ascii_digit() || ".eE+-".contains(c));
    if plain { text.parse().ok() } else { None }
}

/// Returns a number with six significant digits, as C's `%g` prints it.
fn significant(number: f64) -> String {
    let exponent = if number == 0.0 { 0 } else { number.abs().log10().floor() as i32 };
    if !(-4..6).contains(&exponent) {
        let text = format!("{number:.5e}");
        let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let mantissa = if mantissa.contains('.') {
            mantissa.trim_end_matches('0').trim_end_matches('.')
        } else {
            mantissa
        };
        let exponent: i32 = exponent.parse().unwrap_or(0);
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{mantissa}e{sign}{:02}", exponent.abs());
    }
    let text = format!("{number:.*}", (5 - exponent).max(0) as usize);
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_string()
    } else {
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_print_as_in_c() {
        for (number, text) in [
            (101.0, "101"),
            (0.5, "0.5"),
            (1e7, "1e+07"),
            (123456789.0, "1.23457e+08"),
            (-1.0, "-1"),
        ] {
            assert_eq!(significant(number), text);
        }
    }
}
