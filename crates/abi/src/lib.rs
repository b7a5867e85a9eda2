//! The Rust mirror of `bpf/abi.h`: the types that data plane and userland share.
//!
//! A struct here has the name of its C twin without `pf_`, the same fields and the same order.
//! Names that are Rust keywords differ. A test in `skipstep-kernel` compares each size and offset
//! with the BTF of the compiled object, in both directions. Units and byte order are as in
//! `bpf/abi.h`. Addresses and ports of packets and states are in network byte order, all other
//! numbers in host order. Times are seconds of the boot clock.

pub mod bridge;
pub mod config;
pub mod delayed;
pub mod diverted;
pub mod fingerprint;
pub mod flow;
pub mod handoff;
pub mod interface;
pub mod limiter;
pub mod limits;
pub mod log;
pub mod mark;
pub mod names;
pub mod pool;
pub mod queue;
pub mod rule;
pub mod source;
pub mod state;
pub mod status;
pub mod table;
pub mod table_index;
pub mod tree_set;
pub mod verdict;

pub use bridge::{BridgeAddress, BridgeKey, BridgePort, BridgeRule, BridgeRuleKey, BridgeStats};
pub use config::{Config, RuleRange};
pub use delayed::{Delayed, Delayer};
pub use diverted::{Diverted, Diverter};
pub use fingerprint::Fingerprint;
pub use flow::FlowRecord;
pub use handoff::{Handoff, Reassembler};
pub use interface::{Interface, InterfaceStats, NearInterface};
pub use limiter::{Leaving, Limited, LimitedKey, LimitedSource, LimitedTurn, Limiter, LimiterUse};
pub use log::LogRecord;
pub use pool::{
    Endpoint, Mapping, Pool, PoolBlock, PoolBlockKey, PoolKey, PoolLoadKey, PoolMember,
    PoolMemberKey,
};
pub use rule::{Address, Owner, Port, Rule, RuleStates, RuleStats, RuleTable};
pub use source::{SourceKey, SourceNode, SourceRef};
pub use state::{
    Extension, Flush, Flushed, KeptState, KeyHash, KeyLine, Kill, MatchRule, Path, Peer, Scrub,
    State, StateKey, StateRef,
};
pub use status::{Counters, Outcome, Status, Syncookies, Test};
pub use table::{EntryStats, Table, TableEntry, TableKey, TableStats};
pub use table_index::{IndexCell, IndexEntry, IndexHead, IndexLine, IndexNode};
pub use tree_set::Node;

/// Version of the layout (`PF_ABI_VERSION`); pins of another version are refused.
pub const VERSION: u32 = 75;

/// Family number of IPv4 in rules, keys and records (Linux's `AF_INET`).
pub const INET: u8 = 2;
/// Family number of IPv6 in rules, keys and records (Linux's `AF_INET6`).
pub const INET6: u8 = 10;

/// Returns the address as the data plane stores it: network byte order, IPv4 in the first 4 bytes.
pub fn address_bytes(address: std::net::IpAddr) -> [u8; 16] {
    match address {
        std::net::IpAddr::V4(v4) => {
            let mut bytes = [0; 16];
            bytes[..4].copy_from_slice(&v4.octets());
            bytes
        }
        std::net::IpAddr::V6(v6) => v6.octets(),
    }
}

/// Returns the address that `bytes` have for `family` ([`INET`] or [`INET6`]).
pub fn address_from(family: u8, bytes: [u8; 16]) -> std::net::IpAddr {
    if family == INET {
        std::net::IpAddr::from([bytes[0], bytes[1], bytes[2], bytes[3]])
    } else {
        std::net::IpAddr::from(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_survive_the_round_trip() {
        for text in ["192.0.2.1", "2001:db8::1", "::ffff:1.2.3.4"] {
            let address: std::net::IpAddr = text.parse().unwrap();
            let family = if address.is_ipv4() { INET } else { INET6 };
            assert_eq!(address_from(family, address_bytes(address)), address);
        }
    }
}
