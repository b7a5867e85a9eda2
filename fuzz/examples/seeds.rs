//! Writes the seeds of targets whose input is not text: `cargo run --example seeds` in this folder.

use std::fs;
use std::path::Path;

use skipstep_abi::delayed::{Delayed, delayed_order};
use skipstep_abi::diverted::Diverted;
use skipstep_abi::handoff::{Handoff, handoff_order};
use skipstep_fuzz::{NONCE, input};
use skipstep_kernel::record::{Memory, Record};
use skipstep_kernel::saved::SavedState;
use skipstep_pfconf::{Context, load};
use skipstep_scenario::host;
use skipstepd::envelope;
use zerocopy::IntoBytes;

const LINK: [u8; 14] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 8, 0];

/// A rule set with statements of many kinds.
const RULES: &str = r#"
    set limit states 1000
    table <t> persist { 192.0.2.0/24, !192.0.2.1, 2001:db8::/64 }
    anchor "a" in on em0 {
        pass in proto udp to <t>
    }
    match out on em0 inet nat-to 198.51.100.1 port 1024:2048 source-hash
    match in scrub (no-df, random-id, min-ttl 64, max-mss 1220) set prio (2, 5) tag T
    block return-icmp (3, 9) log (all, to pflog1) quick inet6 proto icmp6 icmp6-type echoreq
    pass in quick on ! em0 proto tcp from <t> to 10.0.0.0/8 port 1:5 flags S/SA \
        modulate state (max 5, source-track rule, tcp.first 7) label "x" tagged T
    pass in proto udp to port { 53, 123 } rdr-to 10.1.1.1 probability 50%
    pass in inet af-to inet6 from 2001:db8::1
"#;

fn main() -> std::io::Result<()> {
    write("reassembly", "ipv4", &input(&ipv4_fragments()))?;
    write("reassembly", "ipv6", &input(&ipv6_fragments()))?;
    write("handoff", "fragments", &input(&handed(&ipv4_fragments(), handoff_order::FRAGMENT)))?;
    write("handoff", "fragments6", &input(&handed(&ipv6_fragments(), handoff_order::FRAGMENT)))?;
    let whole = [(0, ipv4(0, &[7; 600])), (0, ipv6(&[], 17, &[7; 1600]))];
    write("handoff", "datagrams", &input(&handed(&whole, handoff_order::REFRAGMENT)))?;
    let label = Diverted {
        nonce: NONCE,
        ifindex: 3,
        port: [2, 188],
        direction: 1,
        link_header: 14,
        ..Diverted::default()
    };
    let frame = [label.as_bytes(), &LINK, &ipv4(0, &[0, 7, 0, 9, 0, 8, 0, 0])].concat();
    write("divert", "frame", &frame)?;
    let (envelope, packet) = envelope::from_frame(&frame, NONCE).expect("a frame of ours");
    write("divert", "message", &[envelope.as_bytes(), packet].concat())?;
    write("delay", "frames", &input(&delayed()))?;
    write("records", "rules", &records())?;
    write("saved_states", "states", states().as_bytes())?;
    write("netlink", "host", &input(&netlink()))
}

fn write(target: &str, name: &str, bytes: &[u8]) -> std::io::Result<()> {
    let folder = Path::new("seeds").join(target);
    fs::create_dir_all(&folder)?;
    fs::write(folder.join(name), bytes)
}

