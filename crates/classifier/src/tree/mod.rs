//! A search structure for the first of many rules that matches a packet, in time that hardly grows
//! with the number of rules.
//!
//! The criteria of a rule on the header are a rectangle in a space with one axis for each field; a
//! packet is a point. A tree cuts the space at the ends of rectangles, into parts with about the
//! same number of rectangles, until each part has few. An inner node is one cache line with up to
//! 14 cuts along one axis. A leaf has the rectangles of its part, in order.
//!
//! A rule whose rectangle reaches into several parts is stored in each of them. In a single tree,
//! rules that are wide in one address and narrow in the other would be stored many times. So rules
//! are divided among several trees, by the addresses in which they are wide. A search visits the
//! trees in the order of their first rules, until no tree can have a better match.
//!
//! The division of rules by their wide fields is from EffiCuts (Vamanan, Voskuilen, Vijaykumar,
//! 2010) and CutSplit (Li et al., 2018). Cuts at the ends of rectangles are from HyperSplit (Qi et
//! al., 2009).
//!
//! This module does not know the meaning of rules. Its input is rectangles, their order, and
//! whether a rectangle has all criteria of its rule. For each rule whose rectangle contains the
//! point, the caller of a search says whether the rule matches.

mod grow;
mod node;
mod partition;
mod rect;
mod set;
mod space;

pub use node::Node;
pub use rect::{Covering, Rect};
pub use set::{Root, Size, TreeSet};
pub use space::{INET, INET_METADATA, INET6, INET6_METADATA, Space};
