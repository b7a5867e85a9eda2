//! The pieces of one datagram, and what becomes of those that overlap.

use std::net::IpAddr;

use skipstep_ruleset::Reason;

use crate::{Fragmentation, Piece, Whole};

/// A datagram is looked at in stretches of this many bytes …
const STRETCH: usize = 4096;
/// … each of which may have so many pieces.
const PIECES_IN_STRETCH: usize = 64;

/// Longest length of an IP packet, and of the data of one behind an IPv6 header.
const LONGEST: usize = 65_535;

/// A datagram of which pieces are missing.
#[derive(Debug, Clone)]
pub(crate) struct Datagram {
    /// In the order of their place, without overlaps.
    pieces: Vec<Piece>,
    /// Length of the longest piece as it came.
    largest: usize,
}

/// Why a piece does not go into its datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Misfit {
    /// It is dropped, the datagram stays.
    Piece(Option<Reason>),
    /// It is dropped with the whole datagram.
    Datagram,
}

/// Pieces that were taken out and put in on the way.
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

    /// Puts a piece in. In IPv4 the data that came first win; in IPv6 an overlap condemns the
    /// datagram (RFC 5722).
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
                // it may stand in another stretch now
                if self.is_crowded_at(self.pieces[at].offset, PIECES_IN_STRETCH) {
                    return Err(Misfit::Datagram);
                }
                moved.inserted += 1;
                break;
            }
            self.pieces.remove(at);
        }
        if self.is_crowded_at(piece.offset, PIECES_IN_STRETCH - 1) {
            return Err(Misfit::Datagram);
        }
        self.pieces.insert(at, piece);
        moved.inserted += 1;
        Ok(())
    }

    /// There is one end, and nothing lies beyond it.
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
        let same = |piece: &&Piece| piece.offset / STRETCH == offset / STRETCH;
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

    /// The whole, or why it cannot be.
    pub fn join(self) -> Result<Whole, Reason> {
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
                Ok(Whole { bytes, longest: header_len + self.largest, fragmentation: None })
            }
            Some((at, protocol)) => {
                let length = header_len - 40 + total;
                let length = u16::try_from(length.min(LONGEST + 1)).map_err(|_| Reason::Short)?;
                bytes[4..6].copy_from_slice(&length.to_be_bytes());
                bytes[at] = protocol;
                let largest = self.largest;
                let how = Fragmentation { header_len, next_header_at: at, largest };
                Ok(Whole { bytes, longest: how.longest(), fragmentation: Some(how) })
            }
        }
    }
}

/// What no datagram can have: nothing in it, a place that is no multiple of 8 bytes for what
/// follows, or an end beyond the longest packet.
pub(crate) fn is_impossible(piece: &Piece) -> bool {
    piece.data.is_empty()
        || piece.more && !piece.data.len().is_multiple_of(8)
        || piece.end() > LONGEST
}
