//! The data plane under test, driven by scenarios. `BPF_PROG_TEST_RUN` runs the programs that
//! filter real packets, on packets, a clock, random draws, interfaces and routes that the test
//! chooses.
//!
//! A [`TestEngine`] is not pinned, and implements the trait [`Engine`](skipstep_scenario::Engine)
//! of scenarios. A [`TestInstance`] is pinned and recorded like any instance.

mod anew;
mod arrival;
mod copies;
mod crowd;
mod daemon;
mod engine;
mod here;
mod hook;
mod instance;
mod key_table;
mod lookup;
mod machine;
mod network;
mod odd_length;
mod passage;
mod reset;
mod route;
mod timer;

pub use anew::{FRAME, FrameRestorer, TimedHook};
pub use engine::{DropCheck, TestEngine, TimedRun};
pub use instance::TestInstance;
pub use key_table::KeyTable;
pub use lookup::{FAILED, Lookup, LookupPacket, Lookups, NO_RULE, PACKETS};
pub use network::{LINK_ADDRESS, TestNetwork};
pub use timer::LoneTimer;
