//! Verdicts, directions, actions and evaluators.

/// `enum pf_verdict`: what becomes of the packet.
#[allow(clippy::module_inception)]
pub mod verdict {
    /// goes on
    pub const PASS: u8 = 0;
    /// ends here
    pub const DROP: u8 = 1;
    /// dropped, and turned into its answer
    pub const REPLY: u8 = 2;
    /// taken, and turned into what is sent in its place
    pub const CONSUMED: u8 = 3;
    /// a fragment, which skipstepd has
    pub const HELD: u8 = 4;
    /// passed, and skipstepd makes fragments of it
    pub const REFRAGMENT: u8 = 5;
    /// passed, and leaves where the outcome says
    pub const ROUTED: u8 = 6;
    /// taken, and forwarded as a packet of the other family
    pub const CROSSED: u8 = 7;
}

/// `enum pf_direction`.
pub mod direction {
    /// both, in rules
    pub const INOUT: u8 = 0;
    /// arriving
    pub const IN: u8 = 1;
    /// leaving
    pub const OUT: u8 = 2;
}

/// `enum pf_action`, the numbers pflog records use.
pub mod action {
    /// let through
    pub const PASS: u8 = 0;
    /// stop
    pub const BLOCK: u8 = 1;
    /// rules of old times, as the next six: normalisation
    pub const SCRUB: u8 = 2;
    /// a new source
    pub const NAT: u8 = 4;
    /// leave alone what `nat` would change
    pub const NO_NAT: u8 = 5;
    /// one address for another, both ways
    pub const BINAT: u8 = 6;
    /// leave alone what `binat` would change
    pub const NO_BINAT: u8 = 7;
    /// a new destination
    pub const RDR: u8 = 8;
    /// leave alone what `rdr` would change
    pub const NO_RDR: u8 = 9;
    /// set parameters, decide nothing
    pub const MATCH: u8 = 12;
}

/// `enum pf_evaluator`.
pub mod evaluator {
    /// one rule after the other
    pub const LINEAR: u32 = 0;
    /// pf's way
    pub const SKIP_STEPS: u32 = 1;
    /// trees, and pf's way where there are none
    pub const COMPILED: u32 = 2;
}
