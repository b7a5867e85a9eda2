//! Texts that exceed a limit. Each is refused with file, line and column, and takes no more memory
//! or time than a valid text.

use std::fmt::Write;

use skipstep_pfconf::{Context, Diagnostic, load};
use skipstep_ruleset::interface::{Host, Interface};

/// Returns the messages about a text that cannot be loaded.
fn refused(text: &str) -> Vec<Diagnostic> {
    let host = Host::with([Interface::new("em0", &[])]);
    load(text, &Context::new(&host)).unwrap_err().diagnostics
}

/// Asserts that the first message is `message`, at this line and column.
fn first(text: &str, message: &str, line: u32, column: u32) {
    let diagnostics = refused(text);
    let first = &diagnostics[0];
    assert_eq!((first.message.as_str(), first.file.as_str()), (message, "stdin"));
    assert_eq!((first.line, first.column), (line, column), "{message}");
}

#[test]
fn files_are_only_so_large() {
    let text = " ".repeat(100_000_000);
    first(&text, "file is too large: 100000000 bytes, at most 16777216", 1, 1);
}

#[test]
fn words_and_strings_are_only_so_long() {
    first(&format!("pass\nblock tag {}", "a".repeat(20_000)), "string too long", 2, 11);
    first(&format!("pass label \"{}", "a".repeat(20_000)), "string too long", 1, 12);
    let shown = refused(&format!("pass bogus {}\n", "x ".repeat(1_000_000)));
    assert_eq!(shown[0].message, "syntax error");
    assert!(shown[0].explain().len() < 1000, "a long line is not repeated");
}

#[test]
fn bytes_of_zero_are_no_blanks() {
    first("pass\n\0pass\n", "syntax error", 2, 1);
    first("pass\nblock label \"a\0b\"\n", "syntax error", 2, 13);
    first("pass\nblock from 10.0.0.1\0\n", "syntax error", 2, 20);
}

#[test]
fn lists_nest_only_so_deep() {
    first(&format!("pass\npass from {}", "{".repeat(1_000_000)), "syntax error", 2, 76);
    first(&format!("pass\ntable <t> {}", "{".repeat(1_000_000)), "syntax error", 2, 76);
}

#[test]
fn anchors_end_the_text_when_they_are_too_deep() {
    let diagnostics = refused(&"anchor {\n".repeat(1_000_000));
    let messages: Vec<_> = diagnostics.iter().map(ToString::to_string).collect();
    assert_eq!(messages, ["stdin:64: pfa_anchor: anchors too deep"]);
}

#[test]
fn anchors_that_errors_leave_open_do_not_pile_up() {
    let diagnostics = refused(&("pass\n".to_string() + &"anchor {\nbogus\n".repeat(2_000)));
    // each stays open, up to the greatest depth
    assert_eq!(diagnostics.len(), 64);
}

#[test]
fn lists_expand_to_only_so_many_rules() {
    let hosts = (0..3000).fold(String::new(), |mut text, n| {
        write!(text, "10.0.{}.{} ", n / 250, n % 250).unwrap();
        text
    });
    let diagnostics = refused(&format!("pass\npass from {{ {hosts}}} to {{ {hosts}}}\n"));
    assert_eq!(diagnostics[0].to_string(), "stdin:2: rule set expands to more than 131072 rules");
    let text = format!("pass\npass from {{ {} }}\n", "10.0.0.1 ".repeat(200_000));
    assert_eq!(refused(&text)[0].to_string(), "stdin:2: list of more than 131072 items");
    let diagnostics = refused(&"pass\n".repeat(131_073));
    assert_eq!(diagnostics[0].line, 131_073);
}

#[test]
fn macros_expand_to_only_so_much() {
    let long = format!("m = \"{}\"\n", "10.0.0.1 ".repeat(800));
    let doubled = long + &"m = $m $m $m\n".repeat(40);
    let diagnostics = refused(&doubled);
    assert_eq!(diagnostics[0].message, "macros expand to more than 16777216 bytes");
    assert!(diagnostics[0].line > 1 && diagnostics[0].column > 1);
}

#[test]
fn lists_of_tables_are_only_so_long() {
    let table = format!("pass\ntable <t> {{ {} }}\n", "1/8 ".repeat(2_200_000));
    let diagnostics = refused(&table);
    assert_eq!(diagnostics[0].to_string(), "stdin:2: more than 2097152 items in lists");
}

#[test]
fn the_number_of_errors_is_limited() {
    let diagnostics = refused(&"pass to port 1\n".repeat(100_000));
    assert_eq!(diagnostics.len(), 10_001);
    assert_eq!(diagnostics[10_000].message, "too many errors: parsing ends here");
}

#[test]
fn many_names_are_looked_up_quickly() {
    let definitions = (0..50_000).fold(String::new(), |mut text, n| {
        writeln!(text, "m{n} = \"10.0.0.1\"\ntable <t{n}> {{ $m{n} }}").unwrap();
        text
    });
    first(&(definitions + "pass from $m50000\n"), "macro 'm50000' not defined", 100_001, 11);
    let queues = (1..200_000).fold(String::new(), |mut text, n| {
        writeln!(text, "queue q{n} parent q{} bandwidth 1M", n - 1).unwrap();
        text
    });
    assert_eq!(refused(&queues)[0].to_string(), "pfctl: more than 4096 queues");
}

#[test]
fn queues_nest_only_so_deep() {
    let text = (1..100).fold("queue q0 on em0 bandwidth 1M\n".to_string(), |mut text, n| {
        writeln!(text, "queue q{n} parent q{} bandwidth 1M", n - 1).unwrap();
        text
    });
    assert_eq!(refused(&text)[0].to_string(), "pfctl: queue q64: more than 64 queues above it");
    let loops = "queue r on em0 bandwidth 1M\nqueue a parent b bandwidth 1M\nqueue b parent a bandwidth 1M\n";
    assert_eq!(refused(loops)[0].to_string(), "pfctl: no default queue specified");
    let loops = loops.replace("r on em0 bandwidth 1M", "r on em0 bandwidth 1M default");
    assert_eq!(refused(&loops)[0].to_string(), "pfctl: queue a: parent b not found");
}

#[test]
fn words_of_table_files_are_only_so_long() {
    let long = "1".repeat(1_000_000);
    let read_file = |_: &str| Ok(format!("10.0.0.1\n{long}\n"));
    let host = Host::default();
    let context = Context { read_file: &read_file, ..Context::new(&host) };
    let refused = load("table <t> file \"long\"\n", &context).unwrap_err();
    let messages: Vec<_> = refused.diagnostics.iter().map(|d| d.message.as_str()).collect();
    assert_eq!(messages, ["string too long", "file \"long\" contains bad data"]);
}
