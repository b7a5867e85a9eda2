//! State limiters and source limiters: limits that several rules share (pf-semantics section 16).

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use ipnet::IpNet;
use skipstep_ruleset::{Limiter, LimiterUse, Reason, Ruleset};
use skipstep_views::Admissions;

use crate::key::LimitedBy;
use crate::trace::Criterion;

const NANOSECONDS: i64 = 1_000_000_000;

/// A limiter with its counters.
#[derive(Debug, Clone, PartialEq)]
pub struct LimiterState {
    /// Settings of the limiter.
    pub limiter: Limiter,
    /// Number of states now.
    pub states: u32,
    /// Counters over all its sources.
    pub counts: Admissions,
    /// Source limiter: number of sources ever created.
    pub sources_made: u64,
    /// Source limiter: packets of new sources refused by `entries`.
    pub sources_limited: u64,
    /// Source limiter: the known sources, by routing domain and address under the mask.
    pub sources: BTreeMap<(u32, IpAddr), LimitedSource>,
    tokens: Tokens,
}

impl LimiterState {
    /// Creates a limiter without states.
    fn new(limiter: &Limiter) -> Self {
        LimiterState {
            limiter: limiter.clone(),
            states: 0,
            counts: Admissions::default(),
            sources_made: 0,
            sources_limited: 0,
            sources: BTreeMap::new(),
            tokens: Tokens::FULL,
        }
    }
}

/// A source of a source limiter.
#[derive(Debug, Clone, PartialEq)]
pub struct LimitedSource {
    /// Number of states now.
    pub states: u32,
    /// Counters of this source.
    pub counts: Admissions,
    /// True if the source is in the limiter's table.
    pub in_table: bool,
    /// Second until which the source is kept without states.
    pub stays_until: u32,
    tokens: Tokens,
}

/// A change of the limiter's table: a network is added or removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TableChange {
    Add(String, IpNet),
    Remove(String, IpNet),
}

/// All limiters of a rule set, by number; numbers are unique in each kind.
#[derive(Debug, Clone, Default)]
pub(crate) struct Limiters {
    of_states: BTreeMap<u32, LimiterState>,
    of_sources: BTreeMap<u32, LimiterState>,
}

/// Tokens for new states. One token comes every `seconds / limit`, and the tokens of `seconds` can
/// be saved up. The start of the saving, in nanoseconds, says how many tokens there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Tokens {
    saved_since: i64,
}

impl Tokens {
    /// The maximum number of tokens.
    const FULL: Tokens = Tokens { saved_since: i64::MIN };

    /// Returns true if there is a token. Tokens above the maximum are lost.
    fn has_one(&mut self, rate: (u32, u32), now: i64) -> bool {
        self.saved_since = self.saved_since.max(now - bucket(rate));
        now - self.saved_since >= token(rate)
    }
}

fn bucket((_, seconds): (u32, u32)) -> i64 {
    i64::from(seconds) * NANOSECONDS
}

fn token((states, seconds): (u32, u32)) -> i64 {
    bucket((states, seconds)) / i64::from(states)
}

impl Limiters {
    /// Creates the limiters of the first rule set.
    pub fn new(ruleset: &Ruleset) -> Self {
        let mut limiters = Limiters::default();
        limiters.replace(ruleset, true);
        limiters
    }

    /// Checks that the limiters of `ruleset` can replace these.
    ///
    /// # Errors
    ///
    /// Fails if a source limiter has sources, and its table or masks differ in `ruleset`.
    pub fn check_replacement(&self, ruleset: &Ruleset) -> Result<(), String> {
        for limiter in ruleset.limiters.iter().filter(|limiter| limiter.source) {
            let before = self.of_sources.get(&limiter.id).filter(|state| !state.sources.is_empty());
            if before.is_some_and(|before| !names_sources_alike(&before.limiter, limiter)) {
                return Err(format!("source limiter {} is busy", limiter.name));
            }
        }
        Ok(())
    }

    /// Replaces the limiters with those of `ruleset`. Limiters with a known number keep their
    /// counters and states. If the main rule set is `loaded`, state limiters get all tokens back,
    /// as in pf. Returns kind (true: source) and number of the removed limiters.
    pub fn replace(&mut self, ruleset: &Ruleset, loaded: bool) -> BTreeSet<(bool, u32)> {
        let number = |limiter: &Limiter| (limiter.source, limiter.id);
        let mut removed: BTreeSet<(bool, u32)> =
            self.iter().map(|state| number(&state.limiter)).collect();
        let before = std::mem::take(self);
        for limiter in &ruleset.limiters {
            removed.remove(&number(limiter));
            let (known, kind) = match limiter.source {
                true => (before.of_sources.get(&limiter.id), &mut self.of_sources),
                false => (before.of_states.get(&limiter.id), &mut self.of_states),
            };
            let mut state = known.cloned().unwrap_or_else(|| LimiterState::new(limiter));
            state.limiter.clone_from(limiter);
            if loaded {
                state.tokens = Tokens::FULL;
            }
            kind.insert(limiter.id, state);
        }
        removed
    }

    /// Returns all limiters, state limiters first.
    pub fn iter(&self) -> impl Iterator<Item = &LimiterState> {
        self.of_states.values().chain(self.of_sources.values())
    }

    /// Returns the criterion if a state limiter keeps the rule from matching, else `None`. A
    /// missing limiter always does.
    pub fn refuses_state(&mut self, used: LimiterUse, now: u32) -> Option<Criterion> {
        let Some(state) = self.of_states.get_mut(&used.id) else {
            return Some(Criterion::StateLimiter { drops: false });
        };
        let refused = Some(Criterion::StateLimiter { drops: !used.no_match });
        if state.states >= state.limiter.limit {
            state.counts.hard_limited += 1;
            return refused;
        }
        if let Some(rate) = state.limiter.rate
            && !state.tokens.has_one(rate, nanoseconds(now))
        {
            state.counts.rate_limited += 1;
            return refused;
        }
        None
    }

