//! The pages of docs/ and their like: links lead somewhere, rules load, sections that the source
//! cites are there.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use pulldown_cmark::{CodeBlockKind, Event, Parser, Tag, TagEnd};
use skipstep_pfconf::{Context, Rejected, load};
use skipstep_ruleset::interface::{Host, Interface};

use crate::common;

/// Returns the pages that people write: those of docs/ without the results, and those of the root.
fn pages() -> Vec<PathBuf> {
    let root = common::root();
    let mut pages = common::files(&root.join("docs"), &["md"]);
    pages.retain(|page| !page.starts_with(root.join("docs/results")));
    pages.extend(["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"].map(|name| root.join(name)));
    pages
}

fn text(page: &Path) -> String {
    std::fs::read_to_string(page).unwrap_or_else(|error| panic!("{}: {error}", page.display()))
}

/// Returns the anchors of a page's headings, as GitHub and mdBook make them.
fn anchors(page: &Path) -> BTreeSet<String> {
    let text = text(page);
    let mut anchors = BTreeSet::new();
    let mut heading: Option<String> = None;
    for event in Parser::new(&text) {
        match event {
            Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
            Event::End(TagEnd::Heading(_)) => anchors.extend(heading.take().map(|h| anchor(&h))),
            Event::Text(part) | Event::Code(part) => {
                if let Some(heading) = &mut heading {
                    heading.push_str(&part);
                }
            }
            _ => {}
        }
    }
    anchors
}

fn anchor(heading: &str) -> String {
    let kept = |c: &char| c.is_alphanumeric() || "-_ ".contains(*c);
    heading.to_lowercase().chars().filter(kept).map(|c| if c == ' ' { '-' } else { c }).collect()
}

/// Returns the fault of a link on a page, or `None` if it leads to a file, and to a heading if it
/// names one.
fn broken(page: &Path, link: &str) -> Option<String> {
    if link.starts_with("http") {
        return None;
    }
    let (file, heading) = link.split_once('#').unwrap_or((link, ""));
    let target = match file {
        "" => page.to_owned(),
        _ => page.parent().unwrap().join(file),
    };
    if !target.exists() {
        return Some(format!("{}: {link}: there is no such file", page.display()));
    }
    let found = heading.is_empty() || anchors(&target).contains(heading);
    (!found).then(|| format!("{}: {link}: there is no such heading", page.display()))
}

#[test]
fn links_lead_to_files_and_headings() {
    let mut faults = Vec::new();
    for page in pages().iter().filter(|page| !page.ends_with("SUMMARY.md")) {
        for event in Parser::new(&text(page)) {
            if let Event::Start(Tag::Link { dest_url, .. }) = event {
                faults.extend(broken(page, &dest_url));
            }
        }
    }
    assert!(faults.is_empty(), "\n{}", faults.join("\n"));
    assert!(broken(&common::root().join("README.md"), "docs/nothing.md").is_some());
    assert!(broken(&common::root().join("README.md"), "ARCHITECTURE.md#nothing").is_some());
}

/// Files of the source in backticks are there, under their name or the end of their path.
#[test]
fn files_that_pages_name_are_there() {
    let root = common::root();
    let mut files = Vec::new();
    let rust = ["crates", "ftp", "lab", "xtask", "fuzz"];
    for folder in rust.into_iter().chain(["bpf", "tests", "packaging", "examples", "docs"]) {
        files.extend(common::files(&root.join(folder), &["rs", "h", "sh", "py", "c", "scn"]));
    }
    let files: Vec<String> = files.iter().map(|file| format!("/{}", file.display())).collect();
    // of OpenBSD
    let others = |code: &str| code.starts_with("pf_") || ["pfvar.h", "pf.c"].contains(&code);
    let (mut faults, mut count) = (Vec::new(), 0);
    for page in pages() {
        for event in Parser::new(&text(&page)) {
            let Event::Code(code) = event else { continue };
            let is_path = |c: char| c.is_ascii_alphanumeric() || "/._-".contains(c);
            let is_pattern =
                code.contains("NAME") || code.contains("FILE") || code.contains("name");
            let is_source = [".rs", ".h", ".sh", ".py", ".c"].iter().any(|end| code.ends_with(end));
            if !is_source || is_pattern || !code.chars().all(is_path) || others(&code) {
                continue;
            }
            count += 1;
            let end = format!("/{}", code.trim_start_matches(['.', '/']));
            if !files.iter().any(|file| file.ends_with(&end)) {
                faults.push(format!("{}: `{code}`: there is no such file", page.display()));
            }
        }
    }
    assert!(faults.is_empty(), "\n{}", faults.join("\n"));
    assert!(count > 100, "{count}");
}

