//! Resolution of the rules of a scenario to a rule set.

use skipstep_pfconf::Context;
use skipstep_ruleset::Ruleset;
use skipstep_ruleset::interface::Host;

use crate::case::Rules;

/// Returns the rule set of `rules` in the anchor with this path; an empty path is the main rule
/// set. `files` are those that the rules may name.
///
/// # Errors
/// Fails if the rules have errors. The messages name the lines of the scenario file.
pub fn resolve(
    rules: &Rules,
    anchor: &str,
    files: &[(String, String)],
    host: &Host,
    file_name: &str,
) -> Result<Ruleset, String> {
    let read_file = |wanted: &str| {
        let file = files.iter().find(|(name, _)| name == wanted);
        file.map(|(_, text)| text.clone()).ok_or(std::io::ErrorKind::NotFound.into())
    };
    // Fixed, so that a text always has the same meaning.
    let random = || 0;
    let context =
        Context { file_name, anchor, read_file: &read_file, random: &random, ..Context::new(host) };
    match skipstep_pfconf::load(&rules.text, &context) {
        Ok(loaded) => Ok(loaded.ruleset),
        Err(rejected) => {
            let messages: Vec<String> = rejected
                .diagnostics
                .into_iter()
                .map(|mut diagnostic| {
                    let line = (diagnostic.line as usize).saturating_sub(1);
                    diagnostic.line = rules.lines.get(line).copied().unwrap_or(diagnostic.line);
                    diagnostic.explain()
                })
                .collect();
            Err(messages.join("\n"))
        }
    }
}
