//! Records of a log: OpenBSD's pflog header (`if_pflog.h`) and the first bytes of the packet.

use chrono::{DateTime, TimeZone, Utc};
use serde_json::{Value, json};
use skipstep_ruleset::Reason;
use skipstep_wire::print;

use skipstep_wire::pcap::{PFLOG_HEADER as HEADER, RecordHeader};

/// Number in the header for "no rule".
const NO_RULE: i32 = -1;
const UNKNOWN_UID: u32 = u32::MAX;
/// Most bytes of an anchor's name in the header.
const NAME_BYTES: usize = 15;

/// A logged packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Time of arrival.
    pub time: DateTime<Utc>,
    /// Number of the rule in the main rule set; `None` for the default rule.
    pub rule: Option<u32>,
    /// Name of the anchor (its last component) and number of the rule in it, if the rule is in an
    /// anchor.
    pub anchor: Option<(String, u32)>,
    /// Reason of the log entry, as named by `pfctl -si`; `unknown` for an unknown number.
    pub reason: &'static str,
    /// `pass`, `block`, `match`, or FreeBSD's `nat`, `binat`, `rdr`.
    pub action: &'static str,
    /// `in` or `out`.
    pub direction: &'static str,
    /// Name of the interface.
    pub interface: String,
    /// Owner of the packet's socket, with `log (user)`.
    pub uid: Option<u32>,
    /// User and process that loaded the rule.
    pub loaded_by: (u32, u32),
    /// Length of the packet in bytes, from the IP header on.
    pub length: u32,
    /// Captured bytes of the packet, from the IP header on.
    pub packet: Vec<u8>,
}

impl Record {
    /// Parses a record of a pcap file. Returns `None` if it is no pflog record.
    pub fn parse(pcap: &RecordHeader, bytes: &[u8]) -> Option<Record> {
        let (header, packet) = bytes.split_at_checked(HEADER)?;
        let name = |bytes: &[u8]| {
            let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
            String::from_utf8_lossy(&bytes[..end]).into_owned()
        };
        let number = |at: usize| Some(u32::from_le_bytes(header.get(at..at + 4)?.try_into().ok()?));
        // rule numbers are in network byte order
        let rule = |at: usize| {
            let number = i32::from_be_bytes(header.get(at..at + 4)?.try_into().ok()?);
            (number != NO_RULE).then_some(number as u32)
        };
        let uid = number(44)?;
        let anchor = rule(40).map(|number| (name(&header[20..36]), number));
        Some(Record {
            time: DateTime::from_timestamp(pcap.time.as_secs() as i64, pcap.time.subsec_nanos())?,
            rule: rule(36),
            anchor,
            reason: Reason::ALL.get(usize::from(header[3])).map_or("unknown", |r| r.name()),
            action: match header[2] {
                0 => "pass",
                1 => "block",
                4 => "nat",
                6 => "binat",
                8 => "rdr",
                12 => "match",
                _ => return None,
            },
            direction: if header[60] == 1 { "in" } else { "out" },
            interface: name(&header[4..20]),
            uid: Some(uid).filter(|uid| *uid != UNKNOWN_UID),
            loaded_by: (number(52)?, number(56)?),
            length: pcap.length.saturating_sub(HEADER as u32),
            packet: packet.to_vec(),
        })
    }

    /// Prints the record as a line in the style of tcpdump, with the time in `zone`.
    pub fn line<Z: TimeZone>(&self, zone: &Z) -> String
    where
        Z::Offset: std::fmt::Display,
    {
        let time = time_text(&self.time, zone);
        let rule = self.rule.map_or_else(|| "def".to_owned(), |number| number.to_string());
        let anchor = self.anchor.as_ref().map(|(name, number)| format!(".{name}.{number}"));
        let uid = self.uid.map(|uid| format!(" [uid {uid}]"));
        format!(
            "{time} rule {rule}{}/({}){} {} {} on {}: {}",
            anchor.unwrap_or_default(),
            self.reason,
            uid.unwrap_or_default(),
            self.action,
            self.direction,
            self.interface,
            print::line(&self.packet)
        )
    }

