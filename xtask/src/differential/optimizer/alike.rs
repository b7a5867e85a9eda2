//! Rule sets that an optimizer can change: random rules, mixed with groups of similar rules and
//! with repeated rules.

use fastrand::Rng;

use super::super::pool::{Pool, TAGS, one_in, pick};
use super::super::rules;

/// Draws a text of pf.conf.
pub fn text(rng: &mut Rng, pool: &mut Pool) -> String {
    let others = rules::text(rng, pool).replace(", matches", "").replace("log (matches)", "log");
    // a label with `$nr` would kill the states of whichever rule has the number
    let others = others.replace("$nr:", "");
    let (mut lines, rules): (Vec<String>, Vec<String>) = others
        .lines()
        .map(lasting)
        .partition(|line| ["set ", "table ", "queue "].iter().any(|word| line.starts_with(word)));
    for rule in rules {
        if one_in(rng, 3) {
            lines.extend(group(rng, pool));
        }
        if one_in(rng, 6) {
            lines.push(rule.clone());
        }
        lines.push(rule);
    }
    lines.extend(group(rng, pool));
    lines.join("\n") + "\n"
}

/// Removes `once` and `max-pkt-rate` from a line, because they make a rule expire. Two such rules
/// match more packets than one, but pfctl removes a rule that another covers.
fn lasting(line: &str) -> String {
    let mut words = line.split(' ');
    let mut kept = Vec::new();
    while let Some(word) = words.next() {
        match word {
            "once" => {}
            "max-pkt-rate" => drop(words.next()),
            _ => kept.push(word),
        }
    }
    kept.join(" ")
}

/// The parts that most rules of a group share.
#[derive(Clone)]
struct Common {
    action: &'static str,
    log_quick: &'static str,
    direction: &'static str,
    interface: &'static str,
    protocol: &'static str,
    family: &'static str,
    options: &'static str,
}

/// Draws up to fourteen similar rules in a row.
fn group(rng: &mut Rng, pool: &mut Pool) -> Vec<String> {
    let common = common(rng);
    // there are few hosts, so rules often differ in another part only
    let mut hosts: Vec<String> = (0..rng.usize(1..12)).map(|_| host(rng, pool)).collect();
    let (mut ends, mut size) = (rng.u8(..4), rng.usize(2..15));
    if one_in(rng, 3) {
        // enough hosts for a table
        let all: Vec<String> = pool.ipv4.iter().map(ToString::to_string).collect();
        hosts = vec![format!("{{ {} }}", all.join(", "))];
        (ends, size) = (rng.u8(1..3), rng.usize(1..3));
    }
    let differ = rng.u32(1..6);
    let rule_of_group = |_| {
        let mut common = common.clone();
        if one_in(rng, differ) {
            vary(rng, &mut common);
        }
        rule(rng, &hosts, ends, &common)
    };
    (0..size).map(rule_of_group).collect()
}

fn common(rng: &mut Rng) -> Common {
    let actions = ["pass", "pass", "block", "block return", "block return-icmp", "match"];
    let action = pick(rng, &actions);
    let log_quick: &[&str] = if action == "match" {
        &["", "", " log"]
    } else {
        &["", "", " log", " quick", " log quick"]
    };
    Common {
        action,
        log_quick: pick(rng, log_quick),
        direction: pick(rng, DIRECTIONS),
        interface: pick(rng, INTERFACES),
        protocol: pick(rng, PROTOCOLS),
        family: "",
        options: pick(rng, options(action)),
    }
}

const DIRECTIONS: &[&str] = &["", "", "", " in", " out"];
const INTERFACES: &[&str] = &["", "", "", " on em0", " on ! em0", " on em1", " on egress"];
const PROTOCOLS: &[&str] = &["", "", "", " proto tcp", " proto udp"];

fn options(action: &str) -> &'static [&'static str] {
    match action {
        "pass" => {
            &["", "", " no state", " keep state (udp.first 5)", " keep state (max 3)", " tag A"]
        }
        "match" => &["", " scrub (min-ttl 70)", " set prio 6", " tag B", " scrub (max-mss 700)"],
        _ => &["", "", " tag T", " probability 50%"],
    }
}

fn vary(rng: &mut Rng, common: &mut Common) {
    match rng.u8(..7) {
        0 | 1 => common.direction = pick(rng, DIRECTIONS),
        2 => common.interface = pick(rng, INTERFACES),
        3 => common.protocol = pick(rng, PROTOCOLS),
        4 => common.family = pick(rng, &[" inet", " inet6"]),
        5 if common.action == "block return-icmp" => common.action = "block return-icmp(1, 1)",
        _ => common.options = pick(rng, options(common.action)),
    }
}

/// Writes a rule. Bit 1 of `ends` puts a host in the source, bit 2 in the destination.
fn rule(rng: &mut Rng, hosts: &[String], ends: u8, common: &Common) -> String {
    let Common { action, log_quick, direction, interface, protocol, family, options } = common;
    let port = if protocol.is_empty() || !one_in(rng, 4) { "" } else { " port 22:80" };
    let mut end = |bit: u8| if ends & bit != 0 { pick(rng, hosts) } else { "any".to_string() };
    let (from, to) = (end(1), end(2));
    let tagged =
        if one_in(rng, 20) { format!(" tagged {}", pick(rng, TAGS)) } else { String::new() };
    format!(
        "{action}{direction}{log_quick}{interface}{family}{protocol} from {from} to \
         {to}{port}{options}{tagged}"
    )
}

fn host(rng: &mut Rng, pool: &mut Pool) -> String {
    let ipv6 = one_in(rng, 5);
    match rng.u8(..12) {
        0 => format!("! {}", pool.network(rng, ipv6)),
        1 => "no-route".to_string(),
        2 if !pool.tables.is_empty() => format!("<{}>", pick(rng, &pool.tables)),
        3 => "(em0)".to_string(),
        4..8 => pool.network(rng, ipv6),
        _ if ipv6 => pick(rng, &pool.ipv6).to_string(),
        _ => pick(rng, &pool.ipv4).to_string(),
    }
}
