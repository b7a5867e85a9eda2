//! Views of a filter's contents: states, sources, limiters and counters, as pfctl prints them and
//! tests compare them. The data plane and the model both fill them.

mod counters;
mod limiter;
mod source;
mod state;
mod table;

pub use counters::{InterfaceCounters, LimitCounter, RuleCounters, Status};
pub use limiter::{Admissions, LimitedView, LimiterView};
pub use source::{NodeKind, SourceView};
pub use state::{NextHop, Peer, StateView, WSCALE_OFFERED, other_sides};
pub use table::{Edit, TableEdit};
