//! Application of `set` statements, and their output by `pfctl -nv`.

use skipstep_ruleset::rule::InterfaceMatch;
use skipstep_ruleset::{
    BlockPolicy, Evaluator, FastForward, Limits, Not, Options, StatePolicy, Syncookies, Timeout,
    Unattached,
};

use crate::ast::{Limit, Setting};
use crate::print::{self, quoted};

/// The limits of `set limit`, by name.
pub const LIMITS: [(&str, Limit); 7] = [
    ("states", Limit::States),
    ("src-nodes", Limit::SrcNodes),
    ("frags", Limit::Frags),
    ("tables", Limit::Tables),
    ("table-entries", Limit::TableEntries),
    ("pktdelay-pkts", Limit::PktdelayPkts),
    ("anchors", Limit::Anchors),
];

/// A value of `set optimization`: its name, and the timeouts that it sets.
type Profile = (&'static str, [(Timeout, u32); 7]);

const fn timeouts(values: [u32; 7]) -> [(Timeout, u32); 7] {
    [
        (Timeout::TcpFirst, values[0]),
        (Timeout::TcpOpening, values[1]),
        (Timeout::TcpEstablished, values[2]),
        (Timeout::TcpClosing, values[3]),
        (Timeout::TcpFinwait, values[4]),
        (Timeout::TcpClosed, values[5]),
        (Timeout::TcpTsdiff, values[6]),
    ]
}

/// The values of `set optimization` (pf-semantics section 1). Timeouts are in seconds.
pub const PROFILES: [Profile; 6] = [
    ("default", timeouts([120, 30, 86_400, 900, 45, 90, 30])),
    ("normal", timeouts([120, 30, 86_400, 900, 45, 90, 30])),
    ("satellite", timeouts([180, 35, 86_400, 905, 50, 95, 60])),
    ("high-latency", timeouts([180, 35, 86_400, 905, 50, 95, 60])),
    ("conservative", timeouts([3_600, 900, 432_000, 3_600, 600, 180, 60])),
    ("aggressive", timeouts([30, 5, 18_000, 60, 30, 30, 10])),
];

/// Names of debug levels, in the order of syslog levels.
pub const DEBUG_LEVELS: [&str; 8] =
    ["emerg", "alert", "crit", "err", "warning", "notice", "info", "debug"];

/// Returns the limit with this name. Case does not matter.
pub fn limit_by_name(name: &str) -> Option<Limit> {
    LIMITS.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, limit)| *limit)
}

/// Returns the value of `set optimization` with this name. Case does not matter.
pub fn profile(name: &str) -> Option<&'static Profile> {
    static TABLE: [Profile; 6] = PROFILES;
    TABLE.iter().find(|(known, _)| known.eq_ignore_ascii_case(name))
}

/// Returns the debug level for a name or a number. Case does not matter.
pub fn debug_level(name: &str) -> Option<u8> {
    let other = [
        ("error", 3),
        ("panic", 0),
        ("warn", 4),
        // names of FreeBSD, and of OpenBSD before 4.8
        ("none", 2),
        ("urgent", 3),
        ("misc", 5),
        ("loud", 7),
    ];
    let other =
        other.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, level)| *level);
    let by_name = || {
        DEBUG_LEVELS
            .iter()
            .position(|level| level.eq_ignore_ascii_case(name))
            .map(|level| level as u8)
    };
    other.or_else(by_name).or_else(|| name.parse().ok().filter(|level| *level < 8))
}

fn limit_value(limits: &mut Limits, limit: Limit) -> &mut u32 {
    match limit {
        Limit::States => &mut limits.states,
        Limit::SrcNodes => &mut limits.src_nodes,
        Limit::Frags => &mut limits.frags,
        Limit::Tables => &mut limits.tables,
        Limit::TableEntries => &mut limits.table_entries,
        Limit::PktdelayPkts => &mut limits.pktdelay_pkts,
        Limit::Anchors => &mut limits.anchors,
    }
}

/// Applies a setting to the options. `state-defaults` concerns rules and changes no option.
pub fn apply(setting: &Setting, options: &mut Options) {
    match setting {
        Setting::Timeout(timeout, value, _) => options.timeouts.set(*timeout, *value),
        Setting::Limit(limit, value, _) => *limit_value(&mut options.limits, *limit) = *value,
        Setting::Fingerprints(file) => options.fingerprints = Some(file.clone()),
        Setting::Syncookies(syncookies, _) => options.syncookies = *syncookies,
        Setting::Optimization(name, _) => {
            for (timeout, value) in profile(name).iter().flat_map(|(_, values)| values) {
                options.timeouts.set(*timeout, *value);
            }
        }
        Setting::RulesetOptimization(optimization) => options.ruleset_optimization = *optimization,
        Setting::BlockPolicy(policy) => options.block_policy = *policy,
        Setting::StatePolicy(policy) => options.state_policy = *policy,
        Setting::StateDefaults(_) => {}
        Setting::Loginterface(interface) => options.loginterface.clone_from(interface),
        Setting::Skip(on) => add_interfaces(&mut options.skip, on),
        Setting::Xdp(on) => add_interfaces(&mut options.xdp, on),
        Setting::Reassemble { on, no_df } => {
            (options.reassemble, options.reassemble_no_df) = (*on, *on && *no_df)
        }
        Setting::Evaluator(evaluator) => options.evaluator = *evaluator,
        Setting::FastForward(fast_forward) => options.fast_forward = *fast_forward,
        Setting::Unattached(unattached) => options.unattached = *unattached,
        Setting::Hostid(hostid) => options.hostid = Some(*hostid),
        Setting::Debug(level) => options.debug = *level,
        Setting::FailPolicy(policy) => options.fail_policy = *policy,
        Setting::KeepCounters => options.keep_counters = true,
        Setting::RequireOrder(_) => {}
    }
}

