//! TCP connections as ladder diagrams: each packet, its fate, and the state of both sides.

mod common;

use common::Conversation;

const PASS: &str = "block all\npass in on em0 proto tcp to port 22";

/// Opens a connection whose numbers begin at 100 and 900, with windows of 1000.
fn established(rules: &str) -> Conversation {
    let mut c = Conversation::new(rules);
    c.client("S seq 100 win 1000", "pass SYN_SENT:CLOSED tcp.first");
    c.server("SA seq 900 ack 101 win 1000", "pass ESTABLISHED:SYN_SENT tcp.opening");
    c.client("A seq 101 ack 901 win 1000", "pass ESTABLISHED:ESTABLISHED tcp.established");
    c
}

#[test]
fn a_connection_opens_and_closes() {
    let mut c = established(PASS);
    c.client("PA seq 101 ack 901 win 1000 len 10", "pass ESTABLISHED:ESTABLISHED tcp.established");
    c.server("A seq 901 ack 111 win 1000", "pass ESTABLISHED:ESTABLISHED tcp.established");
    c.client("FA seq 111 ack 901 win 1000", "pass CLOSING:ESTABLISHED tcp.closing");
    c.server("A seq 901 ack 112 win 1000", "pass FIN_WAIT_2:ESTABLISHED tcp.closing");
    c.server("FA seq 901 ack 112 win 1000", "pass FIN_WAIT_2:CLOSING tcp.finwait");
    c.client("A seq 112 ack 902 win 1000", "pass FIN_WAIT_2:FIN_WAIT_2 tcp.closed");
    let state = c.state();
    assert_eq!((state.packets, state.bytes), ([5, 4], [210, 160]));
}

#[test]
fn timeouts_run_from_the_last_packet() {
    let mut c = established(PASS);
    assert_eq!(c.firewall.expires_at(c.state()), 86_400);
    c.at(10);
    c.client("FA seq 101 ack 901 win 1000", "pass CLOSING:ESTABLISHED tcp.closing");
    assert_eq!(c.at(909), []);
    assert_eq!(c.at(910), [1]);
    c.client("A seq 102 ack 901", "drop");
}

#[test]
fn data_must_lie_in_the_window() {
    let mut c = established(PASS);
    // the server allows 1000 bytes from 101 on
    c.client(
        "A seq 1101 ack 901 win 1000 len 1",
        "drop state-mismatch ESTABLISHED:ESTABLISHED tcp.established",
    );
    c.client("A seq 1100 ack 901 win 1000 len 1", "pass ESTABLISHED:ESTABLISHED tcp.established");
    // and data up to a window back may come again
    c.client("A seq 101 ack 901 win 1000 len 1", "pass ESTABLISHED:ESTABLISHED tcp.established");
    c.client(
        "A seq 100 ack 901 win 1000 len 1",
        "drop state-mismatch ESTABLISHED:ESTABLISHED tcp.established",
    );
}

#[test]
fn acknowledgments_must_be_plausible() {
    let mut c = established(PASS);
    let slack = 0xffff + 1500;
    let good = "pass ESTABLISHED:ESTABLISHED tcp.established";
    let bad = "drop state-mismatch ESTABLISHED:ESTABLISHED tcp.established";
    c.client(&format!("A seq 101 ack {} win 1000 len 1", 901 + slack + 1), bad);
    c.client(&format!("A seq 101 ack {} win 1000 len 1", 901 + slack), good);
    c.client(&format!("A seq 102 ack {} win 1000 len 1", 901u32.wrapping_sub(slack)), good);
    c.client(&format!("A seq 103 ack {} win 1000 len 1", 901u32.wrapping_sub(slack + 1)), bad);
}

#[test]
fn a_reset_needs_the_exact_sequence_number() {
    let bad = "drop state-mismatch ESTABLISHED:ESTABLISHED tcp.established";
    let good = "pass TIME_WAIT:TIME_WAIT tcp.closed";
    for (segment, expected) in [
        // a side that has sent no data is at its SYN
        ("R seq 100 win 0", good),
        ("R seq 101 win 0", good),
        ("R seq 99 win 0", good),
        ("R seq 102 win 0", bad),
        ("R seq 98 win 0", bad),
        ("RA seq 102 ack 901 win 0", bad),
        // older RSTs pass only with an exact acknowledgment
        ("RA seq 98 ack 901 win 0", good),
        ("RA seq 98 ack 900 win 0", bad),
    ] {
        established(PASS).client(segment, expected);
    }
}

#[test]
fn windows_are_scaled_if_both_offer_it() {
    let mut c = Conversation::new(PASS);
    c.client("S seq 100 win 1000 wscale 2", "pass SYN_SENT:CLOSED tcp.first");
    assert_eq!((c.state().src.wscale, c.state().src.max_win), (0x82, 250));
    c.server("SA seq 900 ack 101 win 1000 wscale 3", "pass ESTABLISHED:SYN_SENT tcp.opening");
    assert_eq!((c.state().dst.wscale, c.state().dst.max_win), (0x83, 125));
    c.client("A seq 101 ack 901 win 500", "pass ESTABLISHED:ESTABLISHED tcp.established");
    assert_eq!(c.state().dst.seqhi, 901 + (500 << 2));
}

#[test]
fn scaling_declined_is_scaling_forgotten() {
    let mut c = Conversation::new(PASS);
    c.client("S seq 100 win 1000 wscale 2", "pass SYN_SENT:CLOSED tcp.first");
    c.server("SA seq 900 ack 101 win 1000", "pass ESTABLISHED:SYN_SENT tcp.opening");
    let state = c.state();
    assert_eq!((state.src.wscale, state.src.max_win), (0, 1000), "the window is what the SYN said");
    assert_eq!((state.dst.wscale, state.dst.max_win), (0, 1000));
}

