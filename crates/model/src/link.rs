//! The link header in front of a packet, as far as the filter uses it.

/// A VLAN tag of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VlanTag {
    /// EtherType of the tag: 0x8100 (802.1Q), 0x88a8 (802.1ad) or 0x9100 (before 802.1ad).
    pub ether_type: u16,
    /// VLAN identifier; 0 for a tag that carries a priority alone.
    pub id: u16,
}

/// A header that hides an IP packet from the filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hiding {
    /// An 802.2 header with SNAP.
    Snap,
    /// An MPLS label (RFC 3032).
    Label,
}

/// The link header of a frame; the default is an untagged frame for this host.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LinkHeader {
    /// VLAN tags, the outermost first.
    pub tags: Vec<VlanTag>,
    /// Header between the tags and the packet.
    pub hiding: Option<Hiding>,
    /// True if the frame is for the link address of another station.
    pub for_other_station: bool,
}

impl LinkHeader {
    /// Maximum number of VLAN tags that the filter parses.
    // Differs from OpenBSD: linux.md, "VLAN tags"
    pub const MAX_TAGS: usize = 3;

    /// Returns true if the filter cannot parse the headers in front of the packet.
    pub(crate) fn hides_packet(&self) -> bool {
        self.hiding == Some(Hiding::Snap) || self.tags.len() > Self::MAX_TAGS
    }

    /// Returns true if the packet has an MPLS label, which another station may remove.
    pub(crate) fn has_label(&self) -> bool {
        self.hiding == Some(Hiding::Label) && self.tags.len() <= Self::MAX_TAGS
    }
}
