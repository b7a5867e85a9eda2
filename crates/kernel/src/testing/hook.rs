//! Where a packet meets a program of ours.

use skipstep_ruleset::Direction;

/// Where a packet meets a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Hook {
    /// At an interface.
    Filter(Direction),
    /// At skipstepd's device, on its way back.
    Return,
}
