//! IPFIX messages (RFC 7011) with the templates and fields of OpenBSD's pflow(4).

use std::time::Duration;

use skipstep_abi::{FlowRecord, INET};

/// Most bytes of a message: with the headers of UDP and IPv6 it fits the minimum MTU of IPv6, 1280.
const LONGEST: usize = 1232;

/// Length of a message's header, and of a set's header, in bytes.
const MESSAGE_HEADER: usize = 16;
const SET_HEADER: usize = 4;

const VERSION: u16 = 10;

/// Observation domain, which distinguishes exporters of one address. OpenBSD's value.
const OBSERVATION_DOMAIN: u32 = 42;

/// Id of a set of templates.
const TEMPLATES: u16 = 2;

/// An information element and its length in bytes.
type Field = (u16, u16);

const SOURCE_IPV4: Field = (8, 4);
const DESTINATION_IPV4: Field = (12, 4);
const SOURCE_IPV6: Field = (27, 16);
const DESTINATION_IPV6: Field = (28, 16);
const INGRESS_INTERFACE: Field = (10, 4);
const EGRESS_INTERFACE: Field = (14, 4);
const PACKETS: Field = (2, 8);
const OCTETS: Field = (1, 8);
const START_MILLISECONDS: Field = (152, 8);
const END_MILLISECONDS: Field = (153, 8);
const POST_NAT_SOURCE: Field = (225, 4);
const POST_NAT_DESTINATION: Field = (226, 4);
const POST_NAT_SOURCE_PORT: Field = (227, 2);
const POST_NAT_DESTINATION_PORT: Field = (228, 2);
const SOURCE_PORT: Field = (7, 2);
const DESTINATION_PORT: Field = (11, 2);
const CLASS_OF_SERVICE: Field = (5, 1);
const PROTOCOL: Field = (4, 1);

/// The template of a record. The numbers are those of OpenBSD since revision 1.24 of if_pflow.h
/// (November 2025). Up to OpenBSD 7.8 there was no template for translated flows, and that of IPv6
/// had the number 257.
// Differs from OpenBSD: linux.md, "Flow records"
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Template {
    /// IPv4, not translated.
    Inet,
    /// IPv4, translated.
    InetTranslated,
    /// IPv6, translated or not: OpenBSD has no template for translated IPv6 flows.
    Inet6,
}

impl Template {
    /// All templates in the order of their numbers.
    pub const ALL: [Template; 3] = [Template::Inet, Template::InetTranslated, Template::Inet6];

    /// Returns the template for the records of a flow.
    pub fn for_flow(flow: &FlowRecord) -> Self {
        match (flow.family, flow.translated) {
            (INET, 0) => Template::Inet,
            (INET, _) => Template::InetTranslated,
            _ => Template::Inet6,
        }
    }

    fn number(self) -> u16 {
        256 + self as u16
    }

    fn fields(self) -> Vec<Field> {
        let ends = match self {
            Template::Inet6 => [SOURCE_IPV6, DESTINATION_IPV6],
            _ => [SOURCE_IPV4, DESTINATION_IPV4],
        };
        let translated = match self {
            Template::InetTranslated => &[
                POST_NAT_SOURCE,
                POST_NAT_DESTINATION,
                POST_NAT_SOURCE_PORT,
                POST_NAT_DESTINATION_PORT,
            ][..],
            _ => &[],
        };
        let traffic = [
            INGRESS_INTERFACE,
            EGRESS_INTERFACE,
            PACKETS,
            OCTETS,
            START_MILLISECONDS,
            END_MILLISECONDS,
        ];
        let rest = [SOURCE_PORT, DESTINATION_PORT, CLASS_OF_SERVICE, PROTOCOL];
        [&ends[..], &traffic, translated, &rest].concat()
    }

    fn record_length(self) -> usize {
        self.fields().iter().map(|(_, length)| usize::from(*length)).sum()
    }

    /// Returns the number of records that fit into a message.
    pub fn capacity(self) -> usize {
        (LONGEST - MESSAGE_HEADER - SET_HEADER) / self.record_length()
    }
}

/// Makes the message with all templates. `time` is since 1970.
pub fn templates(time: Duration, sequence: u32) -> Vec<u8> {
    let mut set = Vec::new();
    for template in Template::ALL {
        let fields = template.fields();
        set.extend(template.number().to_be_bytes());
        set.extend((fields.len() as u16).to_be_bytes());
        for (element, length) in fields {
            set.extend(element.to_be_bytes());
            set.extend(length.to_be_bytes());
        }
    }
    message(TEMPLATES, &set, time, sequence)
}

/// Makes a message with records of one template. `time` is since 1970.
pub fn data(template: Template, records: &[Vec<u8>], time: Duration, sequence: u32) -> Vec<u8> {
    message(template.number(), &records.concat(), time, sequence)
}

