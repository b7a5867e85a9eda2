//! Fragments under `set reassemble yes`. They wait until their datagram is complete, which is then
//! filtered in their place. A forwarded IPv6 datagram leaves in fragments of the size that it had
//! (pf-semantics section 12).

use skipstep_reassembly::{Counters, FragmentFate, Piece, refragment};
use skipstep_ruleset::{Direction, Family, Reason, Timeout};
use skipstep_wire::checksum;

use crate::evaluation::{Context, Question};
use crate::fate::{Fate, ForwardRoute, Forwarded, Packet, Verdict};
use crate::filter::untouched;
use crate::firewall::Firewall;
use crate::journal::Journal;
use crate::normalize;
use crate::packet::Descriptor;
use crate::reply::Undelivered;
use crate::rules;
use crate::trace::Stage;

impl Firewall {
    /// Returns true if a fragment waits for the other fragments of its datagram.
    pub(crate) fn waits(
        &mut self,
        input: &Packet,
        packet: &Descriptor,
        journal: &mut Journal,
    ) -> bool {
        let by_rule = self.ruleset.legacy_rules.iter().any(|old| old.leave_fragments);
        if !self.ruleset.options.reassemble || !by_rule {
            return self.ruleset.options.reassemble;
        }
        let Firewall { ruleset, rulebook, world, states, pools, endpoints, .. } = self;
        let question = Question { ruleset, rulebook, world, input, packet, mapping: None };
        let Firewall { sources, limiters, counters, .. } = self;
        let held = Vec::new();
        let context = Context { states, pools, endpoints, sources, held, limiters, counters };
        !rules::leave_fragment(&question, context, journal)
    }

    /// Stores a fragment, or filters the datagram that it completes.
    pub(crate) fn reassemble(
        &mut self,
        input: &Packet,
        mut fragment: Descriptor,
        journal: &mut Journal,
    ) -> Fate {
        if let Err(reason) = normalize::fragmentation(&mut fragment, &self.ruleset.options) {
            return self.refuse_fragment(input, fragment, Some(reason), journal);
        }
        let Some(piece) = Piece::parse(&fragment.bytes, fragment.rdomain) else {
            return self.refuse_fragment(input, fragment, Some(Reason::Fragment), journal);
        };
        match self.fragments.add(piece, self.world.now) {
            FragmentFate::Queued => {
                journal.tracer.record(|| Stage::Held);
                Fate { verdict: Verdict::Consumed, ..untouched(input) }
            }
            FragmentFate::Dropped(reason) => self.refuse_fragment(input, fragment, reason, journal),
            FragmentFate::Complete(whole) => {
                journal.tracer.record(|| Stage::Reassembled(whole.bytes.len()));
                let mut packet = Packet { bytes: whole.bytes, ..input.clone() };
                packet.carried.fragmentation = whole.fragmentation;
                let mut fate = match self.describe(&packet) {
                    Ok(datagram) => self.filter(&packet, datagram, journal),
                    Err(malformed) => self.refuse(&packet, malformed, journal),
                };
                if fate.verdict == Verdict::Pass {
                    checksum::fix_ipv4_header(fate.out.get_or_insert(packet.bytes));
                }
                fate
            }
        }
    }

    /// Splits a forwarded packet that passes into fragments of the size that it came in. If these
    /// are too long for the link, drops the packet and notifies its sender.
    // Differs from OpenBSD: linux.md, "Fragments"
    pub(crate) fn fragment_again(
        &self,
        input: &Packet,
        family: Family,
        fate: &mut Fate,
        journal: &mut Journal,
    ) {
        let forwarded = input.direction == Direction::Out && input.received_on.is_some();
        let Some(how) = input
            .carried
            .fragmentation
            .filter(|_| forwarded && family == Family::Inet6 && fate.verdict == Verdict::Pass)
        else {
            return;
        };
        let bytes = fate.out.take();
        let mtu = self.world.interface(&input.interface).map_or(u32::MAX, |out| out.mtu);
        if how.longest() > mtu as usize {
            fate.verdict = Verdict::Drop;
            let about = self.describe(input).ok();
            fate.replies.extend(self.notify_sender(about, Undelivered::TooBig(mtu), journal));
            return;
        }
        let bytes = bytes.as_deref().unwrap_or(&input.bytes);
        match refragment(bytes, &how, self.world.draw(u32::MAX)) {
            None => fate.verdict = Verdict::Drop,
            Some(fragments) => {
                fate.verdict = Verdict::Consumed;
                let forward = |bytes| Forwarded { route: ForwardRoute::Forward, bytes };
                fate.forwarded.extend(fragments.into_iter().map(forward));
            }
        }
    }

    /// Returns the number of waiting fragments, and the counters of reassembly.
    pub fn fragments(&self) -> (usize, Counters) {
        (self.fragments.pieces(), self.fragments.counters())
    }

    /// Returns `set limit frags` and `set timeout frag`, the latter in seconds.
    pub(crate) fn fragment_limits(options: &skipstep_ruleset::Options) -> (usize, u32) {
        (options.limits.frags as usize, options.timeouts.get(Timeout::Frag))
    }
}
