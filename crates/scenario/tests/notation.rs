//! Tests of the notation: every word is printed and parsed again, and error messages are exact.

use skipstep_scenario::case::Action;
use skipstep_scenario::{look, parse, run};

/// Returns the bytes of a packet in the notation, in hexadecimal.
fn bytes(packet: &str) -> String {
    let arrival =
        parse::arrival(&format!("in em0 {packet}")).unwrap_or_else(|error| panic!("{error}"));
    look::hex(&run::test_packet(&arrival).bytes)
}

fn message(text: &str) -> String {
    parse::file(text, "x.scn").expect_err("it is wrong").to_string()
}

#[test]
fn every_word_comes_back() {
    let lines = [
        "in em0 tcp 10.0.0.1:4000 > 10.0.0.2:22 SEW seq 1 ack 2 win 3 urg 4 mss 5 wscale 6 tcp-options 0101 len 7",
        "out em0 received-on em1 tag A prio 5 udp 2001:db8::1[53] > 2001:db8::2[53] data 00ff ttl 1 tos 2",
        "in em0 icmp 10.0.0.1 > 10.0.0.2 unreach code port-unr quoting 28 (udp 10.0.0.2:1 > 10.0.0.1:2) ipid 9 df",
        "in em0 icmp6 fe80::1 > ff02::1 neighbrsol id 1 seq 2 len 16 ttl 255",
        "in em0 proto 50 10.0.0.1 > 10.0.0.2 len 8 ip-options 01010101 fragment 8+ truncate 30 ip-len 99 header-len 24",
        "in em0 proto 50 2001:db8::1 > 2001:db8::2 hop-by-hop 05020000 destination-options \"\" routing 2 00000000 fragment 0",
        "in em0 tcp 10.0.0.1:1 > 10.0.0.2:2 . data-offset 16 bad-sum",
        "in em0 udp 10.0.0.1:1 > 10.0.0.2:2 udp-len 7",
        "in em0 hex 4500",
        "in em0 hex 45 => pass rule 1, reason match, counted match short, new state 2 proto 6 in on em0 from-rule default \
         wire 10.0.0.1:1 2001:db8::2[3] src 4 dst 4:1:2:3:5:128 timeout tcp.first expires 7 packets 1:2 bytes 3:4 \
         flags 0x8 min-ttl 1 max-mss 2 tagging T, also state 1 stack 10.0.0.1:1 10.0.0.2:3 tagging none",
        "in em0 hex 45 => block default, state, out ttl 1 tos 2 ipid 3 mss 4 no-df, reply rst seq 1 ack 2 ttl 3, \
         reply tcp SA, reply icmp unreach code 1, reply icmp6 4, log pass by 1 for short to 2, log, tag T, prio 7",
        "in em0 hex 45 => pass skipped, no state, unchanged, no reply, no log, no tag, expired 1 2, removed none, states 3",
        "in em0 hex 45 => pass rule a/_1/2, anchor-rule 4, new state from-rule a/_1/2 anchor-rule 4, log pass by 2 anchor-rule 4 \
         in a/_1, log match by default anchor-rule none in main",
        "in em0 hex 45 => block rule \"a b/0\", anchor-rule none",
        "in em0 hex 45 => pass orphan, out hex 0102, reply hex 03",
        "forward out em1 => pass",
        "kill 1 2",
        "kill from 10.0.0.0/8",
        "kill from 10.0.0.1/32 to 2001:db8::/32",
        "kill label \"a b\"",
        "kill gateway 10.0.0.9/32",
        "kill key 6 10.0.0.1:80 10.0.0.2:1024",
        "table t add 10.0.0.1/32 !2001:db8::/32",
        "table a/t replace",
        "table a/b/t delete 0.0.0.0/0",
        "load {\npass in\nanchor \"a\" {\npass\n}\n}",
        "load a/b { block; pass }",
        "flush",
        "flush a/b",
        "address add em0 10.0.9.1/24",
        "address add em0 10.0.9.1/32 peer 10.0.9.2",
        "address delete em0 2001:db8::1/64",
        "link up em1",
        "link down em1",
        "interface add wg0 10.0.9.1/24 2001:db8:9::1/64 group dmz mtu 1400 tunnel port down",
        "interface delete em1",
        "group add em0 \"a b\"",
        "group delete em0 dmz",
        "route add 0.0.0.0/0 on em1 via 10.0.2.254 label isp",
        "route add default6 on em1",
        "route delete 10.0.0.0/8 on em1 table 1",
        "wait 7 => expired 1",
        "wait 8",
        "random 9",
        "check rule 1 evaluations 1 packets 2:3 bytes 4:5 states 6 created 7",
        "check rule relayd/3 packets 1:0",
        "check default packets 1:0",
        "check status states 1 searches 2 inserts 3 removals 4 short 5",
    ];
    for line in lines {
        let text = format!("rules {{ pass }}\n{line}\n");
        let file = parse::file(&text, "first").unwrap_or_else(|error| panic!("{error}"));
        let printed = file.to_string();
        let again =
            parse::file(&printed, "printed").unwrap_or_else(|error| panic!("{error}\n{printed}"));
        assert_eq!(file, again, "{printed}");
        // The printed text still has each word.
        for word in line
            .split([' ', ','])
            .filter(|word| word.chars().all(|c| c.is_ascii_lowercase()) && *word != "orphan")
        {
            assert!(printed.contains(word), "{word} of `{line}` is lost in\n{printed}");
        }
    }
}

