//! Checks the order of statements for FreeBSD's `set require-order yes` (pf-features section 12).

use skipstep_ruleset::LegacyKind;

use super::{Parse, Parser};
use crate::ast::{Setting, StatementKind};
use crate::token::Place;

/// The groups of statements in the required order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Stage {
    Options,
    Normalization,
    Queueing,
    Translation,
    Filtering,
}

impl Stage {
    /// Returns the group of a statement; `None` for macros, tables and files, which may stand
    /// anywhere.
    fn for_statement(kind: &StatementKind) -> Option<Stage> {
        match kind {
            StatementKind::Set(_) => Some(Stage::Options),
            StatementKind::Legacy(legacy) if legacy.kind == LegacyKind::Scrub => {
                Some(Stage::Normalization)
            }
            StatementKind::Queues(_) => Some(Stage::Queueing),
            StatementKind::Legacy(_) => Some(Stage::Translation),
            StatementKind::Rule(_) | StatementKind::Antispoof(_) | StatementKind::Anchor(_) => {
                Some(Stage::Filtering)
            }
            _ => None,
        }
    }
}

impl Parser<'_> {
    /// Parses `require-order`. After `yes`, statements must be in the order of [`Stage`].
    pub(super) fn require_order(&mut self) -> Parse<Setting> {
        let required = self.yes_or_no()?;
        self.order = required.then_some(Stage::Options);
        Ok(Setting::RequireOrder(required))
    }

    /// Checks the order of a statement, if an order is required.
    pub(super) fn in_order(&mut self, kind: &StatementKind, place: Place) -> Parse<()> {
        let (Some(order), Some(stage)) = (self.order, Stage::for_statement(kind)) else {
            return Ok(());
        };
        if stage < order {
            let text = "Rules must be in order: options, normalization, queueing, translation, \
                        filtering";
            let help = Some("or leave out `set require-order yes`".to_string());
            return self.error_with_help(text, place, help);
        }
        self.order = Some(stage);
        Ok(())
    }
}
