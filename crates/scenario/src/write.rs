//! Parts of a line, written in the notation of scenario files.

use std::fmt::{self, Display};

use skipstep_ruleset::RuleId;

/// Returns `first:second`.
pub(crate) fn pair(pair: [u64; 2]) -> String {
    format!("{}:{}", pair[0], pair[1])
}

/// Writes ` name value` if there is a value.
pub(crate) fn word<T: Display>(
    f: &mut fmt::Formatter<'_>,
    name: &str,
    value: Option<T>,
) -> fmt::Result {
    match value {
        None => Ok(()),
        Some(value) => write!(f, " {name} {value}"),
    }
}

/// Returns the name of a rule, or `default`.
pub(crate) fn rule(rule: &Option<RuleId>) -> String {
    rule.as_ref().map_or_else(|| "default".into(), |id| quoted(&id.to_string()))
}

/// Returns the text, in quotes if it is not one plain word.
pub(crate) fn quoted(text: &str) -> String {
    let plain =
        !text.is_empty() && text.chars().all(|c| !c.is_whitespace() && !",();#\"".contains(c));
    if plain { text.into() } else { format!("\"{text}\"") }
}