/// Returns an IPv4 packet with UDP. `fragment` has the flags and the offset of the IP header.
fn ipv4(fragment: u16, data: &[u8]) -> Vec<u8> {
    let mut packet = vec![0x45, 0, 0, 0, 0, 7, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
    packet[2..4].copy_from_slice(&(20 + data.len() as u16).to_be_bytes());
    packet[6..8].copy_from_slice(&fragment.to_be_bytes());
    packet.extend(data);
    packet
}

/// Returns an IPv6 packet with extension headers, the first of which has the number `next`.
fn ipv6(headers: &[u8], next: u8, data: &[u8]) -> Vec<u8> {
    let mut packet = vec![0x60, 0, 0, 0, 0, 0, next, 64];
    packet[4..6].copy_from_slice(&((headers.len() + data.len()) as u16).to_be_bytes());
    for last in [1, 2] {
        packet.extend([0x20, 1, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last]);
    }
    packet.extend(headers);
    packet.extend(data);
    packet
}

/// Returns the fragments of two datagrams. Those of the second are out of order and overlap.
fn ipv4_fragments() -> Vec<(u8, Vec<u8>)> {
    let more = 0x2000;
    vec![
        (0, ipv4(more, &[1; 16])),
        (1, ipv4(2, &[2; 4])),
        (1, ipv4(more | 3, &[3; 16])),
        (1, ipv4(more | 2, &[4; 16])),
        (1, ipv4(more, &[5; 24])),
        (1, ipv4(5, &[6; 8])),
    ]
}

fn ipv6_fragments() -> Vec<(u8, Vec<u8>)> {
    let header = |offset: u16, more: u16| {
        let [high, low] = (offset | more).to_be_bytes();
        [17, 0, high, low, 0, 0, 0, 9]
    };
    vec![
        (0, ipv6(&header(0, 1), 44, &[1; 1280])),
        (1, ipv6(&header(1280, 0), 44, &[2; 40])),
        (1, ipv6(&header(0, 0), 44, &[3; 8])),
    ]
}

/// Wraps packets in the frames in which the data plane passes them to skipstepd.
fn handed(packets: &[(u8, Vec<u8>)], order: u8) -> Vec<(u8, Vec<u8>)> {
    let handoff = Handoff {
        nonce: NONCE,
        ifindex: 5,
        order,
        direction: 1,
        link_header: 14,
        ..Handoff::default()
    };
    let frame = |packet: &[u8]| [&LINK, packet, handoff.as_bytes()].concat();
    packets.iter().map(|(how, packet)| (*how, frame(packet))).collect()
}

fn delayed() -> Vec<(u8, Vec<u8>)> {
    let frame = |due: u64, link: &[u8]| {
        let label = Delayed {
            nonce: NONCE,
            ifindex: 3,
            due,
            order: delayed_order::HOLD,
            link_header: link.len() as u8,
            ..Delayed::default()
        };
        [label.as_bytes(), link, &ipv4(0, &[9; 8])].concat()
    };
    vec![(0, frame(30, &LINK)), (1, frame(20, &[])), (40, frame(60, &LINK))]
}

fn records() -> Vec<u8> {
    let host = host::standard();
    let loaded = load(RULES, &Context::new(&host));
    let ruleset = loaded.unwrap_or_else(|refused| panic!("{:?}", refused.diagnostics)).ruleset;
    let mut record = Record { ruleset, ..Record::default() };
    let lists = record.take_lists();
    let rules = record.to_bytes().expect("a rule set");
    // the target adds the heads
    let (rules, lists) = (&rules[8..], &lists[8..]);
    [&(rules.len() as u16).to_le_bytes()[..], rules, lists].concat()
}

fn states() -> String {
    let (memory, record) = (Memory::default(), Record::default());
    let mut kept = skipstep_abi::KeptState::default();
    let key = &mut kept.state.key;
    for (side, port) in key.iter_mut().zip([80, 8080]) {
        side.family = skipstep_abi::INET;
        side.protocol = 6;
        side.port = [[0x0f, 0xa0], u16::to_be_bytes(port)];
        for (address, last) in side.address.iter_mut().zip([1, 2]) {
            address[..4].copy_from_slice(&[10, 0, 0, last]);
        }
    }
    kept.state.direction = 1;
    let tcp = SavedState::from_kept(&kept, &memory, &record, 100);
    let udp = SavedState { id: 2, protocol: 17, delay: 30, ..tcp.clone() };
    let lines = [&tcp, &udp].map(|state| serde_json::to_string(state).expect("a state"));
    let head = r#"{"format":"skipstep states","version":1,"rules":"00"}"#;
    format!("{head}\n{}\n{}\n", lines[0], lines[1])
}

/// Returns replies about a loopback and an Ethernet interface, its address, and its default route.
fn netlink() -> Vec<(u8, Vec<u8>)> {
    let link = |index: u32, kind: u16, flags: u32, name: &str| {
        let mut body = vec![0, 0];
        body.extend(kind.to_ne_bytes());
        body.extend(index.to_ne_bytes());
        body.extend(flags.to_ne_bytes());
        body.extend([0xff; 4]);
        body.extend(attribute(3, &[name.as_bytes(), &[0]].concat()));
        body.extend(attribute(4, &1500u32.to_ne_bytes()));
        body.extend(attribute(27, &1u32.to_ne_bytes()));
        body.extend(attribute(18, &attribute(1, b"veth\0")));
        message(16, &body)
    };
    let links = [link(1, 772, 0x49, "lo"), link(2, 1, 0x1043, "em0")].concat();
    let mut address = vec![2, 24, 0x80, 0, 2, 0, 0, 0];
    address.extend([attribute(1, &[10, 0, 0, 1]), attribute(2, &[10, 0, 0, 1])].concat());
    address.extend(attribute(4, &[10, 0, 0, 255]));
    let mut route = vec![2, 0, 0, 0, 254, 3, 0, 1, 0, 0, 0, 0];
    route.extend([attribute(5, &[10, 0, 0, 9]), attribute(4, &2u32.to_ne_bytes())].concat());
    route.extend(attribute(15, &254u32.to_ne_bytes()));
    vec![(0, links), (0, message(20, &address)), (0, message(24, &route))]
}

fn message(kind: u16, body: &[u8]) -> Vec<u8> {
    let mut message = (16 + body.len() as u32).to_ne_bytes().to_vec();
    message.extend(kind.to_ne_bytes());
    message.extend([0; 10]);
    message.extend(body);
    message
}

fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
    let mut attribute = (4 + value.len() as u16).to_ne_bytes().to_vec();
    attribute.extend(kind.to_ne_bytes());
    attribute.extend(value);
    attribute.resize(attribute.len().next_multiple_of(4), 0);
    attribute
}
