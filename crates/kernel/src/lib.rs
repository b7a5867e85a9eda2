//! The kernel side of skipstep: loads the data plane, attaches it, fills and reads its maps.
//!
//! An [`Instance`] is the filter of one network namespace, pinned under a name; it works without
//! any process. The crate `skipstep-testing` runs the same programs on made-up packets. All
//! `unsafe` code and nearly all need of root are in this crate. Every call blocks, and returns an
//! [`Error`] of one line that names the object and the cause.

mod attach;
mod attacher;
pub mod bridge;
pub mod bridge_port;
pub mod change;
pub mod clock;
pub mod commit;
pub mod contents;
pub mod counters;
pub mod delayer;
pub mod device;
mod divert;
pub mod diverter;
pub mod drops;
mod enable;
mod enable_reference;
pub mod error;
pub mod features;
mod forget;
mod guard;
pub mod hooks;
pub mod host;
mod indexing;
pub mod instance;
mod interfaces;
mod kept_rules;
pub mod lab;
pub mod limiter;
mod lists;
pub mod live_log;
mod load;
mod lock;
pub mod map;
pub mod mark_rules;
pub mod netlink;
mod netns;
mod nodes;
pub mod object;
pub mod offload;
mod orphans;
mod own_device;
pub mod owner;
pub mod pins;
mod pool;
mod ports;
pub mod private;
pub mod program;
pub mod queue;
pub mod record;
pub mod report;
pub mod ring;
pub mod routing;
pub mod rule_home;
mod rundir;
pub mod saved;
pub mod shared;
pub mod source;
pub mod state;
pub mod sysctl;
pub mod table;
mod table_expansion;
mod table_index;
mod table_slots;
pub mod tap;
pub mod timekeeping;
pub mod trial;
pub mod unchanged;
pub mod verifier;
pub mod xdp_fast_path;

pub use attacher::Attacher;
pub use delayer::{DelayCounters, Delayer};
pub use device::{Device, FragmentCounters};
pub use diverter::{DivertCounters, Diverter};
pub use drops::{DroppedPacket, Drops};
pub use enable_reference::EnableReference;
pub use error::{Error, Result};
pub use indexing::Indexing;
pub use instance::Instance;
pub use live_log::{LiveLog, LoggedPacket};
pub use load::{ReadAhead, Unsettled};
pub use lock::stop_waits_with;
pub use own_device::daemon_runs;
pub use owner::Owner;
pub use ring::{FlowReader, LogReader, RECORDS_A_TURN};
pub use rundir::empty_folder;
/// Number of the layout of maps: a filter with another number must be removed first.
pub use skipstep_abi::VERSION as LAYOUT;
pub use tap::{Frames, Tap};
