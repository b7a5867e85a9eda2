//! The side effects of one packet: reasons, log records, answers.

use skipstep_ruleset::{Action, Reason};

use crate::fate::LogRecord;
use crate::rulebook::Entry;
use crate::trace::{Stage, Tracer};

/// Collects side effects while a packet is filtered; its fate is built from them.
#[derive(Debug)]
pub(crate) struct Journal {
    /// Reason in log records.
    pub reason: Reason,
    pub counted: Vec<Reason>,
    pub log: Vec<LogRecord>,
    /// User that owns the packet's socket.
    pub uid: Option<u32>,
    pub replies: Vec<Vec<u8>>,
    pub tracer: Tracer,
}

/// The anchor of a logged rule, as its record shows it.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct LogAnchor<'a> {
    /// Anchor rule that called the rule.
    pub anchor_rule: Option<&'a Entry>,
    /// Path of the rule's anchor.
    pub anchor: &'a str,
}

impl<'a> LogAnchor<'a> {
    /// Returns the anchor of `rule`, which is empty for the default rule.
    pub fn for_rule(rule: Option<&'a Entry>, anchor_rule: Option<&'a Entry>) -> Self {
        LogAnchor { anchor_rule, anchor: rule.map_or("", |rule| rule.path.as_str()) }
    }
}

impl Journal {
    pub fn new(uid: Option<u32>, tracer: Tracer) -> Self {
        Journal {
            reason: Reason::Match,
            counted: Vec::new(),
            log: Vec::new(),
            uid,
            replies: Vec::new(),
            tracer,
        }
    }

    /// Sets the reason and counts it, so no packet is dropped for an uncounted reason.
    pub fn set_reason(&mut self, reason: Reason) {
        self.reason = reason;
        self.counted.push(reason);
    }

    /// Counts a reason that PF keeps out of its log. In PF, rule evaluation has a reason of its
    /// own, which later records do not show.
    pub fn count_only(&mut self, reason: Reason) {
        self.counted.push(reason);
    }

    /// Logs a packet with the current reason.
    pub fn log(&mut self, rule: Option<&Entry>, place: LogAnchor) {
        self.log_for(rule, rule, place, self.reason);
    }

    /// Logs a packet for `rule` on the pflog interface of `trigger`.
    pub fn log_for(
        &mut self,
        rule: Option<&Entry>,
        trigger: Option<&Entry>,
        place: LogAnchor,
        reason: Reason,
    ) {
        let log = trigger.and_then(|rule| rule.log).unwrap_or_default();
        self.log.push(LogRecord {
            rule: rule.and_then(Entry::number),
            anchor_rule: place.anchor_rule.and_then(Entry::number),
            anchor: place.anchor.to_owned(),
            reason,
            action: match rule {
                Some(rule) => rule.action,
                None if reason != Reason::Match => Action::Block,
                None => Action::Pass,
            },
            to: log.to,
            uid: self.uid.filter(|_| log.user),
        });
    }

    pub fn reply(&mut self, packet: Vec<u8>) {
        self.tracer.record(|| Stage::Replied(skipstep_wire::print::line(&packet)));
        self.replies.push(packet);
    }
}
