//! What skipstepd does with fragments, done by the test: with the same code, but at once.

use skipstep_abi as abi;
use skipstep_abi::handoff::{HANDOFF_MAGIC, HANDOFF_NO_REASON, handoff_order};
use skipstep_reassembly::{Outcome, Piece, Reassembler, refragment, settle_checksum};
use skipstep_ruleset::{Direction, Reason, Ruleset, Timeout};
use skipstep_scenario::engine::{Carried, Decision, Fate, Forwarded, TestPacket, Verdict, Way};
use zerocopy::IntoBytes;

use super::{LONGEST_PACKET, TestEngine, arrival, no_network};
use crate::error::Result;

/// One with the limits of `ruleset`.
pub(super) fn reassembler(ruleset: &Ruleset) -> Reassembler {
    let options = &ruleset.options;
    Reassembler::new(options.limits.frags as usize, options.timeouts.get(Timeout::Frag))
}

impl TestEngine {
    /// Puts a fragment to the others of its datagram.
    pub(super) fn hold(&mut self, packet: &TestPacket) -> Result<Fate> {
        let outcome = match self.piece(packet) {
            Some(piece) => self.fragments.add(piece, self.test.now),
            None => Outcome::Dropped(Some(Reason::Fragment)),
        };
        match outcome {
            Outcome::Held => Ok(held()),
            Outcome::Dropped(reason) => self.refuse(packet, reason),
            Outcome::Whole(whole) => {
                let mut packet = TestPacket { bytes: whole.bytes, ..packet.clone() };
                packet.carried.fragmentation = whole.fragmentation;
                let mut fate = self.try_datagram(&packet)?;
                if fate.verdict == Verdict::Pass {
                    settle_checksum(fate.out.get_or_insert(packet.bytes));
                }
                Ok(fate)
            }
        }
    }

    fn piece(&self, packet: &TestPacket) -> Option<Piece> {
        let (host, _) = self.network.as_ref()?;
        Piece::parse(&packet.bytes, host.rdomain(&packet.interface))
    }

    /// Hands a fragment back that is to be dropped.
    fn refuse(&mut self, packet: &TestPacket, reason: Option<Reason>) -> Result<Fate> {
        let (_, network) = self.network.as_ref().ok_or_else(no_network)?;
        let handoff = abi::Handoff {
            magic: HANDOFF_MAGIC,
            ifindex: arrival::index_of(network.host(), &packet.interface)?,
            order: handoff_order::REFUSED,
            direction: match packet.direction {
                Direction::In => abi::verdict::direction::IN,
                Direction::Out => abi::verdict::direction::OUT,
            },
            reason: reason.map_or(HANDOFF_NO_REASON, |reason| reason as u8),
            ..abi::Handoff::default()
        };
        let mut frame = arrival::frame(&packet.bytes);
        frame.extend(handoff.as_bytes());
        let context = arrival::context(packet, network.host(), &self.memory.names)?;
        let run = self.programs.come_back.run_packet(&frame, &context, 1)?;
        let outcome = self.outcome()?;
        self.fate(packet, &run, &outcome)
    }

    /// Makes fragments of an IPv6 datagram that is forwarded. One that was made here the IP output
    /// would have fragmented: pf is in front of it, the hook behind it.
    pub(super) fn fragment_again(&self, packet: &TestPacket, mut fate: Fate) -> Fate {
        let how = packet.carried.fragmentation.filter(|_| packet.received_on.is_some());
        let Some(how) = how else {
            return fate;
        };
        let bytes = fate.out.take();
        let id = self.test.random.min(u32::MAX - 1);
        match refragment(bytes.as_deref().unwrap_or(&packet.bytes), &how, id) {
            None => fate.verdict = Verdict::Drop,
            Some(fragments) => {
                fate.verdict = Verdict::Consumed;
                let forward = |bytes| Forwarded { way: Way::Forward, bytes };
                fate.forwarded.extend(fragments.into_iter().map(forward));
            }
        }
        fate
    }

    /// Whether the datagram that a fragment may complete is short enough for a test run.
    pub(super) fn could_run_datagram(&self, packet: &TestPacket) -> bool {
        let piece = self.piece(packet).filter(|_| self.reassembles);
        match piece.map(|piece| self.fragments.clone().add(piece, self.test.now)) {
            Some(Outcome::Whole(whole)) => whole.bytes.len() <= LONGEST_PACKET,
            _ => true,
        }
    }
}

/// The fate of a fragment that waits for others.
fn held() -> Fate {
    Fate {
        verdict: Verdict::Consumed,
        decision: Decision::None,
        anchor_rule: None,
        reason: Reason::Match,
        counted: Vec::new(),
        state: None,
        out: None,
        replies: Vec::new(),
        forwarded: Vec::new(),
        carried: Carried::default(),
        log: Vec::new(),
    }
}
