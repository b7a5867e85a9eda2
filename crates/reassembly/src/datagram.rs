//! The fragments of one datagram, and the handling of overlaps.

use std::net::IpAddr;

use skipstep_ruleset::Reason;

use crate::{Fragmentation, Piece, Reassembled};

/// Size in bytes of the sections into which a datagram is divided to limit its fragments (pf's
/// `PF_FRAG_ENTRY_OFFSET`).
const SECTION: usize = 4096;
/// Most fragments that may begin in one section (pf's `PF_FRAG_ENTRY_LIMIT`).
const FRAGMENTS_IN_SECTION: usize = 64;

/// Greatest length in bytes of an IPv4 packet, and of an IPv6 packet behind its fixed header.
const LONGEST: usize = 65_535;

/// An incomplete datagram.
#[derive(Debug, Clone)]
pub(crate) struct Datagram {
    /// Sorted by offset, without overlaps.
    pieces: Vec<Piece>,
    /// Length in bytes of the longest fragment's data, before overlaps were cut off.
    largest: usize,
}

/// The reason why a fragment does not fit into its datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Misfit {
    /// The fragment is dropped; the datagram stays. `None` if its data was there already.
    Piece(Option<Reason>),
    /// The fragment and the whole datagram are dropped.
    Datagram,
}

/// Number of fragments that one insertion removed and inserted.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Moved {
    pub removed: u64,
    pub inserted: u64,
}

impl Datagram {
    pub fn new(first: Piece) -> Self {
        Datagram { largest: first.data.len(), pieces: vec![first] }
    }

    pub fn pieces(&self) -> usize {
        self.pieces.len()
    }

    /// Inserts a fragment. In IPv4 the data that came first wins; in IPv6 an overlap drops the
    /// datagram (RFC 5722).
    ///
    /// # Errors
    /// Fails if the fragment contradicts the end of the datagram, or if a section has too many
    /// fragments. Also fails on any overlap in IPv6, and in IPv4 if all data was there already.
    pub fn insert(&mut self, mut piece: Piece, moved: &mut Moved) -> Result<(), Misfit> {
        let ipv6 = matches!(piece.key.source, IpAddr::V6(_));
        let misfit = if ipv6 { Misfit::Datagram } else { Misfit::Piece(Some(Reason::Fragment)) };
        self.largest = self.largest.max(piece.data.len());
        if self.contradicts_the_end(&piece) {
            return Err(misfit);
        }
        let at = self.pieces.partition_point(|other| other.offset <= piece.offset);
        if let Some(before) = at.checked_sub(1).map(|at| &self.pieces[at])
            && before.end() > piece.offset
        {
            if ipv6 {
                return Err(misfit);
            }
            let overlap = before.end() - piece.offset;
            if overlap >= piece.data.len() {
                return Err(Misfit::Piece(None));
            }
            piece.cut_head(overlap);
        }
        while let Some(after) = self.pieces.get_mut(at).filter(|after| piece.end() > after.offset) {
            if ipv6 {
                return Err(misfit);
            }
            moved.removed += 1;
            let overlap = piece.end() - after.offset;
            if overlap < after.data.len() {
                after.cut_head(overlap);
                // the later offset may be in another section
                if self.is_crowded_at(self.pieces[at].offset, FRAGMENTS_IN_SECTION) {
                    return Err(Misfit::Datagram);
                }
                moved.inserted += 1;
                break;
            }
            self.pieces.remove(at);
        }
        if self.is_crowded_at(piece.offset, FRAGMENTS_IN_SECTION - 1) {
            return Err(Misfit::Datagram);
        }
        self.pieces.insert(at, piece);
        moved.inserted += 1;
        Ok(())
    }

    /// True if the fragment's end contradicts the known end of the datagram: a datagram has one
    /// last fragment, and no data beyond it.
    fn contradicts_the_end(&self, piece: &Piece) -> bool {
        let Some(last) = self.pieces.last() else {
            return false;
        };
        let (end, known) = (piece.end(), last.end());
        let beyond = if last.more {
            end == known && !piece.more
        } else {
            end > known || end == known && piece.more
        };
        beyond || end < known && !piece.more
    }

    fn is_crowded_at(&self, offset: usize, most: usize) -> bool {
        let same = |piece: &&Piece| piece.offset / SECTION == offset / SECTION;
        self.pieces.iter().filter(same).count() > most
    }

    pub fn is_complete(&self) -> bool {
        let mut end = 0;
        let joined = self.pieces.iter().all(|piece| {
            let joined = piece.offset == end;
            end = piece.end();
            joined
        });
        joined && self.pieces.last().is_some_and(|last| !last.more)
    }

    /// Returns the complete packet.
    ///
    /// # Errors
    /// Fails with `Short` if the packet would be longer than 65,535 bytes, and with `Fragment` if
    /// there is no fragment.
    pub fn join(self) -> Result<Reassembled, Reason> {
        let total: usize = self.pieces.iter().map(|piece| piece.data.len()).sum();
        let first = self.pieces.first().ok_or(Reason::Fragment)?;
        let (mut bytes, next_header) = (first.header.clone(), first.next_header);
        let header_len = bytes.len();
        bytes.reserve(total);
        self.pieces.iter().for_each(|piece| bytes.extend(&piece.data));
        match next_header {
            None => {
                let length = u16::try_from(header_len + total).map_err(|_| Reason::Short)?;
                bytes[2..4].copy_from_slice(&length.to_be_bytes());
                bytes[6..8].fill(0);
                Ok(Reassembled { bytes, longest: header_len + self.largest, fragmentation: None })
            }
            Some((at, protocol)) => {
                let length = header_len - 40 + total;
                let length = u16::try_from(length.min(LONGEST + 1)).map_err(|_| Reason::Short)?;
                bytes[4..6].copy_from_slice(&length.to_be_bytes());
                bytes[at] = protocol;
                let largest = self.largest;
                let how = Fragmentation { header_len, next_header_at: at, largest };
                Ok(Reassembled { bytes, longest: how.longest(), fragmentation: Some(how) })
            }
        }
    }
}

/// True if no datagram can contain the fragment. Its data is empty, or ends beyond the longest
/// packet, or has a length that is no multiple of 8 although more fragments follow.
pub(crate) fn is_impossible(piece: &Piece) -> bool {
    piece.data.is_empty()
        || piece.more && !piece.data.len().is_multiple_of(8)
        || piece.end() > LONGEST
}
