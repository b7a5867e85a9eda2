//! Release of a state's references to limiters, source nodes, endpoints and addresses of pools.

use skipstep_ruleset::{Family, PoolKind, Timeout};

use crate::Firewall;
use crate::pool_inputs::{PoolInputs, Purpose};
use crate::state::State;
use crate::timeout;
use crate::translate::pool_of;

impl Firewall {
    /// Releases the source nodes of a state. A node without states stays for `src.track` seconds.
    pub(crate) fn release_sources(&mut self, state: &State) {
        let seconds = timeout::own_timeout(self.rulebook.at(state.rule), Timeout::SrcTrack)
            .unwrap_or_else(|| self.ruleset.options.timeouts.get(Timeout::SrcTrack));
        for key in &state.sources {
            let expires_at = self.world.now.saturating_add(seconds);
            self.sources.release(key, state.connected, expires_at);
        }
    }

    /// Releases the limiters of a state. With `unmade` the state was not created, and its tokens
    /// are returned.
    pub(crate) fn release_limiters(&mut self, state: &State, unmade: bool) {
        if let Some(id) = state.state_limiter {
            self.limiters.release_state(id, unmade);
        }
        if let Some(held) = state.source_limiter {
            let change = self.limiters.release_source(held, unmade, self.world.now);
            self.change_table(change);
        }
    }

    /// Releases the endpoint mapping of a state.
    pub(crate) fn release_endpoint(&mut self, state: &State) {
        if let Some(inside) = &state.mapped {
            self.endpoints.release(inside);
        }
    }

    /// Releases the endpoint mapping, and the addresses that pools count states for.
    pub(crate) fn release_addresses(&mut self, state: &State) {
        self.release_endpoint(state);
        let inputs = PoolInputs { ruleset: &self.ruleset, world: &self.world };
        let ends = state.first_ends();
        let routed =
            state.route.as_ref().map(|hop| (Some(state.rule), Purpose::Route, hop.address));
        let translated = [
            (state.nat_rule, Purpose::Nat, ends.source.0),
            (state.rdr_rule, Purpose::Rdr, ends.destination.0),
        ];
        for (place, purpose, address) in translated.into_iter().chain(routed) {
            let pool = place.and_then(|place| pool_of(self.rulebook.at(place), purpose));
            if let Some(of) = pool.filter(|of| of.pool.kind == PoolKind::LeastStates) {
                self.pools.count(of, inputs, Family::from_address(address), address, -1);
            }
        }
    }
}
