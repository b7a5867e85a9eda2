//! Verdicts, directions, actions and evaluators.

/// `enum pf_verdict`: the verdicts on a packet.
#[allow(clippy::module_inception, reason = "a header and its enum have one name")]
pub mod verdict {
    /// The packet passes.
    pub const PASS: u8 = 0;
    /// The packet is dropped.
    pub const DROP: u8 = 1;
    /// The packet is dropped, and turned into its answer (RST, ICMP error, ACK).
    pub const REPLY: u8 = 2;
    /// synproxy: another packet is sent instead of this one.
    pub const CONSUMED: u8 = 3;
    /// The packet is a fragment, and goes to skipstepd.
    pub const HELD: u8 = 4;
    /// The packet passes, and skipstepd splits it into fragments.
    pub const REFRAGMENT: u8 = 5;
    /// The packet passes, and leaves by the interface in [`crate::Outcome::ifindex`].
    pub const ROUTED: u8 = 6;
    /// The packet is forwarded as a packet of the other family.
    pub const CROSSED: u8 = 7;
}

/// `enum pf_direction`: directions of packets, and of rules.
pub mod direction {
    /// Both directions, for rules only.
    pub const INOUT: u8 = 0;
    /// The packet arrives.
    pub const IN: u8 = 1;
    /// The packet leaves.
    pub const OUT: u8 = 2;
}

/// `enum pf_action`: actions of rules, with the numbers of pflog records.
pub mod action {
    /// Pass the packet.
    pub const PASS: u8 = 0;
    /// Drop the packet.
    pub const BLOCK: u8 = 1;
    /// Normalize the packet; a legacy action, as the next six.
    pub const SCRUB: u8 = 2;
    /// Translate the source.
    pub const NAT: u8 = 4;
    /// Exempt the packet from `nat`.
    pub const NO_NAT: u8 = 5;
    /// Translate one address to another in both directions.
    pub const BINAT: u8 = 6;
    /// Exempt the packet from `binat`.
    pub const NO_BINAT: u8 = 7;
    /// Translate the destination.
    pub const RDR: u8 = 8;
    /// Exempt the packet from `rdr`.
    pub const NO_RDR: u8 = 9;
    /// Set parameters without a decision.
    pub const MATCH: u8 = 12;
}

/// `enum pf_evaluator`: `set evaluator`.
pub mod evaluator {
    /// Evaluates one rule after the other.
    pub const LINEAR: u32 = 0;
    /// Evaluates with skip steps, as pf does.
    pub const SKIP_STEPS: u32 = 1;
    /// Searches superblocks in trees, and evaluates other rules with skip steps.
    pub const COMPILED: u32 = 2;
}
