//! The parts of `skb->mark`, which a packet carries between the hooks. The lower half is the
//! user's.

/// The firewall's part of the mark (`PF_MARK_MASK`).
pub const MASK: u32 = 0xffff_0000;
/// Packet made by the firewall, which is not filtered (`PF_MARK_GENERATED`).
pub const GENERATED: u32 = 0x8000_0000;
/// Shift of the priority (3 bits), stored xor [`DEFAULT_PRIO`] so that mark 0 is the default.
pub const PRIO_SHIFT: u32 = 28;
/// Bits of the priority (`PF_MARK_PRIO_MASK`).
pub const PRIO_MASK: u32 = 0x7000_0000;
/// Datagram reassembled from fragments (`PF_MARK_REASSEMBLED`).
pub const REASSEMBLED: u32 = 0x0800_0000;
/// Shift of the tag (11 bits).
pub const TAG_SHIFT: u32 = 16;
/// Bits of the tag (`PF_MARK_TAG_MASK`).
pub const TAG_MASK: u32 = 0x07ff_0000;
/// Priority of packets without one (`PF_DEFAULT_PRIO`).
pub const DEFAULT_PRIO: u8 = 3;
/// Highest tag (`PF_MAX_TAG`).
pub const MAX_TAG: u16 = 2047;

/// Mark of a diverted packet, which a policy rule delivers locally (`PF_MARK_DIVERTED`).
pub const DIVERTED: u32 = 0x8003_0000;
/// Bits that the policy rule compares with [`DIVERTED`].
pub const DIVERTED_MASK: u32 = 0x87ff_0000;
/// Routing table that the policy rule looks up (`PF_DIVERT_TABLE`).
pub const DIVERT_TABLE: u32 = 28774;

/// Returns the mark of a packet with this tag (0 for none) and priority (0 to 7).
pub fn compose(tag: u16, prio: u8) -> u32 {
    (u32::from(tag) << TAG_SHIFT & TAG_MASK)
        | (u32::from(prio ^ DEFAULT_PRIO) << PRIO_SHIFT & PRIO_MASK)
}

/// Returns the tag and the priority of a mark.
pub fn split(mark: u32) -> (u16, u8) {
    let tag = (mark & TAG_MASK) >> TAG_SHIFT;
    let prio = (mark & PRIO_MASK) >> PRIO_SHIFT;
    (tag as u16, prio as u8 ^ DEFAULT_PRIO)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_mark_is_no_tag_and_the_default_priority() {
        assert_eq!(split(0), (0, DEFAULT_PRIO));
        assert_eq!(compose(0, DEFAULT_PRIO), 0);
    }

    #[test]
    fn marks_survive_the_round_trip() {
        for tag in [0, 1, 77, MAX_TAG] {
            for prio in 0..8 {
                assert_eq!(split(compose(tag, prio)), (tag, prio));
            }
        }
    }
}
