//! The role of each field of a rule in the optimizer.

use std::hash::{Hash, Hasher};

use crate::{
    Action, Address, BlockReturn, Pool, PoolKind, PoolPorts, Rule, Scrub, SourceTrack, StateOptions,
};

/// The role of a field. A role allows more differences than the role before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// A rule with this field keeps its position and its fields.
    Barrier,
    /// The field must be equal in a superblock, because it is part of the effect on the packet.
    Break,
    /// The field must be equal in rules that are combined.
    NoMerge,
    /// Rules that differ in one of these fields can be combined to a rule with a table.
    Combined,
    /// The field tells the rule's origin and has no effect.
    Ignored,
}

/// Gives each field of a rule a role. A field without a role does not compile.
macro_rules! roles {
    ($($role:ident: $($field:ident)*;)*) => {
        /// True if two rules agree in all fields with roles up to `last`.
        pub fn agree(a: &Rule, b: &Rule, last: Role) -> bool {
            true $($(&& (Role::$role > last || a.$field == b.$field))*)*
        }

        /// Hashes the fields with this role.
        pub fn hash<H: Hasher>(rule: &Rule, role: Role, state: &mut H) {
            let Rule { $($($field,)*)* } = rule;
            $($(if Role::$role == role {
                $field.hash(state);
            })*)*
        }

        /// True if a field with the role `Barrier` is set.
        fn has_barrier(rule: &Rule) -> bool {
            let default = Rule::default();
            false $($(|| (Role::$role == Role::Barrier && rule.$field != default.$field))*)*
        }
    };
}

// pfctl also removes and moves rules with different `set tos`, which is part of their effect
// Differs from OpenBSD: linux.md, "Rule set optimizer"
roles! {
    Barrier: anchor labels probability ridentifier;
    Break: action log quick received_on prio max_pkt_rate max_pkt_size state_limiter source_limiter
        set_prio set_tos set_queue set_delay fragment allow_opts once tag rtable divert af_to nat
        rdr route;
    NoMerge: direction interface family protocol os user group tcp_flags icmp tos tagged
        block_return state scrub;
    Combined: source destination;
    Ignored: number line file;
}

/// True if a rule keeps its position and its fields.
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

/// True if a second equal rule would have another effect, because the rule reads results of the
/// first. Such results are a port at a distance from the lowest port, and a translated destination
/// by which a port is chosen. A translated source is read by `sticky-address`, `source-hash` and
/// endpoint mappings.
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

/// True if the translation depends on earlier translations by the rule. The optimizer may remove
/// such a rule if the rule never decides. The rule must not decide in place of another rule,
/// because each rule has its own pool.
pub fn has_memory(rule: &Rule) -> bool {
    rule.pools().any(|pool| {
        pool.sticky || matches!(pool.kind, PoolKind::RoundRobin | PoolKind::LeastStates)
    })
}

/// Returns the fields that must be equal in a superblock as far as `manner` does not compare them.
pub fn kind(rule: &Rule) -> impl Eq {
    let answer = match rule.block_return {
        BlockReturn::Icmp { .. } => BlockReturn::Icmp { inet: (0, 0), inet6: (0, 0) },
        other => other,
    };
    let state =
        rule.state.as_deref().map(|state| StateOptions { timeouts: Vec::new(), ..state.clone() });
    (answer, state, Scrub { min_ttl: None, max_mss: None, ..rule.scrub })
}

/// True if the address matches all packets of the rule's family, however it is written.
pub fn is_everyone(address: &Address) -> bool {
    match address {
        Address::Any => true,
        Address::Net(net) => net.prefix_len() == 0,
        _ => false,
    }
}
