//! Which rules share a tree.

use super::region::Covering;
use super::space::{Space, fixed_bits};

/// How rules are told apart, if a tree of all of them would repeat them too often.
#[derive(Debug, Clone, Copy)]
pub(super) enum Criterion {
    /// By which of their addresses fix at least so many bits.
    Narrow(u32),
    /// By which of their addresses ask anything.
    Asked,
    /// By which of their ports ask anything.
    PortsAsked,
    /// By which of their ports are a single one.
    OnePort,
    /// By whether they name a protocol.
    Protocol,
    /// By whether they are about what else is asked.
    Else,
}

impl Criterion {
    /// What is tried when the parts that this one made still repeat their rules too often.
    pub fn next(self) -> Option<Self> {
        match self {
            Self::Narrow(_) => Some(Self::Asked),
            Self::Asked => Some(Self::PortsAsked),
            Self::PortsAsked => Some(Self::OnePort),
            Self::OnePort => Some(Self::Protocol),
            Self::Protocol => Some(Self::Else),
            Self::Else => None,
        }
    }

    /// Whether rules of a space may differ in it.
    pub fn is_of<const N: usize>(self, space: &Space<N>) -> bool {
        !matches!(self, Self::Else) || space.asked().is_some()
    }

    fn class<const N: usize>(self, space: &Space<N>, rule: &Covering<N>) -> usize {
        let bits = |which: usize| fixed_bits(&rule.region, space.addresses[which].clone());
        let asked = |axis: usize| {
            (rule.region.low[axis], rule.region.high[axis])
                != (space.whole.low[axis], space.whole.high[axis])
        };
        let single = |axis: usize| rule.region.low[axis] == rule.region.high[axis];
        // behind the addresses: source port, destination port, protocol
        let ports = space.addresses[1].end;
        let pair =
            |source: bool, destination: bool| usize::from(source) * 2 + usize::from(destination);
        match self {
            Self::Narrow(least) => pair(bits(0) >= least, bits(1) >= least),
            Self::Asked => pair(bits(0) > 0, bits(1) > 0),
            Self::PortsAsked => pair(asked(ports), asked(ports + 1)),
            Self::OnePort => pair(single(ports), single(ports + 1)),
            Self::Protocol => usize::from(single(space.protocol())),
            Self::Else => space.asked().map_or(0, |axis| usize::from(asked(axis))),
        }
    }
}

/// Parts ranks by a criterion. Each part has its ranks in their order, none is empty.
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
