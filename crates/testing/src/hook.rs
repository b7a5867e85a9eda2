//! Hooks of the filter.

use skipstep_ruleset::Direction;

/// A hook at which a program of the filter runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hook {
    /// tcx at an interface, in a direction.
    Filter(Direction),
    /// tcx ingress of skipstepd's device for fragments.
    Return,
}
