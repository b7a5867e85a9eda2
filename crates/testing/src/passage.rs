//! The passage of a packet through the data plane, and its fate. The test does the work of the
//! machine around the filter: the daemon's part is in `daemon`, the network's in `route`.

use skipstep_abi as abi;
use skipstep_abi::pool::route_kind;
use skipstep_abi::rule::divert_kind;
use skipstep_abi::status::decision;
use skipstep_abi::verdict::verdict;
use skipstep_classifier::Names;
use skipstep_kernel::Result;
use skipstep_kernel::object::{Maps, Programs};
use skipstep_kernel::program::Run;
use skipstep_model::{Carried, Decision, Diverted, Fate, LogRecord, Packet, SocketOwner, Verdict};
use skipstep_ruleset::interface::Host;
use skipstep_ruleset::{Action, Direction, Owner, Reason, RuleId};

use crate::hook::Hook;
use crate::machine::{Machine, NOBODY};
use crate::{arrival, copies};

/// Return value of a program that drops a packet.
pub(crate) const TCX_DROP: u32 = 2;
/// Mark beside a packet that the data plane has sent to its egress interface (`ROUTED_MAGIC`).
const ROUTED_MAGIC: u32 = 0x7066_7274;

/// The surroundings of a packet.
pub(crate) struct Passage<'a> {
    pub maps: &'a Maps,
    pub programs: &'a Programs,
    pub host: &'a Host,
    pub names: &'a Names,
    pub machine: &'a mut Machine,
}

