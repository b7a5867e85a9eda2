//! Words of FreeBSD and macOS that are neither OpenBSD's nor of old times (pf-features, rows
//! F-only).

use super::{Parse, Parser, Reported};
use crate::ast::{FilterOptions, StatementKind};
use crate::diagnostics::Kind as Severity;
use crate::token::Place;

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
        match word {
            "ridentifier" => {
                self.skip();
                options.ridentifier = Some(self.unsigned()?);
            }
            "max-pkt-size" => {
                self.skip();
                let place = self.place();
                let number = self.number()?;
                match u16::try_from(number) {
                    Ok(size) => options.max_pkt_size = Some(size).filter(|size| *size > 0),
                    Err(_) => {
                        return self.error_at(format!("illegal max-pkt-size {number}"), place);
                    }
                }
            }
            _ if self.is_elsewhere(word, place) => return Err(Reported),
            _ => return Ok(false),
        }
        self.old = true;
        Ok(true)
    }
}