#[test]
fn a_connection_is_picked_up_in_its_middle() {
    let mut c = Conversation::new("pass in on em0 proto tcp flags any");
    c.client("A seq 5000 ack 7000 win 1000 len 10", "pass SYN_SENT:CLOSED tcp.first");
    c.server("A seq 7000 ack 5010 win 1000 len 20", "pass ESTABLISHED:SYN_SENT tcp.opening");
    c.client("A seq 5010 ack 7020 win 1000", "pass ESTABLISHED:ESTABLISHED tcp.established");
}

#[test]
fn both_open_at_once() {
    let mut c = Conversation::new(PASS);
    c.client("S seq 100 win 1000", "pass SYN_SENT:CLOSED tcp.first");
    c.server("S seq 900 win 1000", "pass SYN_SENT:SYN_SENT tcp.opening");
    c.client("SA seq 100 ack 901 win 1000", "pass SYN_SENT:ESTABLISHED tcp.opening");
    c.server("SA seq 900 ack 101 win 1000", "pass ESTABLISHED:ESTABLISHED tcp.established");
}

#[test]
fn a_wrong_answer_in_the_handshake_is_reset() {
    let mut c = Conversation::new(PASS);
    c.client("S seq 100 win 1000", "pass SYN_SENT:CLOSED tcp.first");
    c.server("S seq 900 win 1000", "pass SYN_SENT:SYN_SENT tcp.opening");
    c.server(
        "A seq 1000000 ack 5 win 1000 len 1",
        "drop state-mismatch SYN_SENT:SYN_SENT tcp.opening",
    );
    assert_eq!(c.replies, ["tcp 10.0.1.5:4000 > 192.0.2.1:22 R seq 5 win 0 tos 0x10"]);
    assert_eq!(c.state().dst.seqlo, 0, "its next segment counts as its first");
    c.server("S seq 900 win 1000", "pass SYN_SENT:SYN_SENT tcp.opening");
    c.server("R seq 950 win 1000", "drop state-mismatch SYN_SENT:SYN_SENT tcp.opening");
    assert_eq!(c.replies, [""; 0], "a reset is not answered");
}

#[test]
fn a_syn_on_an_open_connection_is_challenged() {
    let mut c = established(PASS);
    c.client("S seq 777 win 1000", "drop ESTABLISHED:ESTABLISHED tcp.established");
    assert_eq!(c.replies, ["tcp 192.0.2.1:22 > 10.0.1.5:4000 A seq 901 ack 100 win 0 tos 0x10"]);
    c.client("R seq 101 win 0", "pass TIME_WAIT:TIME_WAIT tcp.closed");
}

#[test]
fn ports_are_used_again_after_the_end() {
    let mut c = established(PASS);
    c.client("R seq 101 win 0", "pass TIME_WAIT:TIME_WAIT tcp.closed");
    c.client("S seq 5555 win 1000", "pass SYN_SENT:CLOSED tcp.first");
    assert_eq!(c.state().id, 2);
    assert_eq!(c.firewall.status().removals, 0, "the purge counts the removal");
    assert_eq!(c.at(0), []);
    assert_eq!(c.firewall.status().removals, 1);
}

#[test]
fn loosely_accepted_segments_do_not_prolong_a_state() {
    let mut c = Conversation::new(PASS);
    c.client("S seq 100 win 1000", "pass SYN_SENT:CLOSED tcp.first");
    c.at(100);
    // beyond the window, but the other side has sent nothing yet
    c.client("S seq 150 win 1000", "pass SYN_SENT:CLOSED tcp.first");
    assert_eq!(c.firewall.expires_at(c.state()), 120);
}

#[test]
fn sloppy_does_not_look_at_numbers() {
    let mut c = Conversation::new("pass in on em0 proto tcp keep state (sloppy)");
    c.client("S seq 100 win 1000", "pass SYN_SENT:CLOSED tcp.first");
    // the answers take another route
    c.client("A seq 99999 ack 1 win 1000", "pass ESTABLISHED:ESTABLISHED tcp.established");
    c.client("FA seq 5 ack 1 win 1000", "pass CLOSING:CLOSING tcp.finwait");
    c.client("A seq 6 ack 1 win 1000", "pass CLOSING:FIN_WAIT_2 tcp.finwait");
    c.client("R seq 6 win 1000", "pass TIME_WAIT:TIME_WAIT tcp.closed");
}

#[test]
fn nonsense_never_reaches_the_state() {
    let mut c = established("pass in on em0 proto tcp");
    for flags in ["SR", "F", "P", "U"] {
        c.client(&format!("{flags} seq 101 ack 901"), "drop normalize");
    }
    assert_eq!(c.state().packets, [2, 1]);
}

#[test]
fn ipv6_is_no_different() {
    let mut c = Conversation::ipv6("block return all\npass in on em0 inet6 proto tcp to port 22");
    c.client("S seq 100 win 1000", "pass SYN_SENT:CLOSED tcp.first");
    c.server("SA seq 900 ack 101 win 1000", "pass ESTABLISHED:SYN_SENT tcp.opening");
    c.client("A seq 101 ack 901 win 1000", "pass ESTABLISHED:ESTABLISHED tcp.established");
    c.client("S seq 777 win 1000", "drop ESTABLISHED:ESTABLISHED tcp.established");
    assert_eq!(c.replies, ["tcp 2001:db8:2::1[22] > 2001:db8:1::5[4000] A seq 901 ack 100 win 0"]);
}