/// docs/build brings the pages of the root of the repository; the plan is no page.
#[test]
fn the_summary_names_each_page_of_docs() {
    let docs = common::root().join("docs");
    let summary = text(&docs.join("SUMMARY.md"));
    let mut named: BTreeSet<String> = Parser::new(&summary)
        .filter_map(|event| match event {
            Event::Start(Tag::Link { dest_url, .. }) => Some(dest_url.to_string()),
            _ => None,
        })
        .collect();
    let of_root = ["CONTRIBUTING.md", "CHANGELOG.md", "tests/README.md"];
    let made = ["index.md", "how/architecture.md"];
    named.retain(|page| !page.starts_with("results/"));
    for made in made.into_iter().chain(of_root) {
        assert!(named.remove(made), "{made}");
    }
    let written: BTreeSet<String> = pages()
        .iter()
        .filter_map(|page| Some(page.strip_prefix(&docs).ok()?.display().to_string()))
        .filter(|page| !["SUMMARY.md", "PLAN.md"].contains(&page.as_str()))
        .collect();
    assert_eq!(named, written);
}

/// Blocks of code that begin with ```pf are whole rule sets.
#[test]
fn rules_on_pages_load() {
    let host = host();
    let context = Context { names: &common::names(), ..Context::new(&host) };
    let (mut faults, mut count) = (Vec::new(), 0);
    for page in pages() {
        let text = text(&page);
        let mut is_rules = false;
        for event in Parser::new(&text) {
            match event {
                Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(language))) => {
                    is_rules = &*language == "pf";
                }
                Event::End(TagEnd::CodeBlock) => is_rules = false,
                Event::Text(rules) if is_rules => {
                    count += 1;
                    if let Err(Rejected { diagnostics, .. }) = load(&rules, &context) {
                        let messages = diagnostics.iter().map(|d| d.explain()).collect::<String>();
                        faults.push(format!("{}:\n{rules}{messages}", page.display()));
                    }
                }
                _ => {}
            }
        }
    }
    assert!(faults.is_empty(), "\n{}", faults.join("\n"));
    assert!(count > 10, "{count}");
}

/// Returns the gateway of the pages: eth0 outside, eth1 inside, a VLAN and a bridge of containers.
fn host() -> Host {
    Host::with([
        Interface::new("lo", &["127.0.0.1/8"]),
        Interface::new("eth0", &["203.0.113.1/24"]),
        Interface::new("eth1", &["192.168.1.1/24"]),
        Interface::new("guests", &["192.168.20.1/24"]),
        Interface::new("docker0", &["172.17.0.1/16"]),
    ])
}

/// Sections of docs/how/pf-semantics.md and docs/reference/pf-features.md that comments cite.
#[test]
fn sections_that_the_source_cites_are_there() {
    let root = common::root();
    let pages = [("pf-semantics", "how"), ("pf-features", "reference")];
    let mut sources = Vec::new();
    let rust = ["crates", "ftp", "lab", "xtask"].map(|folder| (folder, "rs"));
    for (folder, kind) in rust.into_iter().chain([("bpf", "h"), ("tests", "scn")]) {
        sources.extend(common::files(&root.join(folder), &[kind]));
    }
    let mut cited = 0;
    for (name, folder) in pages {
        let sections: BTreeSet<u32> = text(&root.join(format!("docs/{folder}/{name}.md")))
            .lines()
            .filter_map(|line| line.strip_prefix("## ")?.split('.').next()?.parse().ok())
            .collect();
        assert!(sections.len() > 10);
        for source in &sources {
            for number in citations(&text(source), name) {
                cited += 1;
                assert!(sections.contains(&number), "{}: {name} {number}", source.display());
            }
        }
    }
    assert!(cited > 100, "{cited}");
}

/// Returns the numbers in "NAME section 5" and "NAME sections 6, 7 and 9", also over two lines.
fn citations(text: &str, name: &str) -> Vec<u32> {
    let words: Vec<&str> = text
        .split_whitespace()
        .filter(|word| !["*", "//", "///", "//!", "#"].contains(word))
        .collect();
    let mut numbers = Vec::new();
    for (place, word) in words.iter().enumerate() {
        if word.trim_start_matches('(') != name {
            continue;
        }
        let mut rest = words[place + 1..].iter();
        if rest.next().is_none_or(|word| word.trim_end_matches('s') != "section") {
            continue;
        }
        for word in rest.filter(|word| **word != "and") {
            match word.trim_end_matches(|c: char| !c.is_ascii_digit()).parse() {
                Ok(number) => numbers.push(number),
                Err(_) => break,
            }
            if !word.ends_with(',') && !word.ends_with(|c: char| c.is_ascii_digit()) {
                break;
            }
        }
    }
    numbers
}

#[test]
fn citations_are_found() {
    let text =
        "// (pf-semantics section 5). pf-semantics sections 6,\n// 7 and 9: pf-features section 1";
    assert_eq!(citations(text, "pf-semantics"), [5, 6, 7, 9]);
    assert_eq!(citations(text, "pf-features"), [1]);
    assert!(citations("pf-semantics says so", "pf-semantics").is_empty());
}
