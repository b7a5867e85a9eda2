//! A control connection as the guardian knows it, from the headers of its first two packets.

use std::net::SocketAddr;
use std::time::Instant;

use crate::sesame::connection::{EndReason, Finding};
use crate::sesame::segment::Segment;
use crate::sesame::watch::Watched;

/// The start of a connection, and its acceptance by the server. The guardian reads no payload.
#[derive(Debug)]
pub struct Handshake {
    client: SocketAddr,
    /// Sequence number of the client's SYN.
    syn: u32,
    is_accepted: bool,
}

impl Watched for Handshake {
    fn new(syn: &Segment) -> Handshake {
        Handshake { client: syn.from, syn: syn.sequence, is_accepted: false }
    }

    fn began_with(&self, syn: &Segment) -> bool {
        syn.from == self.client && syn.sequence == self.syn
    }

    fn is_established(&self) -> bool {
        self.is_accepted
    }

    fn segment(&mut self, segment: &Segment, _: Instant) -> Result<Vec<Finding>, EndReason> {
        if segment.end {
            return Err(EndReason::Ended);
        }
        let is_answer = segment.syn && segment.ack && segment.from != self.client;
        self.is_accepted |= is_answer && segment.acknowledgment == self.syn.wrapping_add(1);
        Ok(vec![])
    }
}
