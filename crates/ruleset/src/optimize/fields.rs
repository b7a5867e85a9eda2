//! What each field of a rule means to the optimizer.

use std::hash::{Hash, Hasher};

use crate::{
    Action, Address, BlockReturn, Pool, PoolKind, PoolPorts, Rule, Scrub, SourceTrack, StateOptions,
};

/// The meaning of a field; each includes less than the one before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// A rule that has it stays where it is, as it is.
    Barrier,
    /// It may not differ within a superblock: it is part of what happens to the packet.
    Break,
    /// It may not differ between rules that become one.
    NoMerge,
    /// Rules that differ in one of these can become one, with a table.
    Combined,
    /// It says where the rule comes from, not what it does.
    Ignored,
}

/// Gives every field of a rule its role: a field that is in no line does not compile.
macro_rules! roles {
    ($($role:ident: $($field:ident)*;)*) => {
        /// Whether two rules agree in all fields with a role up to `last`.
        pub fn agree(a: &Rule, b: &Rule, last: Role) -> bool {
            true $($(&& (Role::$role > last || a.$field == b.$field))*)*
        }

        /// Hashes the fields with that role.
        pub fn hash<H: Hasher>(rule: &Rule, role: Role, state: &mut H) {
            let Rule { $($($field,)*)* } = rule;
            $($(if Role::$role == role {
                $field.hash(state);
            })*)*
        }

        /// Whether a field that is a barrier is set.
        fn has_barrier(rule: &Rule) -> bool {
            let default = Rule::default();
            false $($(|| (Role::$role == Role::Barrier && rule.$field != default.$field))*)*
        }
    };
}

// pfctl also removes and moves rules with a different `set tos`, which is part of what they do.
roles! {
    Barrier: anchor labels probability ridentifier;
    Break: action log quick received_on prio max_pkt_rate max_pkt_size state_limiter source_limiter
        set_prio set_tos set_queue set_delay fragment allow_opts once tag rtable divert af_to nat rdr
        route;
    NoMerge: direction interface family protocol os user group tcp_flags icmp tos tagged
        block_return state scrub;
    Combined: source destination;
    Ignored: number line file;
}

/// Whether a rule stays where it is, as it is.
pub fn is_barrier(rule: &Rule) -> bool {
    let limits = rule.state.as_ref().is_some_and(|state| {
        state.max.is_some()
            || state.max_src_nodes.is_some()
            || state.max_src_states.is_some()
            || state.max_src_conn.is_some()
            || state.max_src_conn_rate.is_some()
            || state.source_track == Some(SourceTrack::Rule)
    });
    limits || adds_up(rule) || has_barrier(rule)
}

/// Whether a second such rule would find what the first has written, and do something else: a port
/// that keeps its distance from the lowest, a source for which a port is sought by the new
/// destination, a source that sticks to what the first has chosen for it, a source that is chosen
/// by the hash of the one before, an endpoint whose mapping is that of the new source.
fn adds_up(rule: &Rule) -> bool {
    let moves_port = |pool: &Pool| matches!(pool.ports, PoolPorts::Range(low, high) if low < high);
    let hashes = |pool: &Pool| matches!(pool.kind, PoolKind::SourceHash(_));
    let both_ends = rule.nat.is_some() && rule.rdr.is_some();
    rule.action == Action::Match
        && (both_ends
            || rule.rdr.as_deref().is_some_and(moves_port)
            || rule.nat.as_deref().is_some_and(|pool| hashes(pool) || pool.endpoint_independent)
            || rule.pools().any(|pool| pool.sticky))
}

/// Whether what a rule gives to a packet hangs on what it gave before. Such a rule may go if it
/// never decides; it may not decide for another, each of them has a pool of its own.
pub fn has_memory(rule: &Rule) -> bool {
    rule.pools().any(|pool| {
        pool.sticky || matches!(pool.kind, PoolKind::RoundRobin | PoolKind::LeastStates)
    })
}

/// What may not differ within a superblock of the fields that are not `Break` as a whole; the rest
/// of them is in `manner`.
pub fn kind(rule: &Rule) -> impl Eq {
    let answer = match rule.block_return {
        BlockReturn::Icmp { .. } => BlockReturn::Icmp { inet: (0, 0), inet6: (0, 0) },
        other => other,
    };
    let state =
        rule.state.as_deref().map(|state| StateOptions { timeouts: Vec::new(), ..state.clone() });
    (answer, state, Scrub { min_ttl: None, max_mss: None, ..rule.scrub })
}

/// Whether an address is met by everyone (of the rule's family), however it is written.
pub fn is_everyone(address: &Address) -> bool {
    match address {
        Address::Any => true,
        Address::Net(net) => net.prefix_len() == 0,
        _ => false,
    }
}
