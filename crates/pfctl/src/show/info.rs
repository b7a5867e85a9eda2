//! `-s info`: prints status and counters.

use serde_json::{Map, Value, json};
use skipstep_kernel::report::{FragmentStatus, LIMIT_COUNTERS};
use skipstep_kernel::trial::TrialView;
use skipstep_kernel::{DelayCounters, DivertCounters};
use skipstep_ruleset::{Reason, SyncookieMarks};
use skipstep_views::Status;

use super::interfaces::InterfaceTraffic;
use super::{Detail, Traffic, duration};
use crate::words::debug_level_name;

/// Fast-path bypass reasons: upper devices, other programs, IPsec and netfilter have to see some
/// packets on the kernel's own forwarding path. Each reason has a name for the text and one for
/// JSON, in the order of `enum pf_left_to` of bpf/abi/status.h.
pub const LEFT_TO: [(&str, &str); 4] = [
    ("left to upper devices", "upper"),
    ("left to other programs", "program"),
    ("left to IPsec", "ipsec"),
    ("left to netfilter", "netfilter"),
];

/// Status and counters of the filter. The default is that of a filter that was never enabled.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct InfoView {
    /// True if the filter is enabled.
    pub enabled: bool,
    /// Seconds since the filter was enabled or disabled; 0 if it never was.
    pub seconds: u64,
    /// Debug level from 0 (emerg) to 7 (debug), as in syslog.
    pub debug: u8,
    /// Host id: `set hostid`, or a random number.
    pub hostid: u32,
    /// MD5 of the main rules ([`crate::views::checksum`]).
    pub checksum: [u8; 16],
    /// Interface of `set loginterface` with its counters.
    pub interface: Option<InterfaceTraffic>,
    /// Counters of states and reasons.
    pub status: Status,
    /// TCP states whose creator has not completed the handshake.
    pub half_open: u64,
    /// Numbers of half-open states at which `set syncookies adaptive` begins and ends.
    pub syncookie_marks: SyncookieMarks,
    /// Counters of fragments that wait for reassembly, and of reassembly itself.
    pub fragments: FragmentStatus,
    /// Log records that were lost because the reader was too slow. JSON only.
    pub log_lost: u64,
    /// Flow records that were lost because the reader was too slow. JSON only.
    pub flow_lost: u64,
    /// Seconds by which the timer of the state sweep is overdue. Printed only if something is
    /// wrong.
    pub sweep_late: u64,
    /// Number of failed starts of the sweep's timer, and the errno of the latest failure.
    pub timer_errors: (u32, u32),
    /// The load on trial. Printed only if there is one.
    pub trial: Option<TrialView>,
    /// Packets that the fast path forwarded, on tcx and in XDP. Not in OpenBSD's text.
    // Differs from OpenBSD: linux.md, "Counters of the fast path"
    pub forwarded: [u64; 2],
    /// Packets that were left to the kernel's forwarding, in the order of [`LEFT_TO`]. Not in
    /// OpenBSD's text.
    pub left_to: [u64; LEFT_TO.len()],
    /// Counters of diverted packets, which OpenBSD has in netstat. JSON only.
    // Differs from OpenBSD: linux.md, "Counters of diverted packets"
    pub divert: DivertCounters,
    /// Diverted packets that were lost on the way to skipstepd. JSON only.
    pub divert_lost: u64,
    /// Counters of delayed packets. JSON only.
    pub delay: DelayCounters,
}

/// Seconds by which a sweep may be late without a message, because timers are not exact to the
/// second.
pub(crate) const SWEEP_MAY_BE_LATE: u64 = 2;