    /// Returns the record as an object. `rule_id` is the stable identity of the rule.
    pub fn json(&self, rule_id: Option<&str>) -> Value {
        let anchor = self.anchor.as_ref();
        json!({
            "time": self.time.timestamp_micros() as f64 / 1e6,
            "rule": self.rule,
            "rule_id": rule_id,
            "anchor": anchor.map(|(name, _)| name),
            "anchor_rule": anchor.map(|(_, number)| number),
            "reason": self.reason,
            "action": self.action,
            "direction": self.direction,
            "interface": self.interface,
            "uid": self.uid,
            "length": self.length,
            "packet": print::line(&self.packet),
        })
    }
}

/// Prints a time in `zone`, in the style of tcpdump.
pub(crate) fn time_text<Z: TimeZone>(time: &DateTime<Utc>, zone: &Z) -> String
where
    Z::Offset: std::fmt::Display,
{
    time.with_timezone(zone).format("%F %T%.6f").to_string()
}

/// Returns the name of an anchor as the header of a record has it: the beginning of the last part
/// of the path.
pub(super) fn log_name(path: &str) -> String {
    let own = path.rsplit('/').next().unwrap_or_default().as_bytes();
    String::from_utf8_lossy(&own[..own.len().min(NAME_BYTES)]).into_owned()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use skipstep_wire::build::{Tcp, ipv4};

    use super::*;

    /// Returns a record of a SYN that rule 1 of anchor `web`, called by rule 3, passed.
    fn bytes(uid: u32) -> Vec<u8> {
        let packet = ipv4([10, 0, 0, 1], [10, 0, 0, 2]).tcp(&Tcp::new(4000, 22).flags("S").seq(7));
        let mut header = vec![0; HEADER];
        header[..4].copy_from_slice(&[100, 2, 0, 6]);
        header[4..7].copy_from_slice(b"em0");
        header[20..23].copy_from_slice(b"web");
        header[36..40].copy_from_slice(&3u32.to_be_bytes());
        header[40..44].copy_from_slice(&1u32.to_be_bytes());
        header[44..48].copy_from_slice(&uid.to_le_bytes());
        header[52..60].copy_from_slice(&[8, 0, 0, 0, 9, 0, 0, 0]);
        header[60] = 1;
        [header, packet].concat()
    }

    fn parse(bytes: &[u8]) -> Option<Record> {
        let length = bytes.len() as u32;
        let time = Duration::new(1_700_000_000, 5_000);
        Record::parse(&RecordHeader { time, captured: length, length }, bytes)
    }

    #[test]
    fn a_record_is_a_line() {
        let line = |uid| parse(&bytes(uid)).unwrap().line(&Utc);
        assert_eq!(
            line(UNKNOWN_UID),
            "2023-11-14 22:13:20.000005 rule 3.web.1/(bad-timestamp) pass in on em0: \
             tcp 10.0.0.1:4000 > 10.0.0.2:22 S seq 7 win 65535"
        );
        assert!(line(1000).contains(" [uid 1000] pass"));
        let record = parse(&bytes(0)).unwrap();
        assert_eq!(record.loaded_by, (8, 9));
        assert_eq!(record.json(Some("x"))["rule_id"], "x");
    }

    #[test]
    fn the_default_rule_has_no_number() {
        let mut bytes = bytes(UNKNOWN_UID);
        bytes[36..44].fill(0xff);
        let record = parse(&bytes).unwrap();
        assert_eq!((record.rule, record.anchor.clone()), (None, None));
        assert!(record.line(&Utc).contains(" rule def/("));
    }

    #[test]
    fn short_records_are_refused() {
        let bytes = bytes(0);
        for length in 0..HEADER {
            assert_eq!(parse(&bytes[..length]), None);
        }
        assert!(parse(&bytes[..HEADER + 3]).is_some());
    }
}
