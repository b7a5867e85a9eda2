//! Features of pf.conf that skipstep does not have yet. The parser knows them by the word they begin
//! with and refuses them by name; nothing of a rule set is left out silently.

/// The feature that a reserved word belongs to, if it is not built.
pub fn of_keyword(word: &str) -> Option<&'static str> {
    Some(match word {
        "delay" => "set delay",
        "fingerprints" => "fingerprints",
        "group" => "group",
        "max-pkt-rate" => "max-pkt-rate",
        "max-src-conn" => "max-src-conn",
        "max-src-conn-rate" => "max-src-conn-rate",
        "max-src-nodes" => "max-src-nodes",
        "max-src-states" => "max-src-states",
        "modulate" => "modulate state",
        "once" => "once",
        "os" => "os",
        "overload" => "overload",
        "pflow" => "pflow",
        "queue" => "queue",
        "rdomain" => "rdomain",
        "reassemble" => "reassemble tcp",
        "route" => "route label",
        "rtable" => "rtable",
        "source-track" => "source-track",
        "syncookies" => "syncookies",
        "synproxy" => "synproxy state",
        "user" => "user",
        _ => return None,
    })
}

/// The feature that a statement of old times, or of other systems, begins with. These words are not
/// reserved: `nat = 1` is a macro.
pub fn of_statement(word: &str) -> Option<&'static str> {
    Some(match word {
        "nat" => "old nat",
        "rdr" => "old rdr",
        "binat" => "old binat",
        "nat-anchor" | "rdr-anchor" | "binat-anchor" => "anchor",
        "altq" => "altq",
        "ether" => "ether",
        "source" => "source limiter",
        _ => return None,
    })
}

/// What can be written instead of a feature.
pub fn instead(feature: &str) -> Option<String> {
    let help = match feature {
        "old scrub with options" => "write `match scrub (...)` with the options in parentheses",
        "modulate state" => "`keep state` filters the same packets",
        "evaluator compiled" => "write `skip-steps`: the answer is the same",
        _ => return None,
    };
    Some(help.to_string())
}
