//! The differences from OpenBSD: docs/reference/linux.md describes each one under a name, and a
//! marker with that name stands at each place in the source that makes the difference.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

use crate::common;

/// A marker begins with this text, and ends with a name in quotation marks.
const MARKER: &str = "Differs from OpenBSD: linux.md, ";

/// Sections about parts that do not exist, so no place in the source makes the difference.
const WITHOUT_SOURCE: [&str; 1] = ["Missing parts of OpenBSD"];

/// The names of a page: headings, and text in bold at the beginning of a paragraph, an item of a
/// list or a cell of a table.
#[derive(Default)]
struct Names {
    all: Vec<String>,
    /// Names that need a marker: those in bold, and headings of sections without such names.
    required: BTreeSet<String>,
}

impl Names {
    fn read(text: &str) -> Names {
        let mut names = Names::default();
        let mut name: Option<String> = None;
        let mut heading: Option<String> = None;
        let mut begins = false;
        for event in Parser::new_ext(text, Options::ENABLE_TABLES) {
            match event {
                Event::Start(Tag::Heading { .. }) => {
                    names.required.extend(heading.take());
                    name = Some(String::new());
                }
                Event::End(TagEnd::Heading(level)) => {
                    let name = name.take().unwrap_or_default();
                    names.all.push(name.clone());
                    heading = (level as usize > 1).then_some(name);
                }
                Event::Start(Tag::Paragraph | Tag::Item | Tag::TableCell) => begins = true,
                Event::Start(Tag::Strong) if begins => name = Some(String::new()),
                Event::End(TagEnd::Strong) => {
                    if let Some(name) = name.take() {
                        let name = name.trim_end_matches('.').to_owned();
                        names.all.push(name.clone());
                        names.required.insert(name);
                        heading = None;
                    }
                }
                Event::Text(part) | Event::Code(part) => {
                    begins = false;
                    if let Some(name) = &mut name {
                        name.push_str(&part);
                    }
                }
                _ => {}
            }
        }
        names.required.extend(heading);
        names
    }
}

/// Returns the names in the markers of a text. A marker stands on one line.
///
/// # Panics
/// Panics if a marker has no name.
fn markers(text: &str) -> Vec<String> {
    let name = |line: &str| {
        let (_, rest) = line.split_once(MARKER)?;
        let name = rest.strip_prefix('"').and_then(|rest| rest.split_once('"'));
        Some(name.unwrap_or_else(|| panic!("a marker without a name: {line}")).0.to_owned())
    };
    text.lines().filter_map(name).collect()
}

/// Returns the files that may have markers: the data plane, the crates and the units.
fn sources() -> Vec<PathBuf> {
    let root = common::root();
    let mut sources = common::files(&root.join("bpf"), &["h", "c"]);
    sources.extend(common::files(&root.join("packaging"), &["service"]));
    let crates = common::files(&root.join("crates"), &["rs"]);
    sources.extend(
        crates.into_iter().filter(|file| file.components().any(|c| c.as_os_str() == "src")),
    );
    sources
}

#[test]
fn differences_from_openbsd_are_described_and_marked() {
    let page = std::fs::read_to_string(common::root().join("docs/reference/linux.md")).unwrap();
    let names = Names::read(&page);
    let unique: BTreeSet<&String> = names.all.iter().collect();
    assert_eq!(unique.len(), names.all.len(), "two differences have one name: {:?}", names.all);

    let mut marked: BTreeMap<String, Vec<PathBuf>> = BTreeMap::new();
    for source in sources() {
        for name in markers(&std::fs::read_to_string(&source).unwrap()) {
            marked.entry(name).or_default().push(source.clone());
        }
    }
    let mut faults = Vec::new();
    for (name, places) in marked.iter().filter(|(name, _)| !unique.contains(name)) {
        faults.push(format!("linux.md has no \"{name}\", which {places:?} names"));
    }
    for name in names.required.iter().filter(|name| !WITHOUT_SOURCE.contains(&name.as_str())) {
        if !marked.contains_key(name) {
            faults.push(format!("no place in the source is marked with \"{name}\""));
        }
    }
    assert!(faults.is_empty(), "\n{}", faults.join("\n"));
}

#[test]
fn names_are_headings_and_bold_beginnings() {
    let names = Names::read(
        "# Title\n\nText.\n\n## One\n\nText, **bold**.\n\n## Two\n\n**A `b`.** Text.\n\n\
         - **In a list.** Text\n- text\n\n## Three\n\n| a | b |\n|---|---|\n| **Cell**, c | d |\n",
    );
    assert_eq!(names.all, ["Title", "One", "Two", "A b", "In a list", "Three", "Cell"]);
    let required: Vec<&str> = names.required.iter().map(String::as_str).collect();
    assert_eq!(required, ["A b", "Cell", "In a list", "One"]);
}

#[test]
fn markers_are_found() {
    let text = format!("/* {MARKER}\"One\" */\n// text\n\t// {MARKER}\"A b\"\n");
    assert_eq!(markers(&text), ["One", "A b"]);
}
