//! The cost of the worst packets and of the worst ticks of the timer.

use std::time::{Duration, Instant};

use skipstep_kernel::object::Sizes;
use skipstep_model::{Draw, Packet};
use skipstep_ruleset::Direction;
use skipstep_ruleset::options::Evaluator;
use skipstep_scenario::Engine;
use skipstep_testing::TestEngine;
use skipstep_wire::build::{Tcp, Udp, ipv4};

use super::{CLIENT, SERVER, host, inbound, median, ruleset, text};

/// Number of ports of an unsuccessful port search.
const PORTS: u32 = 15_535;
/// Number of states that are swept and flushed.
const STATES: u32 = 200_000;
/// Number of rules that may be evaluated for one packet.
const STEPS: usize = 16_384;
/// Number of measured slices of a sweep. The median is printed.
const SLICES: usize = 15;

/// Number of sources of limiters that are swept.
const SOURCES: u32 = 100_000;

/// Measures each worst case. Returns lines of text with microseconds, or with `instructions` if the
/// machine's clock counts one instruction as a nanosecond.
///
/// # Errors
/// Fails if the kernel refuses a program or a rule set.
pub(super) fn run(instructions: bool) -> anyhow::Result<String> {
    let sizes =
        Sizes { states: STATES, rule_slots: 40_000, limited_sources: SOURCES, ..Sizes::test() };
    let mut engine = TestEngine::with_sizes(Evaluator::Linear, &sizes)?;
    let slice = sweep(&mut engine, 1)?;
    let removals = sweep(&mut engine, STATES)?;
    let lines = [
        ("search for a port, none of 15,535 free", port_search(&mut engine)?),
        ("overload flush, 200,000 states", flush(&mut engine)?),
        ("slice of a sweep, nothing to remove", slice),
        ("slice of a sweep, 512 removals", removals),
        ("slice of limiters' sources, none removed", limited(&mut engine, true)?),
        ("slice of limiters' sources, 512 removals", limited(&mut engine, false)?),
        ("walk over 16,384 rules", walk(&mut engine)?),
    ];
    let (unit, decimals, each) =
        if instructions { ("instructions", 0, 1e9) } else { ("microseconds", 1, 1e6) };
    let line = |(name, cost): (&str, Duration)| {
        format!("  {name:<42}{:>9.decimals$}\n", cost.as_secs_f64() * each)
    };
    let lines: String = lines.into_iter().map(line).collect();
    Ok(format!("Worst cases, {unit} of a packet or a tick:\n\n{lines}"))
}

/// Measures a packet for which no port of the address is free.
fn port_search(engine: &mut TestEngine) -> anyhow::Result<Duration> {
    let rules = "set timeout { adaptive.start 0, adaptive.end 0 }\n\
        pass out inet proto udp nat-to 10.0.0.9\n";
    engine.load(&ruleset(rules)?, &host()).map_err(anyhow::Error::msg)?;
    let flow = |port| Packet {
        direction: Direction::Out,
        ..inbound(ipv4(CLIENT, SERVER).udp(&Udp::new(port, 53).payload(&[0; 8])))
    };
    for port in 0..PORTS {
        engine.set_random(Draw::Bounded(port));
        engine.packet(&flow(1000 + port as u16));
    }
    engine.set_random(Draw::Bounded(7000));
    Ok(engine.time_packet(&flow(999), 200)?.duration)
}

/// Measures the segment that gives a source one connection too many, so its states are flushed.
fn flush(engine: &mut TestEngine) -> anyhow::Result<Duration> {
    let rules = "set limit states 200000\nset timeout { adaptive.start 0, adaptive.end 0 }\n\
        table <bad> persist\n\
        pass in proto tcp keep state (max-src-conn 1, overload <bad> flush global)\npass out\n";
    engine.load(&ruleset(rules)?, &host()).map_err(anyhow::Error::msg)?;
    engine.fill_states(STATES - 100, 1)?;
    let mut last = Duration::ZERO;
    for port in [4001, 4002] {
        let segment = |flags| Tcp::new(port, 80).flags(flags).seq(0).window(8192);
        let answer = Tcp::new(80, port).flags("SA").seq(0).ack(1).window(8192);
        engine.packet(&inbound(ipv4(CLIENT, SERVER).tcp(&segment("S"))));
        let out = Direction::Out;
        engine.packet(&Packet { direction: out, ..inbound(ipv4(SERVER, CLIENT).tcp(&answer)) });
        let end = inbound(ipv4(CLIENT, SERVER).tcp(&segment("A").seq(1).ack(1)));
        last = engine.time_packet(&end, 1)?.duration;
    }
    anyhow::ensure!(engine.pending_flushes() == 1, "no source was flushed");
    Ok(last)
}

/// Measures a slice of a sweep over states. Every `living`th state has not expired.
fn sweep(engine: &mut TestEngine, living: u32) -> anyhow::Result<Duration> {
    let rules = "set timeout { adaptive.start 0, adaptive.end 0 }\npass\n";
    engine.load(&ruleset(rules)?, &host()).map_err(anyhow::Error::msg)?;
    engine.set_time(1000);
    let mut costs = Vec::new();
    for _ in 0..SLICES {
        engine.fill_states(STATES, living)?;
        engine.sweep_slice()?;
        let start = Instant::now();
        engine.sweep_slice()?;
        costs.push(start.elapsed().as_secs_f64());
    }
    Ok(Duration::from_secs_f64(median(&mut costs)))
}

/// Measures a slice of a sweep over sources of limiters. With `stay` they stay, otherwise their
/// limiter no longer exists.
fn limited(engine: &mut TestEngine, stay: bool) -> anyhow::Result<Duration> {
    engine.load(&ruleset("pass\n")?, &host()).map_err(anyhow::Error::msg)?;
    engine.fill_limited_sources(SOURCES, u32::from(!stay), 1 << 30)?;
    let mut costs = Vec::new();
    for _ in 0..SLICES {
        let start = Instant::now();
        engine.sweep_limited_slice()?;
        costs.push(start.elapsed().as_secs_f64());
    }
    Ok(Duration::from_secs_f64(median(&mut costs)))
}

/// Measures a packet for which the most rules are evaluated.
fn walk(engine: &mut TestEngine) -> anyhow::Result<Duration> {
    engine.load(&ruleset(&text(STEPS - 1, " no state"))?, &host()).map_err(anyhow::Error::msg)?;
    let packet = inbound(ipv4(CLIENT, SERVER).tcp(&Tcp::new(40_000, 9000).flags("A").ack(1)));
    Ok(engine.time_packet(&packet, 100)?.duration)
}
