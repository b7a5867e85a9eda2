//! `format` keeps the meaning of all texts. Tests of spaces and lines are in src/format.rs.

use crate::common;
use skipstep_pfconf::format::format;
use skipstep_pfconf::{Context, Loaded, Rejected, load};
use skipstep_ruleset::Ruleset;

#[test]
fn a_formatted_text_means_the_same() {
    let texts = common::texts();
    assert!(texts.len() > 20, "where are they?");
    for (name, text) in texts {
        let formatted = format(&text);
        assert_eq!(meaning(&formatted), meaning(&text), "{name}:\n{formatted}");
        assert_eq!(format(&formatted), formatted, "{name} is not left alone");
    }
}

/// Returns the rule set or the messages of a text, without line numbers.
fn meaning(text: &str) -> Result<(Ruleset, String), (Vec<String>, String)> {
    let host = common::host();
    let context = Context { read_file: &common::read_file, random: &|| 7, ..Context::new(&host) };
    match load(text, &context) {
        Ok(Loaded { mut ruleset, echo, .. }) => {
            common::forget_places(&mut ruleset);
            Ok((ruleset, echo))
        }
        Err(Rejected { diagnostics, echo }) => {
            Err((diagnostics.into_iter().map(|diagnostic| diagnostic.message).collect(), echo))
        }
    }
}
