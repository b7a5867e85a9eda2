//! `synproxy state`: two handshakes that become one connection (pf-semantics section 14).

mod common;

use common::{firewall, packet};
use skipstep_model::{Draw, Firewall, Verdict};
use skipstep_ruleset::{Direction, Reason};
use skipstep_wire::build::{self, Tcp};

const CLIENT: ([u8; 4], u16) = ([10, 0, 1, 5], 4000);
const SERVER: ([u8; 4], u16) = ([10, 0, 2, 10], 22);

fn segment(from: ([u8; 4], u16), to: ([u8; 4], u16), flags: &str, seq: u32, ack: u32) -> Vec<u8> {
    let tcp = Tcp::new(from.1, to.1).flags(flags).seq(seq).ack(ack).window(1000);
    build::ipv4(from.0, to.0).tcp(&tcp)
}

fn from_client(firewall: &mut Firewall, flags: &str, seq: u32, ack: u32) -> skipstep_model::Fate {
    firewall.packet(&packet(Direction::In, "em0", segment(CLIENT, SERVER, flags, seq, ack)))
}

fn from_server(firewall: &mut Firewall, flags: &str, seq: u32, ack: u32) -> skipstep_model::Fate {
    firewall.packet(&packet(Direction::Out, "em0", segment(SERVER, CLIENT, flags, seq, ack)))
}

/// Returns source port, sequence number, acknowledgment, flags and window of a segment over IPv4.
fn header_fields(bytes: &[u8]) -> (u16, u32, u32, u8, u16) {
    let half = |at: usize| u16::from_be_bytes([bytes[at], bytes[at + 1]]);
    let word = |at: usize| u32::from(half(at)) << 16 | u32::from(half(at + 2));
    (half(20), word(24), word(28), bytes[33], half(34))
}

#[test]
fn two_handshakes_become_one_connection() {
    let mut firewall = firewall("pass in on em0 proto tcp synproxy state");

    firewall.set_random(Draw::Sequence(5000));
    let fate = from_client(&mut firewall, "S", 100, 0);
    assert_eq!(fate.verdict, Verdict::Consumed);
    assert_eq!(header_fields(&fate.replies[0]), (SERVER.1, 5000, 101, 0x12, 0), "a closed window");

    firewall.set_random(Draw::Sequence(90_000));
    let fate = from_client(&mut firewall, "A", 101, 5001);
    assert_eq!(fate.verdict, Verdict::Consumed);
    assert_eq!(
        header_fields(&fate.replies[0]),
        (CLIENT.1, 90_000, 0, 0x02, 0),
        "the server hears of it now"
    );

    let fate = from_server(&mut firewall, "SA", 700, 90_001);
    assert_eq!(fate.verdict, Verdict::Consumed);
    assert_eq!(
        header_fields(&fate.replies[0]),
        (CLIENT.1, 90_001, 701, 0x10, 1000),
        "to the server"
    );
    assert_eq!(header_fields(&fate.replies[1]), (SERVER.1, 5001, 101, 0x10, 1000), "to the client");

    let fate = from_client(&mut firewall, "A", 101, 5001);
    assert_eq!(fate.verdict, Verdict::Pass);
    assert_eq!(header_fields(&fate.out.unwrap()), (CLIENT.1, 90_001, 701, 0x10, 1000));
    let fate = from_server(&mut firewall, "A", 701, 90_001);
    assert_eq!(header_fields(&fate.out.unwrap()), (SERVER.1, 5001, 101, 0x10, 1000));
}

#[test]
fn incomplete_handshakes_never_reach_the_server() {
    let mut firewall = firewall("pass in on em0 proto tcp synproxy state");
    firewall.set_random(Draw::Sequence(5000));
    from_client(&mut firewall, "S", 100, 0);
    for (flags, seq, ack) in [("A", 101, 5000), ("A", 102, 5001), ("RA", 101, 5001), ("S", 99, 0)] {
        let fate = from_client(&mut firewall, flags, seq, ack);
        assert_eq!(fate.verdict, Verdict::Drop, "{flags} {seq} {ack}");
        assert_eq!(fate.reason, Reason::Synproxy);
        assert!(fate.replies.is_empty());
    }
    let again = from_client(&mut firewall, "S", 100, 0);
    assert_eq!(
        header_fields(&again.replies[0]),
        (SERVER.1, 5000, 101, 0x12, 0),
        "the same once more"
    );
}
