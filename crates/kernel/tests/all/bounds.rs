//! Bounds of the work for a packet: the data plane's searches are bounded, and agree with the
//! model's.

use std::time::{Duration, Instant};

use crate::common::shared_engine::ENGINES;
use crate::common::{host, ruleset, tcp, udp};
use skipstep_kernel::object::Sizes;
use skipstep_model::{Draw, Fate, Packet, Verdict};
use skipstep_ruleset::{Direction, Evaluator, Reason};
use skipstep_scenario::{Engine, Model};
use skipstep_testing::TestEngine;
use skipstep_views::StateView;

/// Largest number of ports that are tried for one packet.
const MOST_PROBES: u64 = 1536;

/// Largest number of states that a slice of a sweep examines, and that it removes.
const SLICE: u32 = 8192;
const SLICE_REMOVALS: u32 = 512;

/// Largest number of limiters' sources that a slice of a sweep examines.
const LIMITED_SLICE: u32 = 2048;

/// Rules without adaptive timeouts.
const TEXT: &str = "set timeout { interval 1, adaptive.start 0, adaptive.end 0 }\npass\n";

/// Returns the number of states for the test of a large table: SKIPSTEP_STATES. The long tier sets
/// it to more than one loop of a BPF program can walk.
fn many_states() -> u32 {
    let said = std::env::var("SKIPSTEP_STATES").ok();
    said.map_or(200_000, |said| said.parse().expect("SKIPSTEP_STATES is a number"))
}

/// The data plane and the model under the same rules.
struct Both<'a> {
    engine: &'a mut TestEngine,
    model: Model,
}

impl<'a> Both<'a> {
    fn load(engine: &'a mut TestEngine, text: &str) -> Self {
        let (host, mut model) = (host(), Model::new());
        let rules = ruleset(text, &host);
        engine.load(&rules, &host).unwrap();
        model.load(&rules, &host).unwrap();
        Both { engine, model }
    }

    /// Runs a packet in both. Returns their fate, which must agree, and the number of searches.
    fn packet(&mut self, packet: &Packet) -> (Fate, u64) {
        let before = self.engine.status().searches;
        let (fate, expected) = (self.engine.packet(packet), self.model.packet(packet));
        assert_eq!(fate, expected);
        (fate, self.engine.status().searches - before)
    }

    /// Sends a packet out of em1 from a port of the client. Returns true if its flow gets a
    /// translated port, and the number of searches.
    fn passes(&mut self, port: u16) -> (bool, u64) {
        let packet = udp(([10, 0, 1, 5], port), ([198, 51, 100, 7], 53), 0);
        let out = Direction::Out;
        let packet = Packet { direction: out, interface: "em1".to_owned(), ..packet };
        let (fate, searches) = self.packet(&packet);
        if fate.verdict == Verdict::Drop {
            assert!(fate.counted.contains(&Reason::Translate), "{fate:?}");
        }
        (fate.verdict == Verdict::Pass, searches)
    }

    fn set_random(&mut self, number: u32) {
        self.engine.set_random(Draw::Bounded(number));
        self.model.set_random(Draw::Bounded(number));
    }

    fn kill(&mut self, ids: &[u64]) {
        self.engine.kill(ids);
        self.model.kill(ids);
    }

    fn ids(&mut self) -> Vec<u64> {
        let states = self.engine.states();
        let in_short = |states: &[StateView]| {
            let of = |state: &StateView| (state.id, state.wire, state.src, state.expires_at);
            states.iter().map(of).collect::<Vec<_>>()
        };
        assert_eq!(in_short(&states), in_short(&self.model.states()));
        states.iter().map(|state| state.id).collect()
    }
}

/// Runs a test on the engine of each evaluator.
fn on_each(test: fn(&mut TestEngine)) {
    ENGINES.iter().for_each(|engine| engine.run(test));
}

#[test]
#[ignore = "needs root"]
fn a_search_for_a_port_ends_soon_and_finds_one_where_1_in_64_is_free() {
    on_each(|engine| {
        let rule = "pass out on em1 inet proto udp nat-to 10.0.2.1 port 20000:23967";
        let mut both = Both::load(engine, rule);
        for port in 0..3968 {
            both.set_random(port);
            assert!(both.passes(1000 + port as u16).0);
        }
        for draw in [0, 1000, 3967] {
            both.set_random(draw);
            let (passes, searches) = both.passes(999);
            assert!(!passes && searches <= MOST_PROBES + 1, "{searches} for one packet");
        }
        // one port in 64 becomes free: all in a row, which OpenBSD's order reaches last
        let ids = both.ids();
        both.kill(&ids[..62]);
        for draw in 62..112 {
            both.set_random(draw);
            assert!(both.passes(999).0, "draw {draw}");
            let newest = *both.ids().last().unwrap();
            both.kill(&[newest]);
        }
    });
}

#[test]
#[ignore = "needs root"]
fn a_search_among_several_addresses_finds_the_one_with_free_ports() {
    on_each(|engine| {
        let rule = "pass out on em1 inet proto udp nat-to 10.0.2.8/30 port 20000:20499 round-robin";
        let mut both = Both::load(engine, rule);
        let mut passed = 0;
        for port in 0..2200u16 {
            both.set_random(u32::from(port) * 7 % 500);
            let (passes, searches) = both.passes(1000 + port);
            assert!(searches <= MOST_PROBES + 1, "{searches} for one packet");
            passed += usize::from(passes);
        }
        assert!((1970..=2000).contains(&passed), "{passed} of 2000 ports were found");
        both.ids();
    });
}

