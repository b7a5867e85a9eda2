//! The reference evaluator: the firewall's behaviour in plain Rust that is written to be read.
//! `pfctl explain` and `pfctl test` run it, and the BPF programs must agree with it.
//!
//! It uses a [`Ruleset`](skipstep_ruleset::Ruleset) without compilation, evaluates one rule after
//! the other, and keeps its states in ordinary maps. Time, randomness, interfaces and routes come
//! from [`world::World`] only, so the caller controls all four.
//!
//! A packet's way through the files: [`firewall`] has the firewall's parts, and `filter` the order
//! of steps. `packet` and `header` parse the packet, `normalize` refuses and repairs it, `fragment`
//! holds fragments until they are complete. `decide` finds the verdict. `lookup` finds the state in
//! [`state`]; `tcp`, `others`, `icmp` and `icmp_error` judge the packet by it and update it.
//! Without a state, `rules` finds the deciding rule in the `rulebook`, and `actions` collects the
//! actions of match rules. `translate` computes new addresses and ports with a `pool` (and its
//! `address_list`), a `port` and `af_to`. `limiter` checks shared limits, `create` creates the
//! state, and `reply` answers blocked packets.
//!
//! `act` carries out the `ruling`. `scrub` changes packets that pass, `cross` and `icmp_convert`
//! convert packets to the other family. `counters` counts, `journal` collects reasons and log
//! records, and [`trace`] records the steps. `change` and `reload` change states, tables and rules
//! while packets flow. `release` releases a state's references when the state ends.
//!
//! pf-semantics states PF's behaviour; the head of each file names the section. Odd behaviour of PF
//! is copied, with a comment that says so.

mod act;
mod actions;
mod address;
mod address_list;
mod af_to;
mod change;
mod cookies;
mod counters;
mod create;
mod cross;
mod decide;
mod evaluation;
mod filter;
mod fingerprint;
mod fragment;
mod header;
mod icmp;
mod icmp_convert;
mod icmp_error;
mod journal;
mod key;
mod link;
mod lookup;
mod modulate;
mod normalize;
mod others;
mod overload;
mod own_address;
mod packet;
mod patch;
mod pool;
mod pool_inputs;
mod pool_list;
mod port;
mod rate;
mod release;
mod reload;
mod reply;
mod route;
mod rulebook;
mod rules;
mod ruling;
mod scrub;
pub mod side;
mod sticky;
mod syncookie;
mod synproxy;
mod table;
mod tcp;
mod tcp_option;
mod timeout;
mod translate;

pub mod endpoint;
mod fate;
pub mod firewall;
pub mod limiter;
pub mod source_node;
pub mod state;
pub mod timestamp;
pub mod trace;
pub mod trial;
pub mod world;

pub use actions::Actions;
pub use counters::{TableCounters, TableTraffic};
pub use fate::{
    Carried, Decision, Diverted, Fate, ForwardRoute, Forwarded, LogRecord, Packet, SocketOwner,
    Verdict,
};
pub use firewall::Firewall;
pub use key::{Ends, Key, STACK, StateId, WIRE};
pub use limiter::{LimitedSource, LimiterState};
pub use link::{Hiding, LinkHeader, VlanTag};
pub use pool::Chosen;
pub use source_node::SourceNode;
pub use state::State;
pub use trace::{Stage, Trace};
pub use trial::TrialTime;
pub use world::Draw;
