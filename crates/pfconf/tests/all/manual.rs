//! Checks pf.conf(5) against the implementation.

use skipstep_pfconf::{Context, load};
use skipstep_ruleset::interface::{Host, Interface};
use skipstep_ruleset::{Timeout, Timeouts};

const PAGE: &str = include_str!("../../../../man/pf.conf.5");

/// Returns the section `name` of the page, without its heading.
fn section(name: &str) -> &'static str {
    let heading = format!(".Sh {name}\n");
    let (_, text) = PAGE.split_once(&heading).expect("the section is there");
    text.split("\n.Sh ").next().unwrap_or_default()
}

/// Returns the displayed texts of a section, as they would be written in a file.
fn shown(section: &str) -> Vec<String> {
    let blocks = section.split(".Bd -literal").skip(1);
    let texts = blocks.filter_map(|block| block.split_once('\n')?.1.split(".Ed").next());
    texts.map(|text| text.replace("\\e", "\\")).collect()
}

#[test]
fn displayed_examples_can_be_loaded() {
    let host = Host::with([Interface::new("em0", &[])]);
    let context = Context::new(&host);
    for (name, count) in [
        ("LEXICAL MATTERS", 1),
        ("ANTISPOOF", 1),
        ("ANCHORS", 1),
        ("QUEUES", 1),
        ("LIMITERS", 1),
        ("EXAMPLES", 3),
    ] {
        let texts = shown(section(name));
        assert_eq!(texts.len(), count, "{name}");
        for text in texts {
            if let Err(refused) = load(&text, &context) {
                panic!("{name}: {}\n{text}", refused.diagnostics[0].explain());
            }
        }
    }
}

#[test]
fn timeouts_have_the_documented_defaults() {
    let words: Vec<&str> = section("OPTIONS").split_whitespace().collect();
    let defaults = Timeouts::default();
    for timeout in Timeout::ALL {
        let value = defaults.get(timeout).to_string();
        let said = words.windows(3).any(|three| {
            // `.Cm udp.first Ta 60` in the table; `.Cm adaptive.start` and `.Pq 60000` in the text
            three[0] == timeout.name() && (three[1] == "Ta" && three[2] == value)
        });
        let adaptive = matches!(timeout, Timeout::AdaptiveStart | Timeout::AdaptiveEnd);
        assert!(said || adaptive && words.contains(&value.as_str()), "{}", timeout.name());
    }
}
