//! Skip steps: for each rule and parameter, the next rule that differs in that parameter.
//!
//! Sources: Hartmeier, "Design and Performance of the OpenBSD Stateful Packet Filter", 2002;
//! pf-semantics section 5.

use crate::{InterfaceMatch, Rule};

/// The parameters with skip steps, in the order in which pf tests them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
#[allow(missing_docs, reason = "the names say all")]
pub enum Skip {
    Interface,
    Direction,
    Rdomain,
    Family,
    Protocol,
    SourceAddress,
    DestinationAddress,
    SourcePort,
    DestinationPort,
}

impl Skip {
    /// Number of parameters.
    pub const COUNT: usize = 9;

    /// All parameters in order.
    pub const ALL: [Skip; Self::COUNT] = [
        Skip::Interface,
        Skip::Direction,
        Skip::Rdomain,
        Skip::Family,
        Skip::Protocol,
        Skip::SourceAddress,
        Skip::DestinationAddress,
        Skip::SourcePort,
        Skip::DestinationPort,
    ];

    /// Returns the short name that `pfctl -g` prints.
    pub fn name(self) -> &'static str {
        ["i", "d", "r", "f", "p", "sa", "da", "sp", "dp"][self as usize]
    }

    fn differs(self, a: &Rule, b: &Rule) -> bool {
        match self {
            Skip::Interface => interface(a) != interface(b) || negated(a) != negated(b),
            Skip::Direction => a.direction != b.direction,
            // pf counts the `!` of `on` as part of both parameters
            Skip::Rdomain => rdomain(a) != rdomain(b) || negated(a) != negated(b),
            Skip::Family => a.family != b.family,
            Skip::Protocol => a.protocol != b.protocol,
            Skip::SourceAddress => a.source.host != b.source.host,
            Skip::DestinationAddress => a.destination.host != b.destination.host,
            Skip::SourcePort => a.source.ports != b.source.ports,
            Skip::DestinationPort => a.destination.ports != b.destination.ports,
        }
    }
}

/// Returns the interface, group or `any` of the rule's `on`. `None` for `on rdomain`.
pub(crate) fn interface(rule: &Rule) -> Option<&InterfaceMatch> {
    let value = &rule.interface.as_ref()?.value;
    (!matches!(value, InterfaceMatch::Rdomain(_))).then_some(value)
}

/// Returns the routing domain of the rule's `on rdomain`.
pub(crate) fn rdomain(rule: &Rule) -> Option<u32> {
    match rule.interface.as_ref()?.value {
        InterfaceMatch::Rdomain(number) => Some(number),
        _ => None,
    }
}

/// True if `!` follows `on`.
pub(crate) fn negated(rule: &Rule) -> bool {
    rule.interface.as_ref().is_some_and(|interface| interface.negated)
}

/// Returns for each rule and parameter the index of the next rule that differs in the parameter, or
/// `rules.len()`. A single backward pass computes all steps, because a rule that agrees with its
/// successor has the successor's step.
pub fn skip_steps(rules: &[Rule]) -> Vec<[u32; Skip::COUNT]> {
    let end = rules.len() as u32;
    let mut steps = vec![[end; Skip::COUNT]; rules.len()];
    for i in (0..rules.len().saturating_sub(1)).rev() {
        for skip in Skip::ALL {
            let k = skip as usize;
            steps[i][k] =
                if skip.differs(&rules[i], &rules[i + 1]) { i as u32 + 1 } else { steps[i + 1][k] };
        }
    }
    steps
}