#[test]
fn hosts_come_back() {
    let text = "interfaces {\n    em0 10.0.0.1/24 fe80::1/64 group lan group dmz mtu 9000\n    tun0 10.9.0.1/32 peer 10.9.0.2 tunnel\n    \
                lo0 127.0.0.1/8 loopback\n}\nroutes {\n    default on em0 via 10.0.0.254\n    10.8.0.0/16 on tun0\n}\nrules { pass }\n";
    let file = parse::file(text, "first").unwrap_or_else(|error| panic!("{error}"));
    let host = file.host.clone().expect("it describes a host");
    assert_eq!(host.interfaces[0].groups, ["all", "lan", "dmz"]);
    assert!(host.interfaces[1].no_link_header && host.interfaces[2].loopback);
    assert_eq!(host.routes.len(), 2);
    assert_eq!(parse::file(&file.to_string(), "again").expect("it is what was printed"), file);
}

#[test]
fn rules_keep_their_lines() {
    let text = "# a comment\nrules {\n  block   # } in a comment\n  pass in from { 10.0.0.1, \"em0\" }; pass out\n}\n";
    let file = parse::file(text, "x").unwrap_or_else(|error| panic!("{error}"));
    let rules = &file.cases[0].rules;
    assert_eq!(
        rules.text,
        "block   # } in a comment\npass in from { 10.0.0.1, \"em0\" }\npass out"
    );
    assert_eq!(rules.lines, [3, 4, 4]);
}

#[test]
fn expectations_may_go_on_in_further_lines() {
    let text = "rules { pass }\nin em0 hex 45 => pass\n    => rule 3, no state\n";
    let file = parse::file(text, "x").unwrap_or_else(|error| panic!("{error}"));
    let Action::Packet(_, expected) = &file.cases[0].steps[0].action else {
        panic!("it is a packet")
    };
    assert!(expected.verdict.is_some() && expected.decision.is_some() && expected.state.is_some());
}

#[test]
fn packets_have_right_lengths_and_checksums() {
    assert_eq!(
        bytes("udp 10.0.1.5:1 > 198.51.100.7:53 data 78 ipid 1"),
        "4500001d00010000401145900a000105c6336407000100350009526678"
    );
    // The urgent pointer and damage are patched in, and the checksum is updated.
    assert!(bytes("tcp 10.0.1.5:9 > 10.0.2.10:53 S seq 1 urg 7").ends_with("5002ffff988e0007"));
    assert_eq!(&bytes("udp 10.0.0.1:1 > 10.0.0.2:2 len 9 truncate 24").len(), &48);
    assert!(bytes("udp 10.0.0.1:1 > 10.0.0.2:2 ip-len 99").starts_with("45000063"));
    assert!(bytes("tcp 10.0.0.1:1 > 10.0.0.2:2 S data-offset 16").contains("4002ffff"));
}

/// A packet in pf.conf's words is the same as in the notation of scenario files.
#[test]
fn the_words_of_pf_conf_are_read() {
    for (words, notation) in [
        (
            "in on em0 proto tcp from 10.0.0.1 port 4000 to 10.0.0.2 port ssh",
            "in em0 tcp 10.0.0.1:4000 > 10.0.0.2:22 S",
        ),
        (
            "out on em0 inet6 proto tcp from 2001:db8::1 port = 22 to 2001:db8::2 port = 4000 \
             flags SA tagged T received-on em1 ack 7",
            "out em0 received-on em1 tag T tcp 2001:db8::1[22] > 2001:db8::2[4000] SA ack 7",
        ),
        (
            "in em0 inet proto udp from 10.0.0.1 port 53 to 10.0.0.2 port domain len 9 prio 5",
            "in em0 prio 5 udp 10.0.0.1:53 > 10.0.0.2:53 len 9",
        ),
        (
            "in on em0 proto sctp from 10.0.0.1 port 1 to 10.0.0.2 port 2 vtag 3",
            "in em0 sctp 10.0.0.1:1 > 10.0.0.2:2 vtag 3",
        ),
        (
            "in on em0 proto icmp from 10.0.0.1 to 10.0.0.2 ttl 3 icmp-type unreach code port-unr",
            "in em0 icmp 10.0.0.1 > 10.0.0.2 unreach code port-unr ttl 3",
        ),
        (
            "in on em0 proto icmp6 from fe80::1 to ff02::1 icmp6-type neighbrsol",
            "in em0 icmp6 fe80::1 > ff02::1 neighbrsol",
        ),
        ("in on em0 proto gre from 10.0.0.1 to 10.0.0.2", "in em0 proto 47 10.0.0.1 > 10.0.0.2"),
        (
            "in on em0 tcp 10.0.0.1:1 > 10.0.0.2:2 S tag T",
            "in em0 tag T tcp 10.0.0.1:1 > 10.0.0.2:2 S",
        ),
    ] {
        let read = |text: &str| parse::arrival(text).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(read(words), read(notation), "{words}");
        let printed = read(words).to_string();
        assert_eq!(read(&printed), read(words), "{printed}");
    }
}

