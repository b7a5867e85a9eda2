//! Anchors, and rule sets in several files.

use std::collections::BTreeMap;
use std::io;

use crate::common;
use skipstep_pfconf::{Context, Loaded, Rejected, load};
use skipstep_ruleset::Ruleset;
use skipstep_ruleset::interface::Host;

/// Loads `text` as `pfctl -a anchor -f -` does, with these files.
fn read(text: &str, anchor: &str, files: &[(&str, &str)]) -> Result<Loaded, Rejected> {
    let files: BTreeMap<&str, &str> = files.iter().copied().collect();
    let read_file = |name: &str| match files.get(name) {
        Some(text) => Ok(text.to_string()),
        None => Err(io::ErrorKind::NotFound.into()),
    };
    let host = Host::default();
    load(text, &Context { anchor, read_file: &read_file, ..Context::new(&host) })
}

fn ruleset(text: &str) -> Ruleset {
    read(text, "", &[]).unwrap_or_else(|rejected| panic!("{rejected:?}")).ruleset
}

/// Returns the messages about a text that cannot be loaded.
fn messages(text: &str, files: &[(&str, &str)]) -> Vec<String> {
    let rejected = read(text, "", files).unwrap_err();
    rejected.diagnostics.iter().map(ToString::to_string).collect()
}

#[test]
fn rules_in_braces_have_a_path_of_their_own() {
    let ruleset = ruleset(
        "pass\nanchor \"a\" in {\n\ttable <t> { 10.0.0.1 }\n\tanchor {\n\t\tblock\n\t\tpass to <u>\n\t}\n\
         \tpass from <t>\n}\nblock\n",
    );
    assert_eq!(ruleset.rules.iter().map(|rule| rule.number).collect::<Vec<_>>(), [0, 1, 2]);
    let call = ruleset.rules[1].anchor.as_ref().unwrap();
    assert_eq!((call.path.as_str(), call.name.as_str(), call.braces), ("a", "a", true));
    assert_eq!(ruleset.rules[1].line, 2);
    assert_eq!(ruleset.anchors.keys().collect::<Vec<_>>(), ["a", "a/_2"]);
    let (outer, inner) = (&ruleset.anchors["a"], &ruleset.anchors["a/_2"]);
    assert_eq!(outer.rules[0].anchor.as_ref().unwrap().path, "a/_2");
    assert_eq!(inner.rules.iter().map(|rule| rule.number).collect::<Vec<_>>(), [0, 1]);
    let tables = |anchor: &skipstep_ruleset::Anchor| {
        anchor.tables.iter().map(|table| (table.name.clone(), table.defined)).collect::<Vec<_>>()
    };
    assert_eq!(tables(outer), [("t".to_string(), true)]);
    assert_eq!(tables(inner), [("u".to_string(), false)]);
    assert!(ruleset.tables.is_empty());
}

#[test]
fn calls_know_the_path_from_the_main_rule_set() {
    let ruleset = ruleset(
        "anchor \"relayd/*\"\nanchor \"foo\" {\n anchor \"bar\" {\n  anchor \"../x\"\n  anchor \"/y/z\"\n  \
         anchor \"w/*\" quick\n }\n}\n",
    );
    let calls = |path: &str| {
        let rules = if path.is_empty() { &ruleset.rules } else { &ruleset.anchors[path].rules };
        rules.iter().map(|rule| rule.anchor.clone().unwrap()).collect::<Vec<_>>()
    };
    assert_eq!((calls("")[0].path.as_str(), calls("")[0].wildcard), ("relayd", true));
    let paths: Vec<_> =
        calls("foo/bar").into_iter().map(|call| (call.path, call.wildcard)).collect();
    let expected = [("foo/x", false), ("y/z", false), ("foo/bar/w", true)];
    assert_eq!(paths, expected.map(|(path, wildcard)| (path.to_string(), wildcard)));
}