fn message(set: u16, content: &[u8], time: Duration, sequence: u32) -> Vec<u8> {
    let set_length = SET_HEADER + content.len();
    [
        &VERSION.to_be_bytes()[..],
        &((MESSAGE_HEADER + set_length) as u16).to_be_bytes(),
        &(time.as_secs() as u32).to_be_bytes(),
        &sequence.to_be_bytes(),
        &OBSERVATION_DOMAIN.to_be_bytes(),
        &set.to_be_bytes(),
        &(set_length as u16).to_be_bytes(),
        content,
    ]
    .concat()
}

/// Makes the records of a flow: one for each direction with traffic, first that of the state's
/// creator. `wall` converts seconds of the boot clock to the time since 1970.
pub fn records(flow: &FlowRecord, wall: impl Fn(u32) -> Duration) -> Vec<Vec<u8>> {
    let milliseconds = |second| wall(second).as_millis() as u64;
    let times = [milliseconds(flow.creation.min(flow.last)), milliseconds(flow.last)];
    let sides = [(0, 1), (1, 0)].into_iter().filter(|(from, _)| flow.bytes[*from] != 0);
    sides.map(|(from, to)| record(flow, from, to, times)).collect()
}

/// Makes a record, with the fields in the order of [`Template::fields`].
fn record(flow: &FlowRecord, from: usize, to: usize, [start, end]: [u64; 2]) -> Vec<u8> {
    let template = Template::for_flow(flow);
    let address_length = if template == Template::Inet6 { 16 } else { 4 };
    let ends = |addresses: &[[u8; 16]; 2]| {
        [&addresses[from][..address_length], &addresses[to][..address_length]].concat()
    };
    let interfaces = [flow.ifindex_in, flow.ifindex_out];
    let mut bytes = ends(&flow.address);
    for interface in [interfaces[from], interfaces[to]] {
        bytes.extend(interface.to_be_bytes());
    }
    for number in [flow.packets[from], flow.bytes[from], start, end] {
        bytes.extend(number.to_be_bytes());
    }
    if template == Template::InetTranslated {
        bytes.extend(ends(&flow.translated_address));
        bytes.extend([flow.translated_port[from], flow.translated_port[to]].concat());
    }
    bytes.extend([flow.port[from], flow.port[to]].concat());
    bytes.extend([flow.tos, flow.protocol]);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow() -> FlowRecord {
        let address = |last| [10, 0, 0, last, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        FlowRecord {
            address: [address(1), address(2)],
            port: [[0x12, 0x34], [0, 80]],
            ifindex_in: 3,
            ifindex_out: 4,
            packets: [5, 6],
            bytes: [700, 800],
            creation: 10,
            last: 12,
            family: INET,
            protocol: 6,
            tos: 16,
            ..FlowRecord::default()
        }
    }

    fn wall(second: u32) -> Duration {
        Duration::from_secs(1_000_000 + u64::from(second))
    }

    #[test]
    fn a_flow_has_a_record_for_each_direction() {
        let both = records(&flow(), wall);
        let there = [
            &[10, 0, 0, 1, 10, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 4][..],
            &5u64.to_be_bytes(),
            &700u64.to_be_bytes(),
            &1_000_010_000u64.to_be_bytes(),
            &1_000_012_000u64.to_be_bytes(),
            &[0x12, 0x34, 0, 80, 16, 6],
        ]
        .concat();
        let back = [
            &[10, 0, 0, 2, 10, 0, 0, 1, 0, 0, 0, 4, 0, 0, 0, 3][..],
            &6u64.to_be_bytes(),
            &800u64.to_be_bytes(),
            &1_000_010_000u64.to_be_bytes(),
            &1_000_012_000u64.to_be_bytes(),
            &[0, 80, 0x12, 0x34, 16, 6],
        ]
        .concat();
        assert_eq!(both, [there, back]);
        assert_eq!(records(&FlowRecord { bytes: [1, 0], ..flow() }, wall).len(), 1);
    }

    #[test]
    fn records_are_as_long_as_their_templates_say() {
        for (family, translated) in [(INET, 0), (INET, 1), (10, 0), (10, 1)] {
            let flow = FlowRecord { family, translated, ..flow() };
            let template = Template::for_flow(&flow);
            let records = records(&flow, wall);
            assert!(records.iter().all(|record| record.len() == template.record_length()));
            let full = vec![records[0].clone(); template.capacity()];
            let message = data(template, &full, wall(0), 0);
            assert!(message.len() <= LONGEST && message.len() + records[0].len() > LONGEST);
        }
    }

    #[test]
    fn lengths_in_headers_are_right() {
        let length = |message: &[u8], at: usize| {
            usize::from(u16::from_be_bytes([message[at], message[at + 1]]))
        };
        let message = templates(wall(0), 7);
        assert_eq!(length(&message, 0), 10);
        assert_eq!(length(&message, 2), message.len());
        assert_eq!(message[8..12], [0, 0, 0, 7]);
        assert_eq!(length(&message, 16), 2);
        assert_eq!(length(&message, 18), message.len() - MESSAGE_HEADER);
        // 12, 16 and 12 fields in the three templates
        assert_eq!(message.len(), MESSAGE_HEADER + SET_HEADER + 3 * 4 + 40 * 4);
    }
}
