//! The reference evaluator: what the firewall does with a packet, in plain Rust that is written to
//! be read. `pfctl explain` and `pfctl test` run on it, and the BPF programs must agree with it.
//!
//! It works on a [`Ruleset`](skipstep_ruleset::Ruleset) as it is, walks the rules one after the
//! other and keeps its states in ordinary maps. Time, randomness, interfaces and routes reach it
//! through [`world::World`] only, so whoever runs it decides about all four.
//!
//! A packet's way through the files: [`firewall`] is the order of work; `packet` and `header` take
//! the packet apart, `normalize` refuses and repairs it, `fragment` holds pieces until they
//! are whole. `decide` says whether it passes: `lookup` asks the table in [`state`] for
//! its state, which `tcp`, `others`, `icmp` and `icmp_error` judge and move on; without a state
//! `rules` finds the deciding rule in the `rulebook`, `actions` collects what match rules ask for,
//! `translate` what they make of its ends with a `pool` and a `port`, and with `af_to`, `limiter`
//! lets a state be made, `create` makes it, `reply` answers what is blocked. `act` carries out the
//! `ruling`: `scrub` changes what passes, `cross` and `icmp_convert` turn a packet into one of the
//! other family, [`counters`] counts, `journal` notes reasons and log records, and [`trace`] tells.
//! `change` and `reload` are what others do while packets flow, `release` what a state gives back
//! when it ends.
//!
//! What PF does is stated in pf-semantics; the section is named at the head of each file. Where PF
//! does something odd it does it here too, with a comment that says so.

mod act;
mod actions;
mod address;
mod af_to;
mod change;
mod create;
mod cross;
mod decide;
mod fingerprint;
mod fragment;
mod header;
mod icmp;
mod icmp_convert;
mod icmp_error;
mod journal;
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
mod siphash;
mod sticky;
mod syncookie;
mod synproxy;
mod table;
mod tcp;
mod tcp_option;
mod timeout;
mod translate;

pub mod counters;
pub mod endpoint;
mod fate;
pub mod firewall;
pub mod limiter;
pub mod source_node;
pub mod state;
pub mod timestamp;
pub mod trace;
pub mod world;

pub use actions::Actions;
pub use change::{Edit, TableEdit};
pub use counters::{
    InterfaceCounters, LimitCounter, RuleCounters, Status, TableCounters, TableTraffic,
};
pub use skipstep_reassembly::Counters as FragmentCounters;

pub use fate::{
    Carried, Decision, Diverted, Fate, Forwarded, LogRecord, Packet, SocketOwner, Verdict, Way,
};
pub use firewall::Firewall;
pub use limiter::{Admissions, LimitedSource, LimiterState};
pub use link::{Hiding, LinkHeader, VlanTag};
pub use pool::Chosen;
pub use route::NextHop;
pub use source_node::{NodeKind, SourceNode};
pub use state::{Key, Peer, STACK, State, StateId, WIRE};
pub use trace::{Stage, Trace};
pub use translate::Ends;
pub use world::Draw;