/// Prints the status; with `-v` also sources, fragments, limit counters and the fast path.
pub fn text(view: &InfoView, detail: Detail) -> String {
    let mut text = status_line(view);
    if let Some(pending) = &view.trial {
        text += &format!(
            "On trial: the rules before come back in {} s (pfctl -s confirm)\n\n",
            pending.seconds_left
        );
    }
    if detail.verbose() {
        let checksum: String = view.checksum.iter().map(|byte| format!("{byte:02x}")).collect();
        text += &format!("Hostid:   0x{:08x}\nChecksum: 0x{checksum}\n\n", view.hostid);
    }
    if let Some(interface) = &view.interface {
        text += &interface_lines(interface);
    }
    let status = &view.status;
    text += &format!("{:<27} {:>14} {:>16}\n", "State Table", "Total", "Rate");
    text += &current_line("current entries", status.states);
    text += &current_line("half-open tcp", view.half_open);
    text += &counter_line("searches", status.searches, view.seconds);
    text += &counter_line("inserts", status.inserts, view.seconds);
    text += &counter_line("removals", status.removals, view.seconds);
    if detail.verbose() {
        let sources =
            [status.sources, status.source_searches, status.source_inserts, status.source_removals];
        let FragmentStatus { current, searches, inserts, removals, .. } = view.fragments;
        let fragments = [current, searches, inserts, removals];
        for (table, counts) in [("Source Tracking Table", sources), ("Fragments", fragments)] {
            let [current, counts @ ..] = counts;
            text += &format!("{table}\n");
            text += &current_line("current entries", current);
            for (counter, count) in ["searches", "inserts", "removals"].into_iter().zip(counts) {
                text += &counter_line(counter, count, view.seconds);
            }
        }
    }
    text += "Counters\n";
    for reason in Reason::ALL {
        let count = status.reasons[reason as usize];
        // Differs from OpenBSD: linux.md, "More reasons"
        // OpenBSD's output has no lines for the reasons that only skipstep has
        if reason.is_of_pf() || count != 0 {
            text += &counter_line(reason.name(), count, view.seconds);
        }
    }
    if detail.verbose() {
        text += "Limit Counters\n";
        for (name, count) in LIMIT_COUNTERS.into_iter().zip(view.status.limits) {
            text += &counter_line(name, count, view.seconds);
        }
        text += "Adaptive Syncookies Watermarks\n";
        let marks = view.syncookie_marks;
        for (name, states) in [("start", marks.start), ("end", marks.end)] {
            text += &format!("  {name:<25} {states:>14} states\n");
        }
        text += &fast_forward_lines(view);
    }
    text + &sweep_lines(view)
}

/// Prints the problems of the sweep of expired states; usually nothing.
fn sweep_lines(view: &InfoView) -> String {
    let mut text = String::new();
    if view.enabled && view.sweep_late > SWEEP_MAY_BE_LATE {
        text += &format!(
            "  {} seconds late: states expire after their timeouts, because timers of this machine \
             are late\n",
            view.sweep_late
        );
    }
    let (errors, latest) = view.timer_errors;
    if errors != 0 {
        text += &format!(
            "  the kernel failed to start the timer {errors} times (errno {latest}): run pfctl -e \
             to start it\n"
        );
    }
    if text.is_empty() { text } else { format!("Sweep\n{text}") }
}

fn status_line(view: &InfoView) -> String {
    let mut line = format!("Status: {}", if view.enabled { "Enabled" } else { "Disabled" });
    if view.seconds > 0 {
        line += &format!(" for {}", duration(view.seconds));
    }
    format!("{line:<44}{:>15}\n\n", format!("Debug: {}", debug_level_name(view.debug)))
}

fn interface_lines(interface: &InterfaceTraffic) -> String {
    let pair = |what: &dyn Fn(&[[Traffic; 2]; 2]) -> u64| interface.traffic.each_ref().map(what);
    let bytes = |dir: usize| pair(&|family| family[dir].iter().map(|traffic| traffic.bytes).sum());
    let packets = |dir: usize, verdict: usize| pair(&|family| family[dir][verdict].packets);
    let wide = |name, [v4, v6]: [u64; 2]| format!("  {name:<25} {v4:>14} {v6:>16}\n");
    let narrow = |name, [v4, v6]: [u64; 2]| format!("    {name:<23} {v4:>14} {v6:>16}\n");
    [
        format!("Interface Stats for {:<16} {:>5} {:>16}\n", interface.name, "IPv4", "IPv6"),
        wide("Bytes In", bytes(0)),
        wide("Bytes Out", bytes(1)),
        "  Packets In\n".into(),
        narrow("Passed", packets(0, 0)),
        narrow("Blocked", packets(0, 1)),
        "  Packets Out\n".into(),
        narrow("Passed", packets(1, 0)),
        narrow("Blocked", packets(1, 1)) + "\n",
    ]
    .concat()
}

/// Prints the packets forwarded on the fast path and the reasons for bypassing it. Prints nothing
/// if all are zero, so the output is OpenBSD's.
fn fast_forward_lines(view: &InfoView) -> String {
    let by = ["tc", "XDP"].into_iter().zip(view.forwarded);
    let left = LEFT_TO.into_iter().map(|(to, _)| to).zip(view.left_to);
    let left: Vec<_> = left.filter(|&(_, count)| count > 0).collect();
    if view.forwarded == [0; 2] && left.is_empty() {
        return String::new();
    }
    let lines = by.chain(left).map(|(what, count)| counter_line(what, count, view.seconds));
    ["Fast Forward\n".to_owned()].into_iter().chain(lines).collect()
}

