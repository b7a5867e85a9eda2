//! Tracking of flows that are not TCP: UDP and protocols without ports (pf-semantics section 9).
//! ICMP queries have no sides to track.

use skipstep_ruleset::{Direction, Timeout};

use crate::side::other_state::{MULTIPLE, SINGLE};
use crate::state::State;

/// Updates the state of a UDP flow.
pub(crate) fn track_udp(state: &mut State, direction: Direction, now: u32) {
    track(state, direction, now, Timeout::UdpSingle, Timeout::UdpMultiple);
}

/// Updates the state of a flow that is neither TCP, UDP nor ICMP.
pub(crate) fn track_other(state: &mut State, direction: Direction, now: u32) {
    track(state, direction, now, Timeout::OtherSingle, Timeout::OtherMultiple);
}

fn track(state: &mut State, direction: Direction, now: u32, single: Timeout, multiple: Timeout) {
    let (from, to) = state.peers_mut(direction);
    from.state = from.state.max(SINGLE);
    if to.state == SINGLE {
        to.state = MULTIPLE;
    }
    let both = from.state == MULTIPLE && to.state == MULTIPLE;
    state.refresh(now, if both { multiple } else { single });
}
