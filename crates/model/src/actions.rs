//! What rules ask to be done with a packet, and how it adds up over the rules that match
//! (pf-semantics section 5, match rules).

use crate::rulebook::Entry;

/// Actions collected so far. Later rules overwrite earlier ones, except where they can only add.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Actions {
    /// `log (all)`
    pub log_all: bool,
    /// `log (matches)`
    pub log_matches: bool,
    /// `scrub (no-df)`
    pub no_df: bool,
    /// `scrub (random-id)`
    pub random_id: bool,
    /// `scrub (reassemble tcp)`
    pub reassemble_tcp: bool,
    /// `allow-opts`
    pub allow_opts: bool,
    /// `scrub (min-ttl)`, 0 if not set
    pub min_ttl: u8,
    /// `scrub (max-mss)`, 0 if not set
    pub max_mss: u16,
    /// `max-pkt-size`, 0 if not set
    pub max_pkt_size: u16,
    /// `set tos`
    pub set_tos: Option<u8>,
    /// `set prio`: ordinary packets; TCP segments with nothing but an acknowledgment, and lowdelay
    pub set_prio: Option<(u8, u8)>,
    /// `rtable`
    pub rtable: Option<u32>,
    /// `set queue`: place in the rulebook of the rule that names the queues
    pub queued_by: Option<usize>,
    /// `set delay`, milliseconds; 0 if not set
    pub delay: u16,
}

impl Actions {
    /// The routing table: that of the interface's routing domain unless a rule says another.
    pub(crate) fn rtable(&self) -> u32 {
        self.rtable.unwrap_or(0)
    }

    /// Adds those of the next rule that matched.
    pub(crate) fn merge(&mut self, rule: &Entry) {
        self.log_all |= rule.log.is_some_and(|log| log.all);
        self.log_matches |= rule.log.is_some_and(|log| log.matches);
        self.no_df |= rule.scrub.no_df;
        self.random_id |= rule.scrub.random_id;
        self.reassemble_tcp |= rule.scrub.reassemble_tcp;
        self.allow_opts |= rule.allow_opts;
        self.min_ttl = rule.scrub.min_ttl.unwrap_or(self.min_ttl);
        self.max_mss = rule.scrub.max_mss.unwrap_or(self.max_mss);
        self.max_pkt_size = rule.max_pkt_size.unwrap_or(self.max_pkt_size);
        self.set_tos = rule.set_tos.or(self.set_tos);
        self.set_prio = rule.set_prio.or(self.set_prio);
        self.rtable = rule.rtable.or(self.rtable);
        self.queued_by = rule.set_queue.as_ref().map(|_| rule.place).or(self.queued_by);
        // to PF 0 is what a rule has that says nothing
        self.delay = rule.set_delay.filter(|delay| *delay != 0).unwrap_or(self.delay);
    }
}
