//! Parses words of FreeBSD and macOS that OpenBSD never had (pf-features, rows F-only).

use super::address::unsigned_number;
use super::{Parse, Parser, Reported};
use crate::ast::{FilterOptions, StatementKind};
use crate::context::Dialect;
use crate::diagnostics::Severity;
use crate::token::{Place, TokenKind};

/// Options of a rule that have a number.
const NUMBERED: [&str; 2] = ["ridentifier", "max-pkt-size"];

/// Words that OpenBSD reserves, and that FreeBSD before version 15 does not.
const NAMES: [&str; 12] = [
    "burst", "default", "delay", "flows", "matches", "min", "once", "parent", "pflow", "quantum",
    "rdomain", "weight",
];

/// Features of other systems that skipstep lacks, and their replacements.
const UNSUPPORTED: [(&str, &str); 8] = [
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

/// FreeBSD's SCTP timeouts, and the timeouts that states of SCTP have here.
const SCTP_TIMEOUTS: [(&str, &str); 5] = [
    ("sctp.first", "other.first"),
    ("sctp.opening", "other.single"),
    ("sctp.established", "other.multiple"),
    ("sctp.closing", "other.multiple"),
    ("sctp.closed", "other.multiple"),
];

/// Returns true if `word`, which OpenBSD reserves, may be a name in a text of this dialect.
pub(crate) fn is_name(word: &str, dialect: Dialect) -> bool {
    dialect == Dialect::Any && NAMES.contains(&word)
}

impl Parser<'_> {
    /// Records that the text has a form at `place` that is not in OpenBSD's present language.
    ///
    /// # Errors
    /// Fails if the text must be in OpenBSD's language.
    pub(super) fn note_foreign_form(&mut self, place: Place) -> Parse<()> {
        if self.context.dialect == Dialect::OpenBsd {
            let help = "FreeBSD and OpenBSD before 4.7 accept this; current OpenBSD refuses it";
            return self.syntax_error_at(place, |_| Some(help.to_string()));
        }
        self.legacy = true;
        Ok(())
    }

    /// Returns true, and reports an error, if `word` begins a feature that skipstep lacks.
    pub(super) fn is_unsupported(&mut self, word: &str, place: Place) -> bool {
        let found = UNSUPPORTED.iter().find(|(known, _)| *known == word);
        if let Some((word, help)) = found {
            let text = format!("{word} is not supported");
            self.altq |= *word == "altq";
            self.report(Severity::Error, &text, place, Some(help.to_string()));
        }
        found.is_some()
    }

    /// Reports a `queue` statement that belongs to an `altq` statement.
    pub(super) fn queue_of_altq(&mut self) -> Parse<StatementKind> {
        let place = self.place();
        self.skip();
        self.is_unsupported("queue of altq", place);
        Err(Reported)
    }

    /// Parses an option of FreeBSD. Returns false if `word` begins none.
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
        if self.is_unsupported(word, place) {
            return Err(Reported);
        }
        Ok(false)
    }

    /// Parses the number of one of the [`NUMBERED`] options.
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
        self.note_foreign_form(place)
    }

    /// Parses the number behind `ridentifier`, decimal or hexadecimal.
    pub(super) fn ridentifier(&mut self) -> Parse<u32> {
        let place = self.place();
        self.note_foreign_form(place)?;
        if matches!(self.peek().kind, TokenKind::Number(_)) {
            return self.unsigned();
        }
        let text = self.string()?;
        match unsigned_number(&text).and_then(|number| u32::try_from(number).ok()) {
            Some(number) => Ok(number),
            None => self.error_at(format!("{text} is not a number"), place),
        }
    }

    /// True if the next token is a decimal or hexadecimal number.
    fn at_number(&mut self) -> bool {
        match &self.peek().kind {
            TokenKind::Number(_) => true,
            TokenKind::String(word) => word.starts_with("0x") && unsigned_number(word).is_some(),
            _ => false,
        }
    }

    /// Returns true if `name`, at `place`, is one of FreeBSD's SCTP timeouts. A warning then names
    /// the timeout that applies.
    pub(super) fn is_timeout_of_sctp(&mut self, name: &str, place: Place) -> Parse<bool> {
        let found = SCTP_TIMEOUTS.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        let Some((known, ours)) = found else { return Ok(false) };
        self.note_foreign_form(place)?;
        let text = format!("{known} is ignored: states of SCTP expire by {ours}");
        self.report(Severity::Warning, &text, place, None);
        Ok(true)
    }

    /// Parses the name behind `tag` or `tagged`, which may have several words. An option of FreeBSD
    /// with its number ends the name, because OpenBSD allows no number behind a name.
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
