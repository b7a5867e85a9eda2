//! `-s Anchors`: prints the paths of anchors, one a line.

use serde_json::{Value, json};

use super::Detail;

/// Prints the anchors of `paths` that are below `path`, in order. Anchors whose path begins with a
/// generated name (`_`, for braces without a name) are printed with `-v` only.
pub fn text(paths: &[&str], path: &str, detail: Detail) -> String {
    below(paths, path)
        .filter(|path| detail.verbose() || !path.starts_with('_'))
        .map(|path| format!("  {path}\n"))
        .collect()
}

fn below<'a>(paths: &'a [&'a str], path: &'a str) -> impl Iterator<Item = &'a str> {
    let below = move |other: &&str| {
        path.is_empty() || other.strip_prefix(path).is_some_and(|rest| rest.starts_with('/'))
    };
    paths.iter().copied().filter(below)
}

/// Returns a list of the paths below `path`.
pub fn json(paths: &[&str], path: &str) -> Value {
    json!(below(paths, path).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATHS: [&str; 4] = ["_4", "named", "named/_3", "name"];

    #[test]
    fn an_anchor_without_a_name_appears_with_v() {
        assert_eq!(text(&PATHS, "", Detail::default()), "  named\n  named/_3\n  name\n");
        let detail = Detail { verbose: 1, debug: false };
        assert_eq!(text(&PATHS, "", detail), "  _4\n  named\n  named/_3\n  name\n");
    }

    #[test]
    fn only_anchors_below_the_path_are_listed() {
        assert_eq!(text(&PATHS, "named", Detail::default()), "  named/_3\n");
    }
}