#[test]
fn a_text_can_be_the_contents_of_an_anchor() {
    let loaded = read("anchor a {\n anchor \"../b\"\n block\n}\npass\n", "top/one", &[]).unwrap();
    assert_eq!(loaded.ruleset.rules[0].anchor.as_ref().unwrap().path, "top/one/a");
    let inner = &loaded.ruleset.anchors["top/one/a"];
    assert_eq!(inner.rules[0].anchor.as_ref().unwrap().path, "top/one/b");
}

#[test]
fn anchors_are_loaded_from_files_one_after_the_other() {
    let files = [
        ("one.conf", "m = 1\nblock return\nanchor two\nload anchor two from two.conf\n"),
        ("two.conf", "table <foo> { 10.0.0.1 }\npass from <foo> port = $m\n"),
        ("two-right.conf", "table <foo> { 10.0.0.1 }\nset limit states 5\nblock from <foo>\n"),
    ];
    let text = "set block-policy return\nm = 2\nanchor one\nload anchor one from one.conf\nblock\n";
    assert_eq!(
        read(text, "", &files).unwrap_err().diagnostics[0].to_string(),
        "two.conf:2: macro 'm' not defined",
        "macros hold for their own file"
    );
    let files = [files[0], ("two.conf", files[2].1)];
    let loaded = read(text, "", &files).unwrap();
    assert_eq!(
        loaded.echo,
        "set block-policy return\nm = \"2\"\nanchor \"one\" all\nblock return all\nm = \"1\"\n\
         block return all\nanchor \"two\" all\ntable <foo> { 10.0.0.1 }\nset limit states 5\n\
         block drop from <foo> to any\n",
    );
    assert_eq!(loaded.ruleset.anchors.keys().collect::<Vec<_>>(), ["one", "one/two"]);
    assert_eq!(loaded.ruleset.options.limits.states, 100_000, "options of anchors do not count");
}

#[test]
fn an_anchor_whose_file_is_missing_is_an_error_of_its_line() {
    assert_eq!(
        messages("pass\nload anchor a from nowhere\n", &[]),
        ["stdin:2: cannot load \"nowhere\": No such file or directory"]
    );
}

#[test]
fn included_files_are_read_in_place() {
    let files = [
        ("a", "two = 2\ninclude \"b\"\nblock tag a"),
        ("b", "\npass to port $two\n"),
        ("c", "pass proto tcp to port $two # end"),
    ];
    assert_eq!(
        messages("pass\ninclude \"a\"\nblock tag c\nblock bogus\n", &files),
        [
            "b:2: port only applies to tcp/udp",
            "b:2: skipping rule due to errors",
            "b:2: rule expands to no valid combination",
            "stdin:4: syntax error"
        ]
    );
    let files = [("a", files[0].1), ("b", files[2].1)];
    let loaded = read("pass\ninclude \"a\" # and on\nblock tag c\n", "", &files).unwrap();
    let places: Vec<_> =
        loaded.ruleset.rules.iter().map(|rule| (rule.file.as_deref(), rule.line)).collect();
    assert_eq!(places, [(None, 1), (Some("b"), 1), (Some("a"), 3), (None, 3)]);
    let loaded = read("anchor x {\n include \"c\"\n}\n", "", &[("c", "block\nmatch")]).unwrap();
    assert_eq!(loaded.ruleset.anchors["x"].rules.len(), 2);
}

#[test]
fn includes_that_do_not_end_are_refused() {
    let again = "pass\ninclude \"a\"\n";
    assert_eq!(messages(again, &[("a", again)]), ["a:2: failed to include file a"]);
    let (one, two) = ("include \"b\"\ninclude \"b\"\n", "include \"c\"\ninclude \"c\"\n");
    let names: Vec<String> = (b'a'..=b'z').map(|c| char::from(c).to_string()).collect();
    let texts: Vec<String> =
        names[1..].iter().map(|next| one.replace('b', next)).chain([two.into()]).collect();
    let files: Vec<_> =
        names.iter().map(String::as_str).zip(texts.iter().map(String::as_str)).collect();
    let found = messages("include \"a\"\n", &files);
    assert!(found.iter().all(|message| message.contains("failed to include file")), "{found:?}");
}