impl Passage<'_> {
    /// Runs one packet through the filter.
    ///
    /// # Errors
    /// Fails if a test run, a map or the network fails.
    pub fn packet(&mut self, packet: &Packet) -> Result<Fate> {
        match packet.carried.fragmentation {
            Some(_) => self.datagram(packet),
            None => {
                self.note_longest_fragment(packet);
                self.marked(packet, 0, false)
            }
        }
    }

    /// Runs one datagram that arrived in fragments through the filter.
    ///
    /// # Errors
    /// Fails if a test run, a map or the network fails.
    pub fn datagram(&mut self, packet: &Packet) -> Result<Fate> {
        self.note_longest_fragment(packet);
        self.marked(packet, abi::mark::REASSEMBLED, false)
    }

    /// Writes the length of the packet's longest fragment for the programs. The packet's hash
    /// carries this length, and a test run cannot set the hash.
    fn note_longest_fragment(&mut self, packet: &Packet) {
        let longest = packet.carried.fragmentation.map_or(0, |how| how.longest() as u32);
        if self.machine.test.longest_fragment != longest {
            self.machine.test.longest_fragment = longest;
            self.machine.publish_settings();
        }
    }

    /// Runs one packet with a mark through the filter. `routed` is true if the data plane has sent
    /// the packet to its egress interface.
    ///
    /// # Errors
    /// Fails if a test run, a map or the network fails.
    pub fn marked(&mut self, packet: &Packet, mark: u32, routed: bool) -> Result<Fate> {
        let owner = packet.owner.unwrap_or(SocketOwner { uid: NOBODY, gid: NOBODY });
        let test = &mut self.machine.test;
        if (test.uid, test.gid) != (owner.uid, owner.gid) {
            (test.uid, test.gid) = (owner.uid, owner.gid);
            self.machine.publish_settings();
        }
        let mut context = arrival::context(packet, self.host, self.names)?;
        context.mark |= mark;
        if routed {
            context.cb[1] = ROUTED_MAGIC;
        }
        let hook = Hook::Filter(packet.direction);
        let link_header = arrival::link_header(packet, self.host);
        let frame = (&link_header[..], &packet.bytes[..]);
        let run = self.machine.run(self.programs, hook, frame, &context)?;
        let outcome = self.outcome()?;
        match outcome.verdict {
            verdict::HELD => self.reassemble(packet),
            verdict::REFRAGMENT => {
                let mut fate = self.fate(packet, &run, &outcome)?;
                if outcome.route == route_kind::DUP_TO {
                    let after = after(packet, &run);
                    fate = self.carry_on(packet, after, &outcome, fate)?;
                }
                Ok(self.fragment_again(packet, fate))
            }
            // a packet that crosses to the other family is filtered once
            verdict::CROSSED => self.fate(packet, &run, &outcome),
            _ if outcome.route != route_kind::NO => {
                let fate = self.fate(packet, &run, &outcome)?;
                let after = after(packet, &run);
                self.carry_on(packet, after, &outcome, fate)
            }
            _ => self.fate(packet, &run, &outcome),
        }
    }

    /// Returns the fate of a packet after its program has run.
    ///
    /// # Errors
    /// Fails if the log or the packet socket cannot be read.
    pub fn fate(&mut self, packet: &Packet, run: &Run, outcome: &abi::Outcome) -> Result<Fate> {
        let after = after(packet, run);
        let passed = matches!(outcome.verdict, verdict::PASS | verdict::REFRAGMENT);
        let mut carried = arrival::carried(run, self.names);
        carried.fragmentation = packet.carried.fragmentation.filter(|_| passed);
        carried.diverted = match outcome.divert {
            divert_kind::TO => Some(Diverted::To),
            divert_kind::REPLY => Some(Diverted::Reply),
            _ => None,
        };
        carried.rtable = match outcome.rtable {
            0 => packet.carried.rtable,
            number => u32::from(number) - 1,
        };
        if outcome.divert == divert_kind::PACKET {
            let diverted = Some(Diverted::Packet(u16::from_be_bytes(outcome.divert_port)));
            carried = Carried { diverted, ..Carried::default() };
        }
        Ok(Fate {
            verdict: match outcome.verdict {
                _ if passed => Verdict::Pass,
                verdict::CONSUMED | verdict::CROSSED => Verdict::Consumed,
                _ => Verdict::Drop,
            },
            decision: self.decided(outcome),
            anchor_rule: u32::try_from(outcome.anchor_rule).ok(),
            reason: Reason::from_code(outcome.reason).unwrap_or(Reason::Match),
            counted: counted(outcome),
            state: (outcome.state_id != u64::MAX).then_some(outcome.state_id),
            out: (passed && after != packet.bytes).then(|| after.to_vec()),
            replies: match outcome.verdict {
                verdict::REPLY => vec![after.to_vec()],
                verdict::CONSUMED => self.proxied(packet, run, outcome)?,
                _ => Vec::new(),
            },
            forwarded: match outcome.verdict {
                verdict::CROSSED => self.crossed(after, outcome),
                _ => Vec::new(),
            },
            carried,
            log: self.log_records(outcome)?,
        })
    }

    /// Returns the packets that were sent in place of a packet. The order is OpenBSD's: the SYN to
    /// the server comes last, the acknowledgment to the server first.
    fn proxied(&self, packet: &Packet, run: &Run, outcome: &abi::Outcome) -> Result<Vec<Vec<u8>>> {
        if run.returned == TCX_DROP {
            copies::forget()?;
            return Ok(Vec::new());
        }
        let mut sent = vec![after(packet, run).to_vec()];
        if outcome.copies != 0 {
            sent.extend(copies::sent_by(arrival::index_of(self.host, &packet.interface)?)?);
        }
        if packet.direction == Direction::In {
            sent.rotate_left(1);
        }
        Ok(sent)
    }

    /// Returns the result that the last program run has stored about its packet.
    ///
    /// # Errors
    /// Fails if the map cannot be read.
    pub fn outcome(&self) -> Result<abi::Outcome> {
        self.machine.outcome(self.maps)
    }

    fn log_records(&mut self, outcome: &abi::Outcome) -> Result<Vec<LogRecord>> {
        let mut records = Vec::new();
        if outcome.logged != 0 {
            self.machine.log.drain(|record| records.push(log_record(record, self.names)))?;
        }
        Ok(records)
    }

    fn decided(&self, outcome: &abi::Outcome) -> Decision {
        let anchor = self.names.anchors.name(outcome.anchor).unwrap_or_default();
        let rule = |number| RuleId::new(anchor, number);
        match outcome.decision {
            decision::NONE => Decision::None,
            decision::RULE => u32::try_from(outcome.rule)
                .map_or(Decision::Default, |number| Decision::Rule(rule(number))),
            decision::ORPHAN => Decision::OrphanState,
            _ => Decision::Default,
        }
    }
}

/// Returns the packet after the run; the program does not change the length of its link header.
fn after<'a>(packet: &Packet, run: &'a Run) -> &'a [u8] {
    let tags = arrival::length_of_tags(&packet.link);
    run.packet.get(arrival::LINK_HEADER + tags..).unwrap_or_default()
}

/// Returns each reason as often as it was counted, ascending.
fn counted(outcome: &abi::Outcome) -> Vec<Reason> {
    let times = Reason::ALL.iter().zip(outcome.counted);
    times.flat_map(|(reason, times)| std::iter::repeat_n(*reason, usize::from(times))).collect()
}

fn log_record(record: &abi::LogRecord, names: &Names) -> LogRecord {
    LogRecord {
        rule: u32::try_from(record.rule).ok(),
        anchor_rule: u32::try_from(record.anchor_rule).ok(),
        anchor: names.anchors.name(record.anchor).unwrap_or_default().to_owned(),
        reason: Reason::from_code(record.reason).unwrap_or(Reason::Match),
        action: match record.action {
            abi::verdict::action::PASS => Action::Pass,
            abi::verdict::action::BLOCK => Action::Block,
            _ => Action::Match,
        },
        to: record.log_to,
        uid: (record.uid != Owner::UNKNOWN).then_some(record.uid),
    }
}