#[test]
fn an_interface_may_have_the_name_of_a_word() {
    let arrival = parse::arrival("in on tcp tcp 10.0.0.1:1 > 10.0.0.2:2 S").unwrap();
    assert_eq!(arrival.interface, "tcp");
    assert_eq!(arrival.to_string().trim(), "in on tcp tcp 10.0.0.1:1 > 10.0.0.2:2 S");
    assert_eq!(parse::arrival("in on on hex 45").unwrap().interface, "on");
}

/// The message names the first missing part, and the example has all parts.
#[test]
fn a_missing_part_is_named_and_completed() {
    for (text, says, line) in [
        (
            "",
            "the direction (in or out) is missing",
            "in on eth0 proto tcp from 192.0.2.9 port 4000 to 192.0.2.1 port 22",
        ),
        (
            "in proto tcp from 10.0.0.1 port 1 to 10.0.0.2 port 2",
            "the interface is missing",
            "in on eth0 proto tcp from 10.0.0.1 port 1 to 10.0.0.2 port 2",
        ),
        (
            "out on em0 from 10.0.0.1 to 10.0.0.2",
            "the protocol (`proto PROTOCOL`) is missing",
            "out on em0 proto tcp from 10.0.0.1 port 4000 to 10.0.0.2 port 22",
        ),
        (
            "in on em0 proto udp to 2001:db8::2 port 53",
            "the source (`from ADDRESS`) is missing",
            "in on em0 proto udp from 2001:db8::9 port 4000 to 2001:db8::2 port 53",
        ),
        (
            "in on em0 inet6 proto tcp from any to 2001:db8::/32 port 22",
            "`any` is not one address",
            "in on em0 inet6 proto tcp from 2001:db8::9 port 4000 to 2001:db8::1 port 22",
        ),
        (
            "in on em0 proto icmp from 10.0.0.1 to 10.0.0.2",
            "the ICMP type (`icmp-type TYPE`) is missing",
            "in on em0 proto icmp from 10.0.0.1 to 10.0.0.2 icmp-type echoreq",
        ),
        (
            "in on em0 proto tcp from 10.0.0.1 port 1 to 10.0.0.2 port 2 flags S/SA",
            "`S/SA` is not a set of TCP flags",
            "in on em0 proto tcp from 10.0.0.1 port 1 to 10.0.0.2 port 2 flags S",
        ),
        (
            "in em0 tcp 10.0.0.1:1 > 10.0.0.2:2",
            "a set of TCP flags",
            "in em0 tcp 10.0.0.1:1 > 10.0.0.2:2 S",
        ),
    ] {
        let error = parse::arrival(text).unwrap_err();
        assert!(error.message.contains(says), "{text}: {}", error.message);
        assert_eq!(parse::completed(text).as_deref(), Some(line), "{text}");
    }
    for (text, says) in [
        ("in on em0 proto gre from 10.0.0.1 port 1 to 10.0.0.2", "have ports"),
        ("in on em0 inet proto tcp from 2001:db8::1 port 1 to 10.0.0.1 port 2", "address of inet"),
        ("in on em0 proto tcp from 2001:db8::1 port 1 to 10.0.0.1 port 2", "of one family"),
        ("in on em0 proto icmp from 2001:db8::1 to 2001:db8::2", "icmp6 for IPv6"),
        ("in on em0 proto tcp from 10.0.0.1 port 1 to 10.0.0.2 port 2 block", "does not belong"),
    ] {
        let message = parse::arrival(text).unwrap_err().message;
        assert!(message.contains(says), "{text}: {message}");
        assert_eq!(parse::completed(text), None, "{text}");
    }
}

