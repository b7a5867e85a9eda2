//! Words of FreeBSD and macOS that are neither OpenBSD's nor of old times (pf-features, rows
//! F-only).

use super::address::unsigned_number;
use super::{Parse, Parser, Reported};
use crate::ast::{FilterOptions, StatementKind};
use crate::context::Dialect;
use crate::diagnostics::Kind as Severity;
use crate::token::{Kind, Place};

/// Options of a rule that a number follows.
const NUMBERED: [&str; 2] = ["ridentifier", "max-pkt-size"];

/// Words that OpenBSD reserves and FreeBSD does not, or not before its version 15.
const NAMES: [&str; 12] = [
    "burst", "default", "delay", "flows", "matches", "min", "once", "parent", "pflow", "quantum",
    "rdomain", "weight",
];

/// What other systems have, and what to use instead.
const ELSEWHERE: [(&str, &str); 8] = [
    (
        "altq",
        "queues are `queue main on em0 bandwidth 10M`, and rules choose one by `set queue main`",
    ),
    ("queue of altq", "`queue web parent main bandwidth 1M` is a queue below another"),
    ("dnpipe", "limit bandwidth by a queue: `queue slow on em0 bandwidth 1M`, `set queue slow`"),
    ("dnqueue", "share bandwidth by queues: `queue a parent main bandwidth 1M`, `set queue a`"),
    ("ether", "pf filters IP packets; for frames use the bridge family of nftables"),
    (
        "bridge-to",
        "only rules for frames have it in FreeBSD; `route-to` and `dup-to` are for packets",
    ),
    ("scrub-anchor", "leave it out: only macOS has it; `match scrub (...)` can stand in an anchor"),
    ("dummynet-anchor", "leave it out: only macOS has it; bandwidth is limited by `queue`"),
];

/// FreeBSD's timeouts of SCTP, and the one of ours for states of that kind.
const SCTP_TIMEOUTS: [(&str, &str); 5] = [
    ("sctp.first", "other.first"),
    ("sctp.opening", "other.single"),
    ("sctp.established", "other.multiple"),
    ("sctp.closing", "other.multiple"),
    ("sctp.closed", "other.multiple"),
];

/// Returns true if `word`, which OpenBSD reserves, can be a name in a text of this dialect.
pub(super) fn is_name(word: &str, dialect: Dialect) -> bool {
    dialect == Dialect::Any && NAMES.contains(&word)
}

impl Parser<'_> {
    /// Notes that the text has a form, at `place`, that OpenBSD's language of today has not: an
    /// error if the text must be OpenBSD's.
    pub(super) fn leaves_openbsd(&mut self, place: Place) -> Parse<()> {
        if self.context.dialect == Dialect::OpenBsd {
            let help = "FreeBSD has this, or OpenBSD before 4.7; OpenBSD of today refuses it";
            return self.syntax_error_at(place, |_| Some(help.to_string()));
        }
        self.old = true;
        Ok(())
    }

    /// Whether `word` begins something that other systems have and this one does not; then it has
    /// been reported.
    pub(super) fn is_elsewhere(&mut self, word: &str, place: Place) -> bool {
        let found = ELSEWHERE.iter().find(|(known, _)| *known == word);
        if let Some((word, help)) = found {
            let text = format!("{word} is not supported");
            self.altq |= *word == "altq";
            self.report(Severity::Error, &text, place, Some(help.to_string()));
        }
        found.is_some()
    }

    /// `queue` behind an `altq`, to which it belongs.
    pub(super) fn queue_of_altq(&mut self) -> Parse<StatementKind> {
        let place = self.place();
        self.skip();
        self.is_elsewhere("queue of altq", place);
        Err(Reported)
    }

    /// An option of a rule; `false` if `word` begins none.
    pub(super) fn option_of_freebsd(
        &mut self,
        word: &str,
        options: &mut FilterOptions,
    ) -> Parse<bool> {
        let place = self.place();
        if NUMBERED.contains(&word) {
            self.skip();
            self.numbered_option(word, options)?;
            return Ok(true);
        }
        if self.is_elsewhere(word, place) {
            return Err(Reported);
        }
        Ok(false)
    }

    /// The number of an option, one of [`NUMBERED`].
    fn numbered_option(&mut self, word: &str, options: &mut FilterOptions) -> Parse<()> {
        if word == "ridentifier" {
            options.ridentifier = Some(self.ridentifier()?);
            return Ok(());
        }
        let place = self.place();
        let number = self.number()?;
        match u16::try_from(number) {
            Ok(size) => options.max_pkt_size = Some(size).filter(|size| *size > 0),
            Err(_) => return self.error_at(format!("illegal max-pkt-size {number}"), place),
        }
        self.leaves_openbsd(place)
    }

    /// Reads the number behind `ridentifier`, decimal or hexadecimal.
    pub(super) fn ridentifier(&mut self) -> Parse<u32> {
        let place = self.place();
        self.leaves_openbsd(place)?;
        if matches!(self.peek().kind, Kind::Number(_)) {
            return self.unsigned();
        }
        let text = self.string()?;
        match unsigned_number(&text).and_then(|number| u32::try_from(number).ok()) {
            Some(number) => Ok(number),
            None => self.error_at(format!("{text} is not a number"), place),
        }
    }

    /// True if a number stands here, decimal or hexadecimal.
    fn at_number(&mut self) -> bool {
        match &self.peek().kind {
            Kind::Number(_) => true,
            Kind::String(word) => word.starts_with("0x") && unsigned_number(word).is_some(),
            _ => false,
        }
    }

    /// Whether `name`, at `place`, is one of FreeBSD's timeouts of SCTP; then a warning says which
    /// one of ours does for it.
    pub(super) fn is_timeout_of_sctp(&mut self, name: &str, place: Place) -> Parse<bool> {
        let found = SCTP_TIMEOUTS.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        let Some((known, ours)) = found else { return Ok(false) };
        self.leaves_openbsd(place)?;
        let text = format!("{known} is left out: states of SCTP end by {ours}");
        self.report(Severity::Warning, &text, place, None);
        Ok(true)
    }

    /// The name behind `tag` and `tagged`, which may have several words. An option that FreeBSD
    /// reserves a word for ends the name: OpenBSD has no number behind a name.
    pub(super) fn tag_name(&mut self, options: &mut FilterOptions) -> Parse<String> {
        let first = self.name()?;
        self.strings_until(first, |parser, word| {
            let ends = NUMBERED.contains(&word) && parser.at_number();
            if ends {
                parser.numbered_option(word, options)?;
            }
            Ok(ends)
        })
    }
}
