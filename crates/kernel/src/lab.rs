//! The kernel side of the laboratory. BPF programs (bpf/lab) generate and count frames at the speed
//! of XDP, and route in XDP or on tcx. Other modules set real-time priority and start child
//! processes that end with their parent.
//!
//! Nothing here depends on skipstep's data plane.

pub mod child;
mod generator;
mod layout;
mod packet_socket;
pub mod realtime;
mod route;
mod sink;
mod window;

use libbpf_rs::{Object, ObjectBuilder};

pub use generator::{Ended, Generator, LARGEST_FRAME};
pub use layout::{
    BUCKETS, Counts, Field, FrameKind, HEADER_BYTES, LINEAR, MAGIC, Order, PATTERN, PLACES,
    Progress, TAG_BYTES, TEMPLATES, TRIAL_SHIFT, Template, VALUES, Variation,
};
pub use packet_socket::{PACKET_BATCH, PacketSocket};
pub use route::{RoutesIn, route};
pub use sink::{Sink, XdpMode};
pub use window::Window;

use crate::error::{Context, Error, Result, last_cause};
use crate::verifier;

/// Loads one of the laboratory's objects.
fn load(bytes: &[u8], name: &'static str) -> Result<Object> {
    if !nix::unistd::geteuid().is_root() {
        return Err(Error::NotRoot { operation: format!("{name}: load") });
    }
    verifier::capture_warnings();
    let open = ObjectBuilder::default().open_memory(bytes).context(|| format!("{name}: open"))?;
    open.load().map_err(|error| match verifier::refusal() {
        Some((program, log)) => Error::Verifier { program, log },
        None => Error::Bpf { operation: format!("{name}: load"), cause: last_cause(&error) },
    })
}
