//! A dropped packet, as a line and as JSON.

use std::fmt;

use chrono::{DateTime, TimeZone, Utc};
use serde_json::{Value, json};
use skipstep_abi::LogRecord;
use skipstep_abi::verdict::{action, direction};
use skipstep_kernel::DroppedPacket;
use skipstep_kernel::clock::wall_time;
use skipstep_ruleset::{Direction, Reason};
use skipstep_wire::print;

use super::rules::{DecidingRule, RulesInForce};
use crate::log::record::time_text;
use crate::output::without_controls;

/// The reason for which a packet is dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cause {
    /// A reason with a counter.
    Reason(Reason),
    /// The packet passes, but it cannot be sent.
    Undelivered,
}

impl Cause {
    /// Returns all reasons, in the order of their numbers.
    pub fn all() -> impl Iterator<Item = Cause> {
        Reason::ALL.into_iter().map(Cause::Reason).chain([Cause::Undelivered])
    }

    /// Returns the name on the command line and in the output.
    pub fn name(self) -> &'static str {
        match self {
            Cause::Reason(reason) => reason.name(),
            Cause::Undelivered => "undelivered",
        }
    }

    /// Returns the reason of a record, or `None` if its number is unknown.
    fn of(record: &LogRecord) -> Option<Cause> {
        match (Reason::from_code(record.reason)?, record.action) {
            (Reason::Match, action::PASS) => Some(Cause::Undelivered),
            (reason, _) => Some(Cause::Reason(reason)),
        }
    }
}

/// A dropped packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dropped {
    /// Time of the drop.
    pub time: DateTime<Utc>,
    /// Reason of the drop.
    pub cause: Cause,
    /// Direction seen from the filter.
    pub direction: Direction,
    /// Name of the interface, `?` if the filter did not know it yet.
    pub interface: String,
    /// The rule that decided, or that made the packet's state; `None` if there is none, or if it is
    /// not in force any more.
    pub rule: Option<DecidingRule>,
    /// Length of the packet in bytes.
    pub length: u32,
    /// False if `packet` begins with the link header.
    pub is_ip: bool,
    /// Bytes of the packet, from the IP header on.
    pub packet: Vec<u8>,
}

impl Dropped {
    /// Reads the record of a packet. Returns `None` if it has an unknown reason.
    pub fn new(packet: &DroppedPacket, rules: &RulesInForce) -> Option<Dropped> {
        let record = &packet.record;
        let name = record.ifname.split(|byte| *byte == 0).next().unwrap_or_default();
        let time = wall_time(record.time);
        Some(Dropped {
            time: DateTime::from_timestamp(time.as_secs() as i64, time.subsec_nanos())?,
            cause: Cause::of(record)?,
            direction: match record.direction {
                direction::OUT => Direction::Out,
                _ => Direction::In,
            },
            interface: match name {
                [] => "?".to_owned(),
                name => String::from_utf8_lossy(name).into_owned(),
            },
            rule: rules.deciding(record),
            length: record.wirelen,
            is_ip: record.family != 0,
            packet: packet.data.clone(),
        })
    }

    /// Returns the properties that similar packets share.
    pub fn kind(&self) -> Kind {
        Kind { cause: self.cause, rule: self.rule.clone(), interface: self.interface.clone() }
    }

    /// Describes the packet as one line.
    pub fn described_packet(&self) -> String {
        match self.is_ip {
            true => print::line(&self.packet),
            false => print::frame(&self.packet),
        }
    }

    fn direction_name(&self) -> &'static str {
        match self.direction {
            Direction::In => "in",
            Direction::Out => "out",
        }
    }

    /// Prints the packet as a line, with the time in `zone`.
    pub fn line<Z: TimeZone>(&self, zone: &Z) -> String
    where
        Z::Offset: fmt::Display,
    {
        without_controls(&format!(
            "{} {} block {} on {}{}: {}",
            time_text(&self.time, zone),
            self.cause.name(),
            self.direction_name(),
            self.interface,
            rule_text(self.rule.as_ref()),
            self.described_packet()
        ))
    }

    /// Returns the packet as an object. `explanation` is the result of the model.
    pub fn json(&self, explanation: Option<Value>) -> Value {
        let mut object = self.kind().json(&self.time, 1);
        object["direction"] = json!(self.direction_name());
        object["length"] = json!(self.length);
        object["packet"] = json!(self.described_packet());
        object["explanation"] = json!(explanation);
        object
    }
}

/// The properties that similar dropped packets share.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Kind {
    /// Reason of the drops.
    pub cause: Cause,
    /// The rule that decided.
    pub rule: Option<DecidingRule>,
    /// Name of the interface.
    pub interface: String,
}

impl Kind {
    /// Prints a line for `more` packets that were not printed.
    pub fn line<Z: TimeZone>(&self, time: &DateTime<Utc>, more: u64, zone: &Z) -> String
    where
        Z::Offset: fmt::Display,
    {
        without_controls(&format!(
            "{} {} block on {}{}: {more} more like this in the last second",
            time_text(time, zone),
            self.cause.name(),
            self.interface,
            rule_text(self.rule.as_ref())
        ))
    }

