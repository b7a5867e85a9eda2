//! Words of FreeBSD and macOS that are neither OpenBSD's nor of old times (pf-features, rows
//! F-only).

use super::{Parse, Parser, Reported};
use crate::ast::{FilterOptions, StatementKind};
use crate::diagnostics::Kind as Severity;
use crate::token::{Kind, Place};

/// Options of a rule that a number follows.
const NUMBERED: [&str; 2] = ["ridentifier", "max-pkt-size"];

/// What other systems have, and what to use instead.
const ELSEWHERE: [(&str, &str); 7] = [
    (
        "altq",
        "queues are `queue main on em0 bandwidth 10M`, and rules choose one by `set queue main`",
    ),
    ("queue of altq", "`queue web parent main bandwidth 1M` is a queue below another"),
    ("dnpipe", "limit bandwidth by a queue: `queue slow on em0 bandwidth 1M`, `set queue slow`"),
    ("dnqueue", "share bandwidth by queues: `queue a parent main bandwidth 1M`, `set queue a`"),
    ("ether", "pf filters IP packets; for frames use the bridge family of nftables"),
    ("scrub-anchor", "leave it out: only macOS has it; `match scrub (...)` can stand in an anchor"),
    ("dummynet-anchor", "leave it out: only macOS has it; bandwidth is limited by `queue`"),
];

impl Parser<'_> {
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
        self.old = true;
        Ok(())
    }

    /// The number behind `ridentifier`.
    pub(super) fn ridentifier(&mut self) -> Parse<u32> {
        self.old = true;
        self.unsigned()
    }

    /// The name behind `tag` and `tagged`, which may have several words. An option that FreeBSD
    /// reserves a word for ends the name: OpenBSD has no number behind a name.
    pub(super) fn tag_name(&mut self, options: &mut FilterOptions) -> Parse<String> {
        self.strings_until(|parser, word| {
            let ends = NUMBERED.contains(&word) && matches!(parser.peek().kind, Kind::Number(_));
            if ends {
                parser.numbered_option(word, options)?;
            }
            Ok(ends)
        })
    }
}
