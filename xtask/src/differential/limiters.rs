//! Random limiters, and rules that use them.

use fastrand::Rng;

use super::pool::{Pool, one_in, pick};

/// Draws limiters of both kinds for some rule sets, and adds them to the pool for rules to use.
/// Some are not defined.
pub fn statements(rng: &mut Rng, pool: &mut Pool) -> Vec<String> {
    if !one_in(rng, 4) {
        return Vec::new();
    }
    pool.limiters = ["state limiter id 1", "state limiter id 2", "source limiter id 1"]
        .iter()
        .chain(&["source limiter id 2", "source limiter id 9"][..rng.usize(1..3)])
        .map(|text| (*text).to_owned())
        .collect();
    let mut lines = vec![
        format!("state limiter few id 1 limit {}{}", rng.u32(1..4), rate(rng)),
        format!("state limiter many id 2 limit {}{}", rng.u32(4..40), rate(rng)),
    ];
    for id in 1..3 {
        let mut line = format!(
            "source limiter each{id} id {id} entries {} limit {}{}",
            rng.u32(1..6),
            rng.u32(1..4),
            rate(rng)
        );
        if !pool.tables.is_empty() && one_in(rng, 2) {
            let above = rng.u32(1..3);
            line += &format!(" table <{}> above {above}", pick(rng, &pool.tables));
            line += &if one_in(rng, 4) { String::new() } else { format!(" below {above}") };
        }
        if one_in(rng, 3) {
            line += pick(rng, &[" inet mask 24", " inet mask 8", " inet mask 31"]);
        }
        if one_in(rng, 3) {
            line += pick(rng, &[" inet6 mask 64", " inet6 mask 48", " inet6 mask 127"]);
        }
        lines.push(line);
    }
    lines
}

fn rate(rng: &mut Rng) -> &'static str {
    pick(rng, &["", "", " rate 1/2", " rate 2/3", " rate 3/10", " rate 100/1"])
}

/// Draws the limiters that a rule uses.
pub fn uses(rng: &mut Rng, pool: &Pool) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for kind in ["state", "source"] {
        let of_kind: Vec<&String> =
            pool.limiters.iter().filter(|text| text.starts_with(kind)).collect();
        if !of_kind.is_empty() && one_in(rng, 3) {
            let what = pick(rng, &["", " (no-match)", " (block)"]);
            words.push(format!("{}{what}", pick(rng, &of_kind)));
        }
    }
    words
}