#[test]
fn messages_show_the_word() {
    assert_eq!(
        message("rules { pass }\nin em0 tcp 10.0.0.1:4000 > 10.0.0.2 S\n"),
        "x.scn:2: `10.0.0.2` is not an address with a port, as 10.0.0.1:80 or 2001:db8::1[80]\n    \
         in em0 tcp 10.0.0.1:4000 > 10.0.0.2 S\n                               ^^^^^^^^"
    );
    for (text, place, says) in [
        ("in em0 hex 45", "x.scn:1: ", "there are no rules yet"),
        ("rules { pass }\nin em0 udp 10.0.0.1:1", "x.scn:2: ", "`>` is missing"),
        ("rules { pass }\nin em0 udp 10.0.0.1:1 > 2001:db8::1[2]", "x.scn:2: ", "one family"),
        ("rules { pass }\nin em0 hex 450", "x.scn:2: ", "is not bytes in hexadecimal"),
        ("rules { pass }\nin em0 hex 45 => pass, block", "x.scn:2: ", "is repeated"),
        ("rules { pass }\nin em0 hex 45 => perhaps", "x.scn:2: ", "not an expectation"),
        (
            "rules { pass }\nin em0 icmp 2001:db8::1 > 2001:db8::2 echoreq",
            "x.scn:2: ",
            "icmp6 for IPv6",
        ),
        (
            "rules { pass }\nin em0 udp 10.0.0.1:1 > 10.0.0.2:2 nonsense",
            "x.scn:2: ",
            "does not belong here",
        ),
        ("rules { pass }\nin em0 udp 10.0.0.1:1 > 10.0.0.2:2 ttl 256", "x.scn:2: ", "that fits"),
        ("rules { pass\n", "x.scn:1: ", "not closed"),
        ("rules { pass } pass\n", "x.scn:1: ", "closing brace"),
        ("=> pass", "x.scn:1: ", "no packet before"),
        ("rules { pass }\nwait => expired 1", "x.scn:2: ", "is missing"),
        ("scenario \"open", "x.scn:1: ", "quote is not closed"),
        ("rules { pass }\njump em0", "x.scn:2: ", "is not a step"),
        ("interfaces { em0 10.0.0.1 }\nrules { pass }", "x.scn:1: ", "prefix length"),
    ] {
        let message = message(text);
        assert!(message.starts_with(place) && message.contains(says), "{text:?} gives\n{message}");
    }
}

#[test]
fn errors_in_rules_name_the_line_of_the_file() {
    let text = "scenario \"wrong\"\n\nrules {\n    pass\n    pass from nowhere.invalid\n}\n";
    let file = parse::file(text, "x.scn").unwrap_or_else(|error| panic!("{error}"));
    let outcomes = run::file(&file, "x.scn", &mut skipstep_scenario::Model::new());
    let error = outcomes[0].error.as_deref().expect("the rules are wrong");
    assert!(error.contains("x.scn:5") || error.contains("nowhere.invalid"), "{error}");
}

#[test]
fn unmet_expectations_are_reported() {
    let text = "rules { block }\nin em0 udp 10.0.0.1:1 > 10.0.0.2:2 => pass rule 1, new state, log, counted short\ncheck rule 0 packets 9:9\n";
    let file = parse::file(text, "x.scn").unwrap_or_else(|error| panic!("{error}"));
    let outcomes = run::file(&file, "x.scn", &mut skipstep_scenario::Model::new());
    let report = run::report(&outcomes[0], "x.scn");
    for says in [
        "x.scn:2: verdict",
        "x.scn:2: decided by",
        "x.scn:2: state",
        "x.scn:2: log",
        "x.scn:2: counted",
        "x.scn:3: packets",
    ] {
        assert!(report.contains(says), "{says} is missing in\n{report}");
    }
}

#[test]
fn large_files_and_invalid_lines_are_refused() {
    let message = |text: &str| parse::file(text, "f").unwrap_err().to_string();
    let large = " ".repeat(9 << 20);
    assert_eq!(message(&large), "f:1: file is too large: 9437184 bytes, at most 8388608");
    assert!(message("{ pass }\n").starts_with("f:1: there are no rules yet"));
    let long = message(&"a".repeat(1_000_000));
    assert!(long.starts_with("f:1: ") && long.len() < 2000, "{}", long.len());
}

#[test]
fn block_delimiters_are_no_interface_names() {
    let refused = |text: &str| parse::file(text, "f").unwrap_err().to_string();
    // Printed again, this name would end its block.
    let message = refused("interfaces {\n    a\n  { }b 198.51.100.1/24\n}\nrules { pass }\n");
    assert!(message.starts_with("f:3:3: ") || message.starts_with("f:3: "), "{message}");
    let message = refused("interfaces { em0 }\nroutes { default on \"a b\" }\nrules { pass }\n");
    assert!(message.starts_with("f:2"), "{message}");
}
