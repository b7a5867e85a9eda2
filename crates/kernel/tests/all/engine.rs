//! The data plane under BPF_PROG_TEST_RUN: an engine loads, decides, resets and keeps time.

use crate::common::shared_engine::ENGINES;
use crate::common::{host, other, ruleset, tcp, udp};
use skipstep_kernel::object::Sizes;
use skipstep_model::{Decision, Verdict};
use skipstep_ruleset::{Evaluator, Reason};
use skipstep_scenario::Engine;
use skipstep_testing::TestEngine;

const CLIENT: ([u8; 4], u16) = ([10, 0, 1, 9], 4000);
const SSH: ([u8; 4], u16) = ([10, 0, 1, 1], 22);

/// Runs a test on the engine of each evaluator.
fn on_each(test: fn(&mut TestEngine)) {
    ENGINES.iter().for_each(|engine| engine.run(test));
}

#[test]
#[ignore = "needs root"]
fn rules_decide_and_make_states() {
    on_each(|engine| {
        let host = host();
        let rules = ruleset("block log all\npass in on em0 proto tcp to port 22\n", &host);
        engine.load(&rules, &host).unwrap();

        let fate = engine.packet(&tcp(CLIENT, SSH, "S"));
        assert_eq!((fate.verdict, fate.decision), (Verdict::Pass, Decision::Rule(1.into())));
        assert!(fate.state.is_some());
        let states = engine.states();
        assert_eq!(states.len(), 1);
        assert_eq!(states[0].rule, Some(1.into()));
        assert_eq!(states[0].wire[0], ("10.0.1.9".parse().unwrap(), 4000));
        assert_eq!(states[0].expires_at, 120);

        let fate = engine.packet(&udp(CLIENT, SSH, 0));
        assert_eq!((fate.verdict, fate.decision), (Verdict::Drop, Decision::Rule(0.into())));
        assert_eq!(fate.reason, Reason::Match);
        assert_eq!(fate.log.len(), 1);
        assert_eq!(fate.log[0].rule, Some(0));
        assert_eq!(engine.rule_counters(Some(&1.into())).states, 1);
        assert_eq!(engine.status().inserts, 1);
    });
}

#[test]
#[ignore = "needs root"]
fn states_end_with_the_clock_and_loading_starts_afresh() {
    on_each(|engine| {
        let host = host();
        let rules = ruleset("pass\n", &host);
        engine.load(&rules, &host).unwrap();
        let first = engine.packet(&tcp(CLIENT, SSH, "S")).state.unwrap();
        assert!(engine.set_time(119).is_empty());
        assert_eq!(engine.set_time(121), [first]);
        assert!(engine.states().is_empty());

        engine.packet(&tcp(CLIENT, SSH, "S"));
        engine.load(&rules, &host).unwrap();
        assert!(engine.states().is_empty());
        let status = engine.status();
        assert_eq!((status.states, status.searches, status.inserts), (0, 0, 0));
        assert_eq!(engine.rule_counters(Some(&0.into())).packets, [0, 0]);
        assert!(engine.packet(&tcp(CLIENT, SSH, "S")).state.is_some());
    });
}

#[test]
#[ignore = "needs root"]
fn reloading_keeps_states() {
    on_each(|engine| {
        let host = host();
        engine.load(&ruleset("pass\n", &host), &host).unwrap();
        let state = engine.packet(&udp(CLIENT, SSH, 0)).state;
        engine.reload(&ruleset("block\n", &host)).unwrap();
        let fate = engine.packet(&udp(CLIENT, SSH, 0));
        assert_eq!((fate.verdict, fate.state), (Verdict::Pass, state));
        assert_eq!(fate.decision, Decision::OrphanState);
        assert_eq!(engine.packet(&udp(CLIENT, ([10, 0, 1, 1], 53), 0)).verdict, Verdict::Drop);
    });
}

#[test]
#[ignore = "needs root"]
fn tables_and_dynamic_addresses_decide() {
    on_each(|engine| {
        let host = host();
        let text = "table <bad> { 10.0.1.0/24, !10.0.1.9 }\nblock from <bad>\nblock to ! (em0)\n";
        engine.load(&ruleset(text, &host), &host).unwrap();
        assert_eq!(engine.packet(&udp(CLIENT, SSH, 0)).decision, Decision::Default);
        let other = ([10, 0, 1, 8], 1);
        assert_eq!(engine.packet(&udp(other, SSH, 0)).decision, Decision::Rule(0.into()));
        let elsewhere = ([10, 0, 1, 7], 1);
        assert_eq!(engine.packet(&udp(CLIENT, elsewhere, 0)).decision, Decision::Rule(1.into()));
    });
}

#[test]
#[ignore = "needs root"]
fn every_entry_of_a_table_has_room_for_its_counters() {
    const ENTRIES: u16 = 5000;
    on_each(|engine| {
        let host = host();
        let sources = (0..ENTRIES).map(|number| number.to_be_bytes()).map(|[a, b]| [10, 3, a, b]);
        let list = sources.clone().map(|[a, b, c, d]| format!("{a}.{b}.{c}.{d} "));
        let list = list.collect::<String>();
        let text = format!("table <t> counters {{ {list} }}\nblock drop in from <t>\n");
        engine.load(&ruleset(&text, &host), &host).unwrap();
        for source in sources {
            assert_eq!(engine.packet(&udp((source, 1), SSH, 0)).verdict, Verdict::Drop);
        }
        let counted = engine.table_counters(&"t".into());
        assert_eq!(counted.entries.len(), usize::from(ENTRIES));
        assert!(
            counted.entries.values().all(|of| of.packets.as_flattened().iter().sum::<u64>() == 1)
        );
    });
}

