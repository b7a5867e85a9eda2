//! Prints names as words of pf.conf that read back as the same names.

use std::borrow::Cow;

use crate::Dialect;
use crate::lexer::belongs_to_word;
use crate::parser::freebsd::is_name as is_freebsd_name;
use crate::token::keyword;

/// Returns a name between double quotes. A backslash stands before each sign that ends or changes
/// a string.
///
/// OpenBSD prints no such backslash (`print_rule`), and cannot read such names back.
// Differs from OpenBSD: linux.md, "Quotes in names"
pub fn quoted(name: &str) -> String {
    let mut text = String::from("\"");
    let mut after_backslash = false;
    for c in name.chars() {
        if c == '"' || after_backslash && matches!(c, ' ' | '\t') {
            text.push('\\');
        }
        text.push(c);
        after_backslash = c == '\\';
    }
    text + "\""
}

/// Returns a name as it stands, or between quotes if it would not be read as one word that is a
/// name: a keyword, a number, or several words.
pub fn word(name: &str) -> Cow<'_, str> {
    if is_name(name) { Cow::Borrowed(name) } else { Cow::Owned(quoted(name)) }
}

/// Returns the name of a tag or a limiter, which may have several words: as it stands, or between
/// quotes if one of them is not read as a name.
pub fn words(name: &str) -> Cow<'_, str> {
    if name.split(' ').all(is_name) { Cow::Borrowed(name) } else { Cow::Owned(quoted(name)) }
}

/// True for a word that needs no quotes as a name. FreeBSD reserves fewer words than OpenBSD.
fn is_name(word: &str) -> bool {
    let starts_word = |c: u8| c.is_ascii_alphanumeric() || c == b':' || c == b'_';
    let reserved =
        keyword(word.as_bytes()).is_some_and(|word| !is_freebsd_name(word, Dialect::Any));
    word.bytes().next().is_some_and(starts_word)
        && word.bytes().all(|c| belongs_to_word(c) && c != b'\\')
        && !word.bytes().all(|c| c.is_ascii_digit())
        && !reserved
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use skipstep_ruleset::interface::Host;

    use super::*;
    use crate::{Context, load};

    fn echo(text: &str) -> String {
        let host = Host::default();
        load(text, &Context::new(&host)).unwrap_or_else(|refused| panic!("{refused:?}")).echo
    }

    #[test]
    fn names_of_openbsd_files_print_without_quotes() {
        for name in ["http", "delay", "1st", "a\"b", "lan:dmz", "_x", "10.0.0.1"] {
            assert_eq!(word(name), name);
        }
    }

    #[test]
    fn keywords_numbers_and_several_words_print_between_quotes() {
        for name in ["pass", "5", "two words", "a\\b", "a,b", "{", "", "é"] {
            assert_eq!(word(name), format!("\"{name}\""));
        }
        assert_eq!(words("two words"), "two words");
        assert_eq!(words("two  pass"), "\"two  pass\"");
    }

    #[test]
    fn an_anchor_whose_name_has_a_quote_prints_so_that_it_reads_back() {
        let printed = echo("anchor loadconf\"\n");
        assert_eq!(printed, "anchor \"loadconf\\\"\" all\n");
        assert_eq!(echo(&printed), printed);
    }

    #[test]
    fn a_tag_that_is_a_keyword_prints_so_that_it_reads_back() {
        let printed = echo("pass tag \"to pass\"\nblock tagged \"pass\"\n");
        assert!(printed.contains(" tag \"to pass\"\n"), "{printed}");
        assert_eq!(echo(&printed), printed);
    }

    proptest! {
        #[test]
        fn every_name_reads_back(name in "[ -~\té]{1,20}[ -\\[\\]-~]") {
            let printed = echo(&format!("pass label {} tag {}\n", quoted("x"), words(&name)));
            prop_assert_eq!(echo(&printed), printed.clone());
            let label = echo(&format!("pass label {}\n", quoted(&name)));
            let wanted = format!("pass all flags S/SA label {}\n", quoted(&name));
            prop_assert_eq!(label, wanted);
        }
    }
}
