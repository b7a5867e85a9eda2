//! The settings of a rule set as `set` lines, defaults included.

use crate::words::debug_level_name;
use skipstep_ruleset::{
    BlockPolicy, Evaluator, FastForward, Limits, Optimization, Options, StatePolicy, Syncookies,
    Timeout, Unattached,
};

/// Returns a line for each setting, in a fixed order.
pub fn lines(options: &Options) -> Vec<String> {
    let Options {
        timeouts,
        limits,
        block_policy,
        state_policy,
        skip,
        loginterface,
        reassemble,
        reassemble_no_df,
        evaluator,
        fast_forward,
        unattached,
        xdp,
        hostid,
        fingerprints,
        syncookies,
        debug,
        ruleset_optimization,
        fail_policy,
        keep_counters,
    } = options;
    let yes = |yes: &bool| if *yes { "yes" } else { "no" };
    let no_df = if *reassemble_no_df { " no-df" } else { "" };
    let mut lines: Vec<String> = Timeout::ALL
        .iter()
        .map(|timeout| format!("set timeout {} {}", timeout.name(), timeouts.get(*timeout)))
        .collect();
    lines.extend(limit_lines(limits));
    lines.extend(skip.iter().map(|interface| format!("set skip on {interface}")));
    lines.extend(xdp.iter().map(|interface| format!("set xdp on {interface}")));
    lines.extend([
        format!("set block-policy {}", policy(block_policy)),
        format!(
            "set state-policy {}",
            match state_policy {
                StatePolicy::IfBound => "if-bound",
                StatePolicy::Floating => "floating",
            }
        ),
        format!("set loginterface {}", loginterface.as_deref().unwrap_or("none")),
        format!("set reassemble {}{no_df}", yes(reassemble)),
        format!(
            "set evaluator {}",
            match evaluator {
                Evaluator::Linear => "linear",
                Evaluator::SkipSteps => "skip-steps",
                Evaluator::Compiled => "compiled",
            }
        ),
        format!(
            "set fast-forward {}",
            match fast_forward {
                FastForward::No => "no",
                FastForward::Auto => "auto",
                FastForward::Yes => "yes",
            }
        ),
        format!(
            "set unattached {}",
            match unattached {
                Unattached::Block => "block",
                Unattached::Pass => "pass",
            }
        ),
        format!(
            "set syncookies {}",
            match syncookies {
                Syncookies::Never => "never".to_string(),
                Syncookies::Always => "always".to_string(),
                Syncookies::Adaptive { start, end } => {
                    format!("adaptive (start {start}%, end {end}%)")
                }
            }
        ),
        format!("set debug {}", debug_level_name(*debug)),
        format!(
            "set ruleset-optimization {}",
            match ruleset_optimization {
                Optimization::None => "none",
                Optimization::Basic => "basic",
                Optimization::Profile => "profile",
            }
        ),
    ]);
    lines.push(format!("set fail-policy {}", policy(fail_policy)));
    lines.extend(keep_counters.then(|| "set keepcounters".to_string()));
    lines.extend(hostid.map(|id| format!("set hostid 0x{id:08x}")));
    lines.extend(fingerprints.iter().map(|file| format!("set fingerprints \"{file}\"")));
    lines
}

fn policy(policy: &BlockPolicy) -> &'static str {
    match policy {
        BlockPolicy::Drop => "drop",
        BlockPolicy::Return => "return",
    }
}

fn limit_lines(limits: &Limits) -> [String; 7] {
    let Limits { states, src_nodes, frags, tables, table_entries, pktdelay_pkts, anchors } = limits;
    [
        ("states", states),
        ("src-nodes", src_nodes),
        ("frags", frags),
        ("tables", tables),
        ("table-entries", table_entries),
        ("pktdelay-pkts", pktdelay_pkts),
        ("anchors", anchors),
    ]
    .map(|(name, limit)| format!("set limit {name} {limit}"))
}
