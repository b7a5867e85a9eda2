//! Paths of anchors, resolved relative to the rule set of a statement.

use skipstep_ruleset::AnchorCall;

/// Returns the path of `name` below `parent`.
pub fn join(parent: &str, name: &str) -> String {
    if parent.is_empty() { name.to_string() } else { format!("{parent}/{name}") }
}

/// Returns the anchor that a rule of the rule set `parent` calls by `name`. A leading slash means a
/// path from the main rule set, and each leading `../` goes up one level. `/*` at the end calls all
/// anchors below. `None` if the path would go above the main rule set.
pub fn call(name: &str, parent: &str) -> Option<AnchorCall> {
    let mut path = match name.strip_prefix('/') {
        Some(absolute) => absolute.to_string(),
        None => {
            let (mut base, mut rest) = (parent, name);
            while let Some(above) = rest.strip_prefix("../") {
                if base.is_empty() {
                    return None;
                }
                base = base.rsplit_once('/').map_or("", |(base, _)| base);
                rest = above;
            }
            join(base, rest)
        }
    };
    let wildcard = path.ends_with("/*");
    if wildcard {
        path.truncate(path.len() - "/*".len());
    }
    Some(AnchorCall { path, wildcard, name: name.to_string(), braces: false })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_relative_to_the_rule_set_they_stand_in() {
        for (name, parent, path, wildcard) in [
            ("a/b", "", "a/b", false),
            ("a", "x/y", "x/y/a", false),
            ("/a", "x/y", "a", false),
            ("../a", "x/y", "x/a", false),
            ("../../a/*", "x/y", "a", true),
            ("*", "x", "x", true),
            ("*", "", "*", false),
        ] {
            let found = call(name, parent).unwrap();
            assert_eq!((found.path.as_str(), found.wildcard), (path, wildcard), "{name}");
        }
        assert_eq!(call("../a", ""), None);
    }
}
