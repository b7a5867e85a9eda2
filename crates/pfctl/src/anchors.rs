//! The anchors of a filter, and the anchors that `-a` selects.

use std::collections::BTreeSet;

use anyhow::{Result, bail};
use skipstep_ruleset::Ruleset;

use crate::filter::Filter;
use crate::request::Anchor;

/// Returns the paths of all anchors: anchors with rules or tables, anchors that rules call, and
/// their parents. A parent comes before its children.
///
/// # Errors
/// Fails if the tables or the rule set of the filter cannot be read.
pub fn paths(filter: &dyn Filter) -> Result<Vec<String>> {
    let tables = filter.tables()?.into_iter().map(|table| table.name.anchor);
    Ok(paths_of(&filter.loaded()?.ruleset, tables))
}

/// Returns the paths of all anchors of `ruleset`, and of `tables`, the anchors that contain tables.
/// The order is that of [`paths`].
pub fn paths_of(ruleset: &Ruleset, tables: impl Iterator<Item = String>) -> Vec<String> {
    let calls = ruleset.all_rules().filter_map(|(_, rule)| rule.anchor.as_ref());
    let calls = calls.map(|call| call.path.clone());
    let mut paths: BTreeSet<Vec<String>> = BTreeSet::new();
    for path in ruleset.anchors.keys().cloned().chain(calls).chain(tables) {
        let names: Vec<String> = path.split('/').map(str::to_owned).collect();
        paths.extend((1..=names.len()).map(|length| names[..length].to_vec()));
    }
    paths.into_iter().map(|names| names.join("/")).filter(|path| !path.is_empty()).collect()
}

/// Returns the path of `anchor` and, if `anchor` is recursive, the paths of all anchors below it.
///
/// # Errors
/// Fails with OpenBSD's message if the anchor does not exist, or if the filter cannot be read. The
/// main rule set always exists.
pub fn selected_paths(filter: Option<&dyn Filter>, anchor: &Anchor) -> Result<Vec<String>> {
    let known = filter.map(paths).transpose()?.unwrap_or_default();
    if !anchor.path.is_empty() && !known.contains(&anchor.path) {
        bail!("Anchor does not exist.");
    }
    let below = known.into_iter().filter(|path| anchor.recursive && is_below(path, &anchor.path));
    Ok([anchor.path.clone()].into_iter().chain(below).collect())
}

/// True if the anchor `path` is below the anchor `above`, directly or not.
pub fn is_below(path: &str, above: &str) -> bool {
    match above {
        "" => !path.is_empty(),
        above => path.strip_prefix(above).is_some_and(|rest| rest.starts_with('/')),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_include_called_anchors_without_rules() {
        let host = skipstep_scenario::host::standard();
        let text = "anchor \"a-b\"\nanchor \"a/b/*\"\nanchor \"c\" {\n block\n}\n";
        let loaded = skipstep_pfconf::load(text, &skipstep_pfconf::Context::new(&host)).unwrap();
        assert_eq!(
            paths_of(&loaded.ruleset, ["d".to_owned(), String::new()].into_iter()),
            ["a", "a/b", "a-b", "c", "d"]
        );
    }

    #[test]
    fn is_below_excludes_siblings_and_itself() {
        assert!(is_below("a/b/c", "a") && is_below("a", ""));
        assert!(!is_below("ab", "a") && !is_below("a", "a") && !is_below("", ""));
    }
}