/// Returns the adaptive timeouts, as numbers of states, that follow from a limit of states.
pub fn adaptive(states: u32) -> [(Timeout, u32); 2] {
    [
        (Timeout::AdaptiveStart, states / 10 * 6),
        (Timeout::AdaptiveEnd, (states / 10).saturating_mul(12)),
    ]
}

/// Returns the setting as `pfctl -nv` prints it; `None` for settings that it does not print.
pub fn echo(setting: &Setting) -> Option<String> {
    let text = match setting {
        // signed, as in pfctl
        Setting::Timeout(_, value, written) => format!("timeout {written} {}", *value as i32),
        Setting::Limit(_, value, written) => format!("limit {written} {}", *value as i32),
        Setting::Optimization(_, written) => format!("optimization {written}"),
        Setting::Fingerprints(file) => format!("fingerprints {}", quoted(file)),
        Setting::Syncookies(Syncookies::Never, _) => "syncookies never".to_string(),
        Setting::Syncookies(Syncookies::Always, _) => "syncookies always".to_string(),
        Setting::Syncookies(Syncookies::Adaptive { start, end }, true) => {
            format!("syncookies adaptive (start {start}%, end {end}%)")
        }
        Setting::Syncookies(Syncookies::Adaptive { .. }, false) => {
            "syncookies adaptive".to_string()
        }
        Setting::RulesetOptimization(_) | Setting::StateDefaults(_) => return None,
        Setting::BlockPolicy(BlockPolicy::Drop) => "block-policy drop".to_string(),
        Setting::BlockPolicy(BlockPolicy::Return) => "block-policy return".to_string(),
        Setting::StatePolicy(StatePolicy::IfBound) => "state-policy if-bound".to_string(),
        Setting::StatePolicy(StatePolicy::Floating) => "state-policy floating".to_string(),
        Setting::Loginterface(interface) => {
            format!("loginterface {}", interface.as_deref().unwrap_or("none"))
        }
        Setting::Skip(on) => format!("skip on {}", interfaces(on)),
        Setting::Xdp(on) => format!("xdp on {}", interfaces(on)),
        Setting::Reassemble { on, no_df } => {
            format!(
                "reassemble {} {}",
                if *on { "yes" } else { "no" },
                if *no_df { "no-df" } else { "" }
            )
        }
        Setting::Evaluator(Evaluator::Linear) => "evaluator linear".to_string(),
        Setting::Evaluator(Evaluator::SkipSteps) => "evaluator skip-steps".to_string(),
        Setting::Evaluator(Evaluator::Compiled) => "evaluator compiled".to_string(),
        Setting::FastForward(FastForward::No) => "fast-forward no".to_string(),
        Setting::FastForward(FastForward::Auto) => "fast-forward auto".to_string(),
        Setting::FastForward(FastForward::Yes) => "fast-forward yes".to_string(),
        Setting::Unattached(Unattached::Block) => "unattached block".to_string(),
        Setting::Unattached(Unattached::Pass) => "unattached pass".to_string(),
        Setting::Hostid(hostid) => format!("hostid 0x{hostid:08x}"),
        Setting::Debug(level) => format!("debug {}", DEBUG_LEVELS[usize::from(*level)]),
        Setting::FailPolicy(BlockPolicy::Drop) => "fail-policy drop".to_string(),
        Setting::FailPolicy(BlockPolicy::Return) => "fail-policy return".to_string(),
        Setting::KeepCounters => "keepcounters".to_string(),
        Setting::RequireOrder(required) => {
            format!("require-order {}", if *required { "yes" } else { "no" })
        }
    };
    Some(format!("set {text}"))
}

/// Adds the interfaces of `set skip on` or `set xdp on` to earlier ones. `none` clears the list.
fn add_interfaces(to: &mut Vec<String>, on: &[Not<InterfaceMatch>]) {
    if is_none(on) {
        return to.clear();
    }
    to.extend(on.iter().map(|interface| match &interface.value {
        InterfaceMatch::Named(name) => name.clone(),
        any => print::interface(any).into_owned(),
    }));
}

fn interfaces(on: &[Not<InterfaceMatch>]) -> String {
    if is_none(on) {
        return "none".to_string();
    }
    let names: String =
        on.iter().map(|interface| format!(" {}", print::interface(&interface.value))).collect();
    format!("{{{names} }}")
}

/// True for `on none`.
pub fn is_none(on: &[Not<InterfaceMatch>]) -> bool {
    match on {
        [] => true,
        [only] => !only.negated && only.value == InterfaceMatch::Named("none".to_string()),
        _ => false,
    }
}
