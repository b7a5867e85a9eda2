//! Rectangles, and rules as rectangles with an order.

/// A rectangle: the points between two corners, both included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rect<const N: usize> {
    /// Lowest value of each field.
    pub low: [u32; N],
    /// Highest value of each field.
    pub high: [u32; N],
}

impl<const N: usize> Rect<N> {
    /// True if the point is in the rectangle.
    pub fn has(&self, point: &[u32; N]) -> bool {
        (0..N).all(|axis| (self.low[axis]..=self.high[axis]).contains(&point[axis]))
    }

    /// True if all of `other` is in the rectangle.
    pub fn covers(&self, other: &Self) -> bool {
        self.covers_but(other, N)
    }

    /// True if all of `other` is in the rectangle on every axis except `but`.
    pub(super) fn covers_but(&self, other: &Self, but: usize) -> bool {
        let covers =
            |axis: usize| self.low[axis] <= other.low[axis] && other.high[axis] <= self.high[axis];
        (0..N).all(|axis| axis == but || covers(axis))
    }

    /// Returns the intersection with `part` on one axis, inclusive. The two must overlap there.
    pub(super) fn within(&self, part: &Self, axis: usize) -> (u32, u32) {
        (self.low[axis].max(part.low[axis]), self.high[axis].min(part.high[axis]))
    }
}

/// A rectangle of a rule, as trees store it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Covering<const N: usize> {
    /// Headers that the rule may match.
    pub rect: Rect<N>,
    /// True if the rule matches every packet in the rectangle.
    pub whole: bool,
    /// True if no later rule can apply to a packet in the rectangle, mostly because this rule
    /// matches them all.
    pub hides: bool,
    /// Rank of the rule: of two rules that match, the lower order wins.
    pub order: u32,
}
