//! Finding the first of many rules that covers a packet, in time that hardly grows with their
//! number.
//!
//! What a rule asks of a header is a box in a space with an axis for each field; a packet is a
//! point. A tree cuts the space at the ends of boxes, as evenly as it can by their number, until
//! few boxes are left in each part: a node is one cache line with up to 14 cuts along one axis, a
//! leaf the boxes of its part in their order. A rule whose box reaches into several parts stands in
//! each, and that is what blows up single trees: rules that are wide in one address and narrow in
//! the other would be repeated everywhere. So rules go to several trees by which of their addresses
//! are wide, and the walk asks one tree after the other, the one whose first rule comes first,
//! until no better one can come.
//!
//! The idea of parting rules by their wide fields is that of EffiCuts (Vamanan, Voskuilen,
//! Vijaykumar, 2010) and CutSplit (Li et al., 2018), cuts at the ends of boxes that of HyperSplit
//! (Qi et al., 2009).
//!
//! Nothing here knows what a rule means. It is given boxes, their order, and whether a box is all
//! that a rule asks; who looks up says of each rule whose box has the point whether it takes the
//! packet.

mod cell;
mod forest;
mod grow;
mod partition;
mod region;
mod space;

pub use cell::Cell;
pub use forest::{Forest, Root, Size};
pub use region::{Covering, Region};
pub use space::{INET, INET_ASKED, INET6, INET6_ASKED, Space};

#[cfg(test)]
mod tests;
