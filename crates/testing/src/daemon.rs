//! skipstepd's work on fragments, done by the test with the same code and without delay.

use skipstep_abi as abi;
use skipstep_abi::handoff::{HANDOFF_NO_REASON, handoff_order};
use skipstep_kernel::Result;
use skipstep_kernel::device::{self, FragmentCounters};
use skipstep_model::{Carried, Fate, ForwardRoute, Forwarded, Packet, Verdict};
use skipstep_reassembly::{FragmentFate, Piece, refragment};
use skipstep_ruleset::{Direction, Reason};
use skipstep_wire::checksum;
use zerocopy::IntoBytes;

use crate::arrival;
use crate::hook::Hook;
use crate::network::LINK_ADDRESS;
use crate::passage::Passage;

/// Nonce of the frames.
const NONCE: u64 = 0x0706_0504_0302_0100;

impl Passage<'_> {
    /// Adds a fragment to the others of its datagram.
    pub(crate) fn reassemble(&mut self, packet: &Packet) -> Result<Fate> {
        let outcome = match Piece::parse(&packet.bytes, self.host.rdomain(&packet.interface)) {
            Some(piece) => self.machine.fragments.add(piece, self.machine.test.now),
            None => FragmentFate::Dropped(Some(Reason::Fragment)),
        };
        match outcome {
            FragmentFate::Queued => Ok(Fate::unjudged(Verdict::Consumed, Carried::default())),
            FragmentFate::Dropped(reason) => self.refuse(packet, reason),
            FragmentFate::Complete(whole) => {
                let mut packet = Packet { bytes: whole.bytes, ..packet.clone() };
                packet.carried.fragmentation = whole.fragmentation;
                let mut fate = self.datagram(&packet)?;
                if fate.verdict == Verdict::Pass {
                    checksum::fix_ipv4_header(fate.out.get_or_insert(packet.bytes));
                }
                Ok(fate)
            }
        }
    }

    /// Returns a fragment to the data plane, to be dropped.
    fn refuse(&mut self, packet: &Packet, reason: Option<Reason>) -> Result<Fate> {
        let ifindex = arrival::index_of(self.host, &packet.interface)?;
        let handoff = abi::Handoff {
            nonce: NONCE,
            ifindex,
            order: handoff_order::REFUSED,
            direction: match packet.direction {
                Direction::In => abi::verdict::direction::IN,
                Direction::Out => abi::verdict::direction::OUT,
            },
            reason: reason.map_or(HANDOFF_NO_REASON, |reason| reason as u8),
            ..abi::Handoff::default()
        };
        let mut given_back = packet.bytes.clone();
        given_back.extend(handoff.as_bytes());
        let context = arrival::context(packet, self.host, self.names)?;
        let frame = (&arrival::link_header_to(LINK_ADDRESS)[..], &given_back[..]);
        // a test run is on the packet's interface, so this interface stands for the device
        // meanwhile
        device::publish(self.maps, (ifindex, NONCE), FragmentCounters::default(), 0)?;
        let run = self.machine.run(self.programs, Hook::Return, frame, &context);
        device::publish(self.maps, (0, 0), FragmentCounters::default(), 0)?;
        let run = run?;
        let outcome = self.outcome()?;
        self.fate(packet, &run, &outcome)
    }

    /// Fragments a forwarded IPv6 datagram again. For a datagram of this host the IP output would
    /// do so: pf runs before it, the hook after it.
    pub(crate) fn fragment_again(&self, packet: &Packet, mut fate: Fate) -> Fate {
        let how = packet.carried.fragmentation.filter(|_| packet.received_on.is_some());
        let Some(how) = how else {
            return fate;
        };
        let bytes = fate.out.take();
        let id = self.machine.test.random.min(u32::MAX - 1);
        match refragment(bytes.as_deref().unwrap_or(&packet.bytes), &how, id) {
            None => fate.verdict = Verdict::Drop,
            Some(fragments) => {
                fate.verdict = Verdict::Consumed;
                let forward = |bytes| Forwarded { route: ForwardRoute::Forward, bytes };
                fate.forwarded.extend(fragments.into_iter().map(forward));
            }
        }
        fate
    }
}
