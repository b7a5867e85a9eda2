//! Paths of anchors: what a name means in the rule set it is written in.

use skipstep_ruleset::AnchorCall;

/// The path of `name` below `parent`.
pub fn join(parent: &str, name: &str) -> String {
    if parent.is_empty() { name.to_string() } else { format!("{parent}/{name}") }
}

/// What a rule in the rule set `parent` calls by `name`: with a slash in front the path is taken
/// from the main rule set, each `../` goes up by one, `/*` at the end are all anchors below. `None`
/// if that leads above the main rule set.
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
