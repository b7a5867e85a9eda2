//! Boxes, and the rules that cover them.

/// A box: from one corner to the other, both belong to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Region<const N: usize> {
    /// The least value of each field.
    pub low: [u32; N],
    /// The greatest value of each field.
    pub high: [u32; N],
}

impl<const N: usize> Region<N> {
    /// Whether a point lies in it.
    pub fn has(&self, point: &[u32; N]) -> bool {
        (0..N).all(|axis| (self.low[axis]..=self.high[axis]).contains(&point[axis]))
    }

    /// Whether all of `other` lies in it.
    pub fn covers(&self, other: &Self) -> bool {
        self.covers_but(other, N)
    }

    /// Whether that is so on all axes but one.
    pub(super) fn covers_but(&self, other: &Self, but: usize) -> bool {
        let covers =
            |axis: usize| self.low[axis] <= other.low[axis] && other.high[axis] <= self.high[axis];
        (0..N).all(|axis| axis == but || covers(axis))
    }

    /// What of it lies between two values of a field, of which it has some.
    pub(super) fn within(&self, part: &Self, axis: usize) -> (u32, u32) {
        (self.low[axis].max(part.low[axis]), self.high[axis].min(part.high[axis]))
    }
}

/// A rule as trees see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Covering<const N: usize> {
    /// The headers it may match.
    pub region: Region<N>,
    /// It matches all of them: nothing else is asked of a packet.
    pub whole: bool,
    /// Of them no rule behind it is asked: mostly for it matches them all.
    pub hides: bool,
    /// What a leaf knows it by: less than that of any rule that it gives way to.
    pub order: u32,
}