fn current_line(name: &str, count: u64) -> String {
    format!("  {name:<25} {count:>14} {:>14}\n", "")
}

fn counter_line(name: &str, count: u64, seconds: u64) -> String {
    let rate = match seconds {
        0 => format!("{:>14}", ""),
        seconds => format!("{:>14.1}/s", count as f64 / seconds as f64),
    };
    format!("  {name:<25} {count:>14} {rate}\n")
}

/// Returns an object with status and counters.
pub fn json(view: &InfoView) -> Value {
    let checksum: String = view.checksum.iter().map(|byte| format!("{byte:02x}")).collect();
    let reasons = Reason::ALL.map(|reason| (reason.name(), view.status.reasons[reason as usize]));
    let left_to = LEFT_TO.into_iter().map(|(_, name)| name);
    json!({
        "enabled": view.enabled,
        "seconds": view.seconds,
        "debug": debug_level_name(view.debug),
        "hostid": format!("{:08x}", view.hostid),
        "checksum": checksum,
        "loginterface": view.interface.as_ref().map(|interface| json!({
            "name": interface.name,
            "traffic": super::interfaces::traffic_json(&interface.traffic),
        })),
        "states": {
            "current": view.status.states,
            "half_open": view.half_open,
            "searches": view.status.searches,
            "inserts": view.status.inserts,
            "removals": view.status.removals,
        },
        "counters": counts(reasons),
        "limit_counters": counts(LIMIT_COUNTERS.into_iter().zip(view.status.limits)),
        "log_lost": view.log_lost,
        "flow_lost": view.flow_lost,
        "sweep_late": view.sweep_late,
        "timer_errors": view.timer_errors.0,
        "trial": super::trial::info_json(view.trial.as_ref()),
        "fast_forward": {
            "tc": view.forwarded[0],
            "xdp": view.forwarded[1],
            "left_to": counts(left_to.zip(view.left_to)),
        },
        "fragments": {
            "current": view.fragments.current,
            "searches": view.fragments.searches,
            "inserts": view.fragments.inserts,
            "removals": view.fragments.removals,
            "lost": view.fragments.lost,
            "foreign": view.fragments.foreign,
        },
        "divert": {
            "delivered": view.divert.delivered,
            "returned": view.divert.returned,
            "no_program": view.divert.no_program,
            "full": view.divert.full,
            "malformed": view.divert.malformed,
            "lost": view.divert_lost,
            "foreign": view.divert.foreign,
        },
        "delay": {
            "waiting": view.delay.waiting,
            "sent": view.delay.sent,
            "refused": view.delay.refused,
            "full": view.delay.full,
            "foreign": view.delay.foreign,
        },
    })
}

/// Returns an object of counters by name.
fn counts<'a>(counters: impl IntoIterator<Item = (&'a str, u64)>) -> Map<String, Value> {
    counters.into_iter().map(|(name, count)| (name.to_string(), json!(count))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_that_never_ran_has_no_time() {
        let view = InfoView { debug: 3, ..InfoView::default() };
        let head = "Status: Disabled                                 Debug: err\n\nState Table";
        assert!(text(&view, Detail::default()).starts_with(head));

        let left_to = [0, 0, 0, 7];
        let verbose = Detail { verbose: 1, ..Detail::default() };
        let forward = |view: &InfoView| text(view, verbose).contains("Fast Forward");
        assert!(!forward(&view));
        let kept = text(&InfoView { left_to, ..view.clone() }, verbose);
        assert!(
            kept.contains("Fast Forward\n  tc ")
                && kept.contains("\n  left to netfilter                      7 ")
        );
        assert!(!kept.contains("left to IPsec"));

        let late = |enabled, sweep_late| {
            let view = InfoView { enabled, sweep_late, ..view.clone() };
            text(&view, Detail::default()).contains("  40 seconds late: states expire after")
        };
        assert!(late(true, 40));
        let failed = text(&InfoView { timer_errors: (3, 1), ..view.clone() }, Detail::default());
        assert!(failed.ends_with(
            "Sweep\n  the kernel failed to start the timer 3 times (errno 1): run pfctl -e to start it\n"
        ));
        assert!(!text(&view, Detail::default()).contains("Sweep"));
        assert!(!late(true, SWEEP_MAY_BE_LATE) && !late(false, 40));
    }
}
