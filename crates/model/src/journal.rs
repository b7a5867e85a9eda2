//! What one packet causes besides its own fate: reasons, log records, answers.

use skipstep_ruleset::{Action, Reason, Rule};

use crate::fate::LogRecord;
use crate::state::StateId;
use crate::trace::{Stage, Tracer};

/// Written while a packet is worked on, read when its fate is made up.
#[derive(Debug)]
pub(crate) struct Journal {
    /// The reason that log records show.
    pub reason: Reason,
    pub counted: Vec<Reason>,
    pub log: Vec<LogRecord>,
    pub replies: Vec<Vec<u8>>,
    pub removed: Vec<StateId>,
    pub tracer: Tracer,
}

impl Journal {
    pub fn new(tracer: Tracer) -> Self {
        Journal {
            reason: Reason::Match,
            counted: Vec::new(),
            log: Vec::new(),
            replies: Vec::new(),
            removed: Vec::new(),
            tracer,
        }
    }

    /// Sets the reason, and counts it: there is no way to drop a packet for a reason that is not
    /// counted.
    pub fn set_reason(&mut self, reason: Reason) {
        self.reason = reason;
        self.counted.push(reason);
    }

    /// Counts a reason that PF keeps from its log: rule evaluation has a reason of its own, which
    /// never reaches the records written later.
    pub fn count_only(&mut self, reason: Reason) {
        self.counted.push(reason);
    }

    /// Logs a packet with the reason that stands now.
    pub fn log(&mut self, rule: Option<&Rule>) {
        self.log_for(rule, rule, self.reason);
    }

    /// Logs a packet for `rule` on the pflog interface of `trigger`.
    pub fn log_for(&mut self, rule: Option<&Rule>, trigger: Option<&Rule>, reason: Reason) {
        self.log.push(LogRecord {
            rule: rule.map(|rule| rule.number),
            reason,
            action: match rule {
                Some(rule) => rule.action,
                None if reason != Reason::Match => Action::Block,
                None => Action::Pass,
            },
            to: trigger.and_then(|rule| rule.log).map_or(0, |log| log.to),
        });
    }

    pub fn reply(&mut self, packet: Vec<u8>) {
        self.tracer.tell(|| Stage::Replied(skipstep_wire::print::line(&packet)));
        self.replies.push(packet);
    }
}
