//! The actions that rules request for a packet, and their sum over all matching rules (pf-semantics
//! section 5, match rules).

use crate::rulebook::Entry;

/// Actions collected so far. Later rules overwrite earlier ones, except flags, which accumulate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Actions {
    /// `log (all)`: log all packets of the state
    pub log_all: bool,
    /// `log (matches)`: log for all later matching rules
    pub log_matches: bool,
    /// `scrub (no-df)`: clear DF
    pub no_df: bool,
    /// `scrub (random-id)`: replace the IPv4 id
    pub random_id: bool,
    /// `scrub (reassemble tcp)`: check TCP timestamps
    pub reassemble_tcp: bool,
    /// `allow-opts`: let IP options pass
    pub allow_opts: bool,
    /// `scrub (min-ttl)`: lowest TTL, 0 if not set
    pub min_ttl: u8,
    /// `scrub (max-mss)`: highest MSS in bytes, 0 if not set
    pub max_mss: u16,
    /// `max-pkt-size`: longest packet in bytes, 0 if not set
    pub max_pkt_size: u16,
    /// `set tos`: new TOS
    pub set_tos: Option<u8>,
    /// `set prio`: priorities of ordinary packets; of lowdelay packets and of TCP segments that
    /// only acknowledge
    pub set_prio: Option<(u8, u8)>,
    /// `rtable`: number of the routing table
    pub rtable: Option<u32>,
    /// `set queue`: index in the rulebook of the rule that names the queues
    pub queued_by: Option<usize>,
    /// `set delay`: milliseconds, 0 if not set
    pub delay: u16,
}

impl Actions {
    /// Returns the routing table that a rule set, or 0, the table of the interface's routing
    /// domain.
    pub(crate) fn rtable(&self) -> u32 {
        self.rtable.unwrap_or(0)
    }

    /// Adds the actions of the next matching rule.
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
        self.queued_by = rule.set_queue.as_ref().map(|_| rule.index).or(self.queued_by);
        // in PF, 0 means that the rule sets no delay
        self.delay = rule.set_delay.filter(|delay| *delay != 0).unwrap_or(self.delay);
    }
}