#[test]
#[ignore = "needs root"]
fn a_search_among_the_ranges_of_a_port_set_goes_to_any_of_them() {
    on_each(|engine| {
        let rules = "nat on em1 inet proto udp -> 192.0.2.1 map-e-portset 4/1/1\npass\n";
        let mut both = Both::load(engine, rules);
        // the first 128 ports of four ranges, and then random ones
        for port in 0..1200u16 {
            let (passes, searches) = both.passes(1000 + port);
            assert!(passes && searches <= MOST_PROBES + 1, "{port}: {searches} for one packet");
        }
        both.ids();
    });
}

#[test]
#[ignore = "needs root"]
fn a_sweep_goes_through_a_large_table_in_slices() {
    let count = many_states();
    let test = move || {
        let host = host();
        let sizes = Sizes { states: count, ..Sizes::test() };
        let mut engine = TestEngine::with_sizes(Evaluator::Compiled, &sizes).unwrap();
        engine.load(&ruleset(TEXT, &host), &host).unwrap();

        engine.fill_states(count, 1).unwrap();
        for _ in 0..=count / SLICE {
            assert!(engine.sweep_slice().unwrap() <= SLICE);
        }
        assert_eq!(engine.state_count(), count, "none has expired");

        engine.fill_states(count, 2).unwrap();
        assert_eq!(engine.sweep_at(1000).unwrap(), count / 2);
        assert_eq!(engine.state_count(), count / 2, "a sweep of all comes to the end of the table");

        engine.fill_states(count, count).unwrap();
        let before = engine.state_count();
        let seen = engine.sweep_slice().unwrap();
        assert!(seen <= SLICE);
        assert_eq!(before - engine.state_count(), SLICE_REMOVALS);
        assert_eq!(engine.start_timer().unwrap(), 0);
        let deadline = Instant::now() + Duration::from_secs(600);
        while engine.state_count() > 1 {
            assert!(Instant::now() < deadline, "{} states are left", engine.state_count());
            std::thread::sleep(Duration::from_millis(100));
        }
    };
    std::thread::spawn(test).join().unwrap();
}

#[test]
#[ignore = "needs root"]
fn a_sweep_goes_through_the_sources_of_limiters_in_slices() {
    const COUNT: u32 = 10_000;
    let test = || {
        let host = host();
        let sizes = Sizes { limited_sources: 16_384, ..Sizes::test() };
        let mut engine = TestEngine::with_sizes(Evaluator::Compiled, &sizes).unwrap();
        engine.load(&ruleset(TEXT, &host), &host).unwrap();

        engine.fill_limited_sources(COUNT, 0, 1 << 30).unwrap();
        let seen: Vec<u32> = (0..6).map(|_| engine.sweep_limited_slice().unwrap()).collect();
        assert_eq!(seen, [LIMITED_SLICE; 6]);
        assert_eq!(engine.limited_count(), COUNT, "none has expired");

        // the first slices look at sources that stay
        engine.fill_limited_sources(1500, 1, 0).unwrap();
        let mut before = engine.limited_count();
        for _ in 0..=(COUNT + 1500) / SLICE_REMOVALS {
            assert!(engine.sweep_limited_slice().unwrap() <= LIMITED_SLICE);
            assert!(before - engine.limited_count() <= SLICE_REMOVALS);
            before = engine.limited_count();
        }
        assert_eq!(before, COUNT, "those whose limiter is gone have gone");

        engine.fill_limited_sources(2000, 1, 0).unwrap();
        assert_eq!(engine.start_timer().unwrap(), 0);
        let deadline = Instant::now() + Duration::from_secs(600);
        while engine.limited_count() > COUNT {
            assert!(Instant::now() < deadline, "{} sources are left", engine.limited_count());
            std::thread::sleep(Duration::from_millis(100));
        }
    };
    std::thread::spawn(test).join().unwrap();
}

#[test]
#[ignore = "needs root"]
fn a_flush_ends_states_at_once_and_leaves_the_walk_to_the_timer() {
    on_each(|engine| {
        let rules = "set timeout { adaptive.start 0, adaptive.end 0 }\ntable <bad> persist\npass\n\
            pass in proto tcp keep state (max-src-conn 1, overload <bad> flush global)\n";
        let mut both = Both::load(engine, rules);
        let client = ([10, 0, 1, 9], 4000);
        let datagram = udp(client, ([10, 0, 1, 1], 53), 0);
        let kept = udp(([10, 0, 1, 8], 4000), ([10, 0, 1, 1], 53), 0);
        let (old, other) = (both.packet(&datagram).0, both.packet(&kept).0);
        // the second complete handshake is one connection too many
        for port in [4001, 4002] {
            let (from, to) = ((client.0, port), ([10, 0, 1, 1], 80));
            let answer = Packet { direction: Direction::Out, ..tcp(to, from, "SA") };
            for packet in [tcp(from, to, "S"), answer, tcp(from, to, "A")] {
                both.packet(&packet);
            }
        }
        assert_eq!(both.engine.pending_flushes(), 1, "the packet did not walk through all states");
        both.ids();
        assert_ne!(both.packet(&datagram).0.state, old.state, "the flushed state is found");
        assert_eq!(both.packet(&kept).0.state, other.state, "another source's state is gone");
        both.ids();
        both.engine.set_time(10);
        both.model.set_time(10);
        assert_eq!(both.engine.pending_flushes(), 0);
        both.ids();
    });
}
