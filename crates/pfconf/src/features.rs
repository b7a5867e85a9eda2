//! Features of pf.conf that skipstep does not have yet. The parser knows them by the word they begin
//! with and refuses them by name; nothing of a rule set is left out silently.

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
        _ => return None,
    })
}

/// What can be written instead of a feature.
pub fn instead(feature: &str) -> Option<String> {
    let help = match feature {
        "old scrub with options" => "write `match scrub (...)` with the options in parentheses",
        _ => return None,
    };
    Some(help.to_string())
}
