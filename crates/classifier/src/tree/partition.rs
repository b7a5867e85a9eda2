//! The division of rules among trees.

use super::rect::Covering;
use super::space::{Space, fixed_bits};

/// A criterion that divides rules among trees, if a single tree would store them too often.
#[derive(Debug, Clone, Copy)]
pub(super) enum Criterion {
    /// The addresses that fix at least this number of bits.
    Narrow(u32),
    /// The addresses that have a criterion.
    AddressesAsked,
    /// The ports that have a criterion.
    PortsAsked,
    /// The ports that are a single number.
    OnePort,
    /// The presence of a protocol.
    Protocol,
    /// The presence of a criterion on the metadata dimension.
    Metadata,
}

impl Criterion {
    /// Returns the criterion to try if the parts of this one still store their rules too often.
    pub fn next(self) -> Option<Self> {
        match self {
            Self::Narrow(_) => Some(Self::AddressesAsked),
            Self::AddressesAsked => Some(Self::PortsAsked),
            Self::PortsAsked => Some(Self::OnePort),
            Self::OnePort => Some(Self::Protocol),
            Self::Protocol => Some(Self::Metadata),
            Self::Metadata => None,
        }
    }

    /// True if rules of the space may differ in the criterion.
    pub fn is_of<const N: usize>(self, space: &Space<N>) -> bool {
        !matches!(self, Self::Metadata) || space.metadata_axis().is_some()
    }

    fn class<const N: usize>(self, space: &Space<N>, rule: &Covering<N>) -> usize {
        let bits = |which: usize| fixed_bits(&rule.rect, space.addresses[which].clone());
        let is_limited = |axis: usize| {
            (rule.rect.low[axis], rule.rect.high[axis])
                != (space.whole.low[axis], space.whole.high[axis])
        };
        let single = |axis: usize| rule.rect.low[axis] == rule.rect.high[axis];
        // Behind the addresses come source port, destination port and protocol.
        let ports = space.addresses[1].end;
        let pair =
            |source: bool, destination: bool| usize::from(source) * 2 + usize::from(destination);
        match self {
            Self::Narrow(least) => pair(bits(0) >= least, bits(1) >= least),
            Self::AddressesAsked => pair(bits(0) > 0, bits(1) > 0),
            Self::PortsAsked => pair(is_limited(ports), is_limited(ports + 1)),
            Self::OnePort => pair(single(ports), single(ports + 1)),
            Self::Protocol => usize::from(single(space.protocol())),
            Self::Metadata => space.metadata_axis().map_or(0, |axis| usize::from(is_limited(axis))),
        }
    }
}

/// Divides ranks of rules by a criterion. Each part keeps their order, and no part is empty.
pub(super) fn part<const N: usize>(
    space: &Space<N>,
    rules: &[Covering<N>],
    ranks: &[u32],
    criterion: Criterion,
) -> Vec<Vec<u32>> {
    let mut parts = vec![Vec::new(); 4];
    for rank in ranks {
        parts[criterion.class(space, &rules[*rank as usize])].push(*rank);
    }
    parts.retain(|part| !part.is_empty());
    parts
}