    /// Does the same for a source limiter and a packet from `source`, a routing domain and an
    /// address.
    pub fn refuses_source(
        &mut self,
        used: LimiterUse,
        (rdomain, source): (u32, IpAddr),
        now: u32,
    ) -> Option<Criterion> {
        let Some(state) = self.of_sources.get_mut(&used.id) else {
            return Some(Criterion::SourceLimiter { drops: false });
        };
        let refused = Some(Criterion::SourceLimiter { drops: !used.no_match });
        let known = state.sources.len();
        let key = (rdomain, state.limiter.masked(source).network());
        let Some(source) = state.sources.get_mut(&key) else {
            let full = known >= state.limiter.entries.unwrap_or(0) as usize;
            state.sources_limited += u64::from(full);
            return refused.filter(|_| full);
        };
        if source.states >= state.limiter.limit {
            source.counts.hard_limited += 1;
            state.counts.hard_limited += 1;
            return refused;
        }
        if let Some(rate) = state.limiter.rate
            && !source.tokens.has_one(rate, nanoseconds(now))
        {
            source.counts.rate_limited += 1;
            state.counts.rate_limited += 1;
            return refused;
        }
        None
    }

    /// Counts a new state that the state limiter has admitted.
    pub fn admit_state(&mut self, id: u32) {
        if let Some(state) = self.of_states.get_mut(&id) {
            state.states += 1;
            state.counts.admitted += 1;
            state.tokens.saved_since += state.limiter.rate.map_or(0, token);
        }
    }

    /// Counts a new state that the source limiter has admitted. Returns the state's reference, and
    /// the change of the limiter's table.
    pub fn admit_source(
        &mut self,
        id: u32,
        (rdomain, source): (u32, IpAddr),
    ) -> (Option<LimitedBy>, Option<TableChange>) {
        let Some(state) = self.of_sources.get_mut(&id) else {
            return (None, None);
        };
        let (limiter, net) = (&state.limiter, state.limiter.masked(source));
        let cost = limiter.rate.map_or(0, token);
        let key = (rdomain, net.network());
        let source = state.sources.entry(key).or_insert_with(|| {
            state.sources_made += 1;
            // PF also lets a source begin in the distant past, so its first state costs nothing
            let (tokens, counts) = (Tokens::FULL, Admissions::default());
            LimitedSource { states: 0, counts, in_table: false, stays_until: 0, tokens }
        });
        let before = source.states;
        source.states += 1;
        source.tokens.saved_since += cost;
        source.counts.admitted += 1;
        state.states += 1;
        state.counts.admitted += 1;
        let over = limiter.table.as_ref().filter(|(_, above, _)| before != 0 && before >= *above);
        let change = over.filter(|_| !std::mem::replace(&mut source.in_table, over.is_some()));
        let change = change.map(|(name, ..)| TableChange::Add(name.clone(), net));
        (Some(LimitedBy { id, source: key }), change)
    }

    /// Releases a state's reference. With `unmade` the state was not created, and gets its token
    /// back.
    pub fn release_state(&mut self, id: u32, unmade: bool) {
        if let Some(state) = self.of_states.get_mut(&id) {
            state.states -= 1;
            if unmade {
                state.tokens.saved_since -= state.limiter.rate.map_or(0, token);
            }
        }
    }

    /// Does the same for a source limiter, and returns the change of its table.
    pub fn release_source(
        &mut self,
        held: LimitedBy,
        unmade: bool,
        now: u32,
    ) -> Option<TableChange> {
        let state = self.of_sources.get_mut(&held.id)?;
        let source = state.sources.get_mut(&held.source)?;
        state.states -= 1;
        source.states -= 1;
        if unmade {
            source.tokens.saved_since -= state.limiter.rate.map_or(0, token);
        }
        if source.states == 0 {
            let seconds = state.limiter.rate.map_or(0, |(_, seconds)| seconds);
            // PF adds the seconds when the source loses its last state, and again when it checks
            source.stays_until = now.saturating_add(seconds.saturating_mul(2)).saturating_add(1);
        }
        let (name, _, below) = state.limiter.table.as_ref()?;
        if !source.in_table || source.states >= *below {
            return None;
        }
        source.in_table = false;
        Some(TableChange::Remove(name.clone(), state.limiter.masked(held.source.1)))
    }

    /// Removes sources that have had no states for long enough.
    pub fn purge(&mut self, now: u32) {
        for state in self.of_sources.values_mut() {
            state.sources.retain(|_, source| source.states != 0 || now <= source.stays_until);
        }
    }
}

fn names_sources_alike(before: &Limiter, after: &Limiter) -> bool {
    let table = |limiter: &Limiter| limiter.table.as_ref().map(|(name, ..)| name.clone());
    let masks =
        |limiter: &Limiter| (limiter.inet_mask.unwrap_or(32), limiter.inet6_mask.unwrap_or(128));
    (table(before), masks(before)) == (table(after), masks(after))
}

fn nanoseconds(seconds: u32) -> i64 {
    i64::from(seconds) * NANOSECONDS
}

/// Returns the reason of a packet that a limiter drops, `None` if the rule just does not match.
pub(crate) fn reason(refused: Criterion) -> Option<Reason> {
    match refused {
        Criterion::StateLimiter { drops: true } => Some(Reason::StateLimit),
        Criterion::SourceLimiter { drops: true } => Some(Reason::SrcLimit),
        _ => None,
    }
}