    /// Returns an object for `count` packets.
    pub fn json(&self, time: &DateTime<Utc>, count: u64) -> Value {
        let rule = self.rule.as_ref();
        json!({
            "time": time.timestamp_micros() as f64 / 1e6,
            "count": count,
            "reason": self.cause.name(),
            "direction": null,
            "interface": self.interface,
            "anchor": rule.map(|rule| &rule.id.anchor),
            "rule": rule.map(|rule| rule.id.number),
            "rule_id": rule.map(|rule| &rule.identity),
            "file": rule.and_then(|rule| rule.file.as_deref()),
            "line": rule.map(|rule| rule.line),
            "labels": rule.map_or(&[][..], |rule| &rule.labels),
            "length": null,
            "packet": null,
            "explanation": null,
        })
    }
}

fn rule_text(rule: Option<&DecidingRule>) -> String {
    rule.map(|rule| format!(" rule {rule}")).unwrap_or_default()
}

#[cfg(test)]
pub(super) mod tests {
    use skipstep_abi::LogRecord;
    use skipstep_wire::build::{Tcp, ipv4};
    use zerocopy::FromZeros;

    use super::*;

    /// Returns a SYN to port 22 on wan0 that rule 0 of the rules below has blocked.
    pub fn packet(reason: Reason, rule: i32) -> DroppedPacket {
        let mut record = LogRecord::new_zeroed();
        record.ifname[..4].copy_from_slice(b"wan0");
        (record.rule, record.anchor_rule) = (rule, -1);
        (record.family, record.direction) = (skipstep_abi::INET, direction::IN);
        (record.reason, record.action) = (reason as u8, action::BLOCK);
        let syn = Tcp::new(4000, 22).flags("S").seq(7);
        let data = ipv4([10, 0, 0, 1], [10, 0, 0, 2]).tcp(&syn);
        record.wirelen = data.len() as u32;
        DroppedPacket { record, data }
    }

    pub fn rules() -> RulesInForce {
        RulesInForce::from_text("\nblock in proto tcp to port 22 label ssh\n")
    }

    pub fn dropped(packet: &DroppedPacket) -> Dropped {
        let time = DateTime::from_timestamp(1_700_000_000, 5_000).unwrap();
        Dropped { time, ..Dropped::new(packet, &rules()).unwrap() }
    }

    #[test]
    fn a_packet_is_a_line() {
        assert_eq!(
            dropped(&packet(Reason::Match, 0)).line(&Utc),
            "2023-11-14 22:13:20.000005 match block in on wan0 rule 0 (pf.conf:2, label ssh): \
             tcp 10.0.0.1:4000 > 10.0.0.2:22 S seq 7 win 65535"
        );
        let line = dropped(&packet(Reason::Short, -1)).line(&Utc);
        assert!(line.contains(" short block in on wan0: tcp 10.0.0.1:4000 > "), "{line}");
    }

    #[test]
    fn a_packet_that_passed_is_undelivered() {
        let mut passed = packet(Reason::Match, 0);
        passed.record.action = action::PASS;
        assert_eq!(dropped(&passed).cause, Cause::Undelivered);
        passed.record.reason = Reason::NoRoute as u8;
        assert_eq!(dropped(&passed).cause, Cause::Reason(Reason::NoRoute));
    }

    #[test]
    fn a_frame_without_an_ip_packet_has_link_addresses() {
        let mut hidden = packet(Reason::LinkHeader, -1);
        hidden.record.family = 0;
        hidden.record.ifname = [0; 16];
        hidden.data = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x88, 0x47, 0, 0];
        let line = dropped(&hidden).line(&Utc);
        assert!(line.contains(" link-header block in on ?: frame 02:00:00:00:00:02 > "), "{line}");
    }

    #[test]
    fn packets_that_are_not_printed_have_a_line() {
        let one = dropped(&packet(Reason::Match, 0));
        assert_eq!(
            one.kind().line(&one.time, 37, &Utc),
            "2023-11-14 22:13:20.000005 match block on wan0 rule 0 (pf.conf:2, label ssh): \
             37 more like this in the last second"
        );
        assert_eq!(one.kind().json(&one.time, 37)["count"], 37);
        assert_eq!(one.json(None)["labels"], json!(["ssh"]));
        assert_eq!(one.json(None)["rule_id"], "ssh");
    }

    #[test]
    fn names_do_not_control_the_terminal() {
        let mut one = dropped(&packet(Reason::Match, 0));
        one.interface = "w\u{1b}c".to_owned();
        one.rule.as_mut().unwrap().labels = vec!["\u{1b}[2Jssh\n".to_owned()];
        for line in [one.line(&Utc), one.kind().line(&one.time, 2, &Utc)] {
            assert!(line.contains(" on w?c rule 0 (pf.conf:2, label ?[2Jssh?): "), "{line}");
        }
    }

    #[test]
    fn an_unknown_reason_is_skipped() {
        let mut unknown = packet(Reason::Match, 0);
        unknown.record.reason = 200;
        assert_eq!(Dropped::new(&unknown, &rules()), None);
    }
}