#[test]
fn anchors_complain_as_in_openbsd() {
    for (text, message) in [
        ("anchor\n", "stdin:1: anchors without explicit rules must specify a name"),
        ("anchor \"\"\n", "stdin:1: anchor name must not be empty"),
        ("anchor _x\n", "stdin:1: anchor names beginning with '_' are reserved for internal use"),
        ("anchor \"a/\"\n", "stdin:1: anchorrule: bad anchor name a/"),
        (
            "anchor \"a/b\" {\npass\n}\n",
            "stdin:3: anchor paths containing '/' cannot be used for inline anchors.",
        ),
        ("anchor a {\npass\n}\nanchor a {\npass\n}\n", "stdin:6: inline anchor 'a' already exists"),
        ("anchor a keep state\n", "stdin:1: cannot specify state handling on anchors"),
        ("anchor a { pass }\n", "stdin:1: syntax error"),
        ("anchor a {\npass\n", "stdin:4: syntax error"),
        ("anchor a {\nset skip on lo\n}\n", "stdin:2: syntax error"),
        ("anchor \"../a\"\n", "stdin:1: no anchor above '': ../a"),
        ("load anchor from x\n", "stdin:1: anchor name is missing"),
    ] {
        assert_eq!(messages(&format!("pass\n{text}"), &[])[0].replace("stdin:", ""), {
            let (line, rest) = message["stdin:".len()..].split_once(':').unwrap();
            format!("{}:{rest}", line.parse::<u32>().unwrap() + 1)
        });
    }
}

#[test]
fn anchors_nest_only_so_deep() {
    let deep = |depth: usize| "anchor {\n".repeat(depth) + "pass\n" + &"}\n".repeat(depth);
    assert_eq!(ruleset(&deep(63)).anchors.len(), 63);
    assert_eq!(messages(&deep(64), &[])[0], "stdin:64: pfa_anchor: anchors too deep");
}

#[test]
fn files_that_load_themselves_come_to_an_end() {
    let again = "pass\nload anchor b from f\n";
    let found = messages("load anchor a from f\n", &[("f", again)]);
    assert_eq!(found, ["f:2: anchor name is longer than 1023"]);
    let twice = "load anchor b from f\nload anchor c from f\n";
    let found = messages(twice, &[("f", &twice.repeat(20))]);
    assert_eq!(found[0], "f:23: more than 1024 files are loaded into anchors");
}

#[test]
fn paths_of_anchors_are_only_so_long() {
    let name = "n".repeat(63);
    let text = format!("anchor {name} {{\n").repeat(17);
    let found = messages(&text, &[]);
    assert_eq!(found[0], "stdin:17: anchor name is longer than 1023");
}

#[test]
fn rules_of_an_anchor_use_queues_and_limiters_of_the_main_rules() {
    let main = "queue root on lan bandwidth 10M\nqueue web parent root bandwidth 5M default\n\
                state limiter few id 3 limit 9\nload anchor a from \"a.conf\"\n";
    let host = common::host();
    let load = |rule: &str| {
        let read_file = |_: &str| Ok(rule.to_string());
        load(main, &Context { read_file: &read_file, ..Context::new(&host) })
    };
    let loaded = load("pass set queue web state limiter few\n").unwrap();
    let [rule] = &loaded.ruleset.anchors["a"].rules[..] else { panic!("not one rule") };
    assert_eq!(rule.set_queue.as_deref(), Some(&("web".to_string(), None)));
    assert_eq!(rule.state_limiter.map(|limiter| limiter.id), Some(3));
    let refused = load("pass set queue root\n").unwrap_err();
    assert_eq!(refused.diagnostics[0].to_string(), "a.conf:1: queue root is not defined");
}

#[test]
fn rules_of_an_anchor_use_queues_in_force() {
    let host = Host::default();
    let queues = || vec!["web".to_string()];
    let context = Context { anchor: "a", queues: &queues, ..Context::new(&host) };
    assert!(load("pass set queue web\n", &context).is_ok());
    assert!(load("pass set queue ssh\n", &context).is_err());
}