/// Twelve states: the endpoint map has 16 entries, the largest power of two that fits, which is two
/// for each of eight endpoints.
#[test]
#[ignore = "needs root"]
fn an_endpoint_too_many_is_dropped_and_others_go_on() {
    let sizes = Sizes { states: 12, ..Sizes::test() };
    let mut engine = TestEngine::with_sizes(Evaluator::Compiled, &sizes).unwrap();
    let host = host();
    let text = "set limit states 12\npass in proto udp nat-to 10.0.2.7 endpoint-independent\n";
    engine.load(&ruleset(text, &host), &host).unwrap();
    let source = |number: u16| (CLIENT.0, CLIENT.1 + number);
    for number in 0..8 {
        assert_eq!(engine.packet(&udp(source(number), SSH, 0)).verdict, Verdict::Pass, "{number}");
    }
    let fate = engine.packet(&udp(source(8), SSH, 0));
    assert_eq!((fate.verdict, fate.counted), (Verdict::Drop, vec![Reason::Translate]));
    let elsewhere = ([10, 0, 1, 7], 1);
    assert_eq!(engine.packet(&udp(source(7), elsewhere, 0)).verdict, Verdict::Pass);
    assert_eq!(engine.states().len(), 9);
}

#[test]
#[ignore = "needs root"]
fn a_run_can_be_timed() {
    on_each(|engine| {
        let host = host();
        engine.load(&ruleset("block\n", &host), &host).unwrap();
        let packet = udp(CLIENT, SSH, 0);
        let filtered = engine.time_packet(&packet, 1000).unwrap();
        let empty = engine.time_empty_program(&packet, 1000).unwrap();
        assert_eq!((filtered.returned as i32, empty.returned as i32), (2, -1));
        assert!(filtered.duration > empty.duration, "{filtered:?} {empty:?}");
    });
}

/// Three segments of 1000, 1000 and 500 bytes. The headers of each segment count as bytes, and
/// `max-pkt-size` limits each segment.
#[test]
#[ignore = "needs root"]
fn joined_packets_count_as_their_segments() {
    const SCTP: u8 = 132;
    on_each(|engine| {
        let host = host();
        let sctp = {
            let header = [0x0f, 0xa0, 0x0f, 0x1c, 0, 0, 0, 1, 0, 0, 0, 0];
            let payload = [&header[..], &[0; 2500]].concat();
            other(CLIENT.0, SSH.0, SCTP, &payload)
        };
        for (packet, headers) in [(sctp, 20 + 12), (udp(CLIENT, SSH, 2500), 20 + 8)] {
            let longest = headers + 1000;
            for (limit, passes) in [(longest, true), (longest - 1, false)] {
                let rules = format!("pass in on em0 no state max-pkt-size {limit}\n");
                engine.load(&ruleset(&rules, &host), &host).unwrap();
                assert_eq!(
                    engine.run_joined(&packet, 3, 1000).unwrap(),
                    passes,
                    "{headers} {limit}"
                );
                let counted = engine.rule_counters(Some(&0.into()));
                if passes {
                    assert_eq!(counted.packets, [3, 0]);
                    assert_eq!(counted.bytes, [2500 + 3 * headers, 0]);
                }
            }
        }
    });
}

/// Each packet matches three of 600 rules with side effects, which act in their order.
#[test]
#[ignore = "needs root"]
fn matching_rules_with_side_effects_act_in_order() {
    on_each(|engine| {
        let host = host();
        let mut text = String::from("pass in proto udp\nmatch in proto udp set prio 7\n");
        for customer in 1..=150 {
            let of_customer = |more| format!("match in proto udp from 10.0.2.{customer} {more}\n");
            text += &of_customer(format!("set prio {}", customer % 7));
            text += &of_customer(format!("to port 22 set tos {}", 4 * (customer % 50)));
            text += &of_customer(format!("to port 23 tag C{customer}"));
            text += &format!("block in from ! 10.0.2.{customer} tagged C{customer}\n");
        }
        engine.load(&ruleset(&text, &host), &host).unwrap();
        for customer in [1, 2, 75, 149, 150] {
            let fate = engine.packet(&udp(([10, 0, 2, customer], 1), SSH, 0));
            assert_eq!(fate.verdict, Verdict::Pass, "{customer}");
            assert_eq!(fate.carried.prio, customer % 7, "{customer}");
            let tos = fate.out.map_or(0, |packet| packet[1]);
            assert_eq!(tos, 4 * (customer % 50), "{customer}");
        }
        let fate = engine.packet(&udp(CLIENT, SSH, 0));
        assert_eq!((fate.verdict, fate.carried.prio), (Verdict::Pass, 7));
    });
}

/// There are more candidates than the search notes, and every candidate is evaluated.
#[test]
#[ignore = "needs root"]
fn more_candidates_than_noted_are_all_evaluated() {
    on_each(|engine| {
        let host = host();
        let mut text = String::from("match in proto udp tag T99\n");
        for number in 0..100 {
            text += &format!("block in proto udp tagged T{number} set prio {}\n", number % 8);
        }
        text += "match in proto udp to port 22 set prio 5\nmatch in proto tcp set prio 6\n";
        engine.load(&ruleset(&text, &host), &host).unwrap();
        let fate = engine.packet(&udp(CLIENT, SSH, 0));
        assert_eq!((fate.verdict, fate.decision), (Verdict::Drop, Decision::Rule(100.into())));
        assert_eq!(engine.rule_counters(Some(&100.into())).packets, [1, 0]);
    });
}
