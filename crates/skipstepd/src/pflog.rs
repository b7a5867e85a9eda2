//! Log records in OpenBSD's pflog format (pf-semantics section 18), which tcpdump and tshark read.
//! A record is a header of 100 bytes and the packet, from its IP header on. Numbers are in the
//! file's byte order, little-endian, unless network byte order is mentioned.

use serde::{Deserialize, Serialize};
use skipstep_abi::LogRecord;
use skipstep_abi::limits::SNAPLEN;
use skipstep_abi::log::rewritten;
use skipstep_wire::pcap::PFLOG_HEADER as HEADER;

/// Most bytes of a packet that the filter records.
pub const MAX_SNAPLEN: usize = SNAPLEN;

// OpenBSD's numbers, which differ from Linux's
const AF_INET: u8 = 2;
const AF_INET6: u8 = 24;
/// Bytes of the field for an anchor's name.
const RULESET_NAME: usize = 16;
/// Number that means "no rule".
const NO_RULE: i32 = -1;
/// Process id that means "unknown"; OpenBSD records none, too.
const NO_PID: u32 = 0;

/// The rule set that a log record refers to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// Path of the anchor; empty for the main rule set.
    pub anchor: String,
    /// Id of the user who loaded the rule set.
    pub uid: u32,
    /// Id of the process that loaded the rule set.
    pub pid: u32,
}

impl Origin {
    /// Returns the last component of the anchor's path, truncated to 15 bytes and padded with
    /// zeros.
    fn name(&self) -> [u8; RULESET_NAME] {
        let own = self.anchor.rsplit('/').next().unwrap_or_default();
        let mut name = [0; RULESET_NAME];
        // the last byte stays NUL
        for (to, from) in name[..RULESET_NAME - 1].iter_mut().zip(own.bytes()) {
            *to = from;
        }
        name
    }
}

/// Makes the header of `record`. Rule numbers, addresses and ports are in network byte order.
pub fn header(record: &LogRecord, origin: &Origin) -> [u8; HEADER] {
    let family = if record.family == skipstep_abi::INET6 { AF_INET6 } else { AF_INET };
    let mut header = Vec::with_capacity(HEADER);
    header.extend([HEADER as u8, family, record.action, record.reason]);
    header.extend(record.ifname);
    header.extend(origin.name());
    // for a rule in an anchor, the number of the anchor rule comes first
    let (number, sub_number) = match record.anchor_rule {
        ..0 => (record.rule, NO_RULE),
        anchor_rule => (anchor_rule, record.rule),
    };
    header.extend(number.to_be_bytes());
    header.extend(sub_number.to_be_bytes());
    for number in [record.uid, NO_PID, origin.uid, origin.pid] {
        header.extend(number.to_le_bytes());
    }
    let new_family = match (record.rewritten, family) {
        (rewritten::CROSSES, AF_INET) => AF_INET6,
        (rewritten::CROSSES, _) => AF_INET,
        _ => family,
    };
    let is_rewritten = record.rewritten != rewritten::UNCHANGED;
    header.extend([record.direction, u8::from(is_rewritten), new_family, 0]);
    header.extend(record.source);
    header.extend(record.destination);
    header.extend(record.source_port);
    header.extend(record.destination_port);
    header.try_into().expect("the fields above have 100 bytes")
}

/// Returns the bytes of the packet that `record` has, at most `snaplen`.
pub fn packet(record: &LogRecord, snaplen: usize) -> &[u8] {
    let length = usize::from(record.caplen).min(record.data.len()).min(snaplen);
    &record.data[..length]
}

#[cfg(test)]
mod tests {
    use super::*;
    use skipstep_abi::log::rewritten::{CROSSES, TRANSLATED, UNCHANGED};
    use zerocopy::FromZeros;

    #[test]
    fn a_translated_packet_says_so() {
        for (rewritten, family, of_header) in [
            (UNCHANGED, skipstep_abi::INET6, [2, 0, AF_INET6]),
            (TRANSLATED, skipstep_abi::INET, [2, 1, AF_INET]),
            (CROSSES, skipstep_abi::INET, [2, 1, AF_INET6]),
            (CROSSES, skipstep_abi::INET6, [2, 1, AF_INET]),
        ] {
            let record = LogRecord { direction: 2, rewritten, family, ..LogRecord::new_zeroed() };
            assert_eq!(header(&record, &Origin::default())[60..63], of_header);
        }
    }
}
