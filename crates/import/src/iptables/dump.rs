//! Reads the lines of a dump: `*TABLE`, `:CHAIN POLICY`, `-A CHAIN …`, `COMMIT`.

use std::collections::BTreeMap;

use super::line::{Word, words};
use super::rule::{self, Rule};
use crate::messages::{Messages, Place};

/// Most rules and chains of a dump.
const MOST_RULES: usize = 100_000;
/// Longest line, in bytes. A rule is a line, and the kernel accepts no longer rule.
const LONGEST_LINE: usize = 0xffff;

/// The tables with an equivalent in pf.
#[derive(Debug, Default)]
pub struct Dump {
    /// `*filter`
    pub filter: Table,
    /// `*nat`
    pub nat: Table,
}

/// The chains of a table, by name.
pub type Table = BTreeMap<String, Chain>;

/// A chain of rules.
#[derive(Debug, Default)]
pub struct Chain {
    /// Position of its declaration.
    pub place: Place,
    /// Fate of a packet at the end of the chain; `None` for a user-defined chain, which returns.
    pub policy: Option<Policy>,
    /// Rules, in order.
    pub rules: Vec<Rule>,
}

/// The fate of a packet at the end of a built-in chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Policy {
    /// `ACCEPT`
    Accept,
    /// `DROP`
    Drop,
}

/// The table to which the current lines belong.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Section {
    None,
    Filter,
    Nat,
    /// A table without an equivalent in pf; it may only have built-in chains without rules.
    Other,
}

/// Reads a dump. Adds errors to `messages`.
pub fn parse(text: &str, messages: &mut Messages) -> Dump {
    let mut dump = Dump::default();
    let mut section = Section::None;
    let mut begun = Place::default();
    let mut rules = 0;
    for (number, start, line) in lines(text) {
        let place = Place { line: number, line_start: start, offset: start, width: line.len() };
        if messages.is_full() {
            break;
        }
        if line.len() > LONGEST_LINE {
            let place = Place { width: 0, ..place };
            messages.error(place, format!("the line is longer than {LONGEST_LINE} bytes"), None);
            continue;
        }
        let Some(words) = words(line, place, messages) else { continue };
        let Some(first) = words.first() else { continue };
        match first.text.as_str() {
            comment if comment.starts_with('#') => {}
            "COMMIT" => section = Section::None,
            name if name.starts_with('*') => {
                if section != Section::None {
                    messages.error(begun, "the table does not end with COMMIT", None);
                }
                section = table_section(first, messages);
                begun = first.place;
            }
            _ if section == Section::None => {
                let help = "iptables-save prints `*filter`, the chains, the rules and `COMMIT`";
                messages.error(first.place, "no table begins before this line", Some(help));
                return dump;
            }
            _ => {
                let table = match section {
                    Section::Filter => Some(&mut dump.filter),
                    Section::Nat => Some(&mut dump.nat),
                    _ => None,
                };
                rules += 1;
                if rules > MOST_RULES {
                    messages.error(place, format!("there are more than {MOST_RULES} rules"), None);
                    return dump;
                }
                entry(table, &words, line, messages);
            }
        }
    }
    if section != Section::None {
        messages.error(begun, "the table does not end with COMMIT", None);
    }
    dump
}

/// Returns the lines with their numbers, from 1, and their byte offsets.
fn lines(text: &str) -> impl Iterator<Item = (u32, usize, &str)> {
    let mut start = 0;
    text.split('\n').zip(1..).map(move |(line, number)| {
        let here = start;
        start += line.len() + 1;
        (number, here, line.trim_end_matches('\r'))
    })
}

fn table_section(name: &Word, messages: &mut Messages) -> Section {
    match name.text.as_str() {
        "*filter" => Section::Filter,
        "*nat" => Section::Nat,
        "*mangle" | "*raw" | "*security" => Section::Other,
        _ => {
            let help = Some("tables are filter, nat, mangle, raw and security");
            messages.error(name.place, "unknown table", help);
            Section::Other
        }
    }
}

/// Reads a line that declares a chain or adds a rule.
fn entry(table: Option<&mut Table>, words: &[Word], line: &str, messages: &mut Messages) {
    let mut words = words;
    // Skip packet and byte counters.
    if words.len() > 1 && words[0].text.starts_with('[') {
        words = &words[1..];
    }
    let first = &words[0];
    if let Some(name) = first.text.strip_prefix(':') {
        let policy = words.get(1).map(|word| word.text.as_str());
        match (table, policy) {
            (Some(table), Some(policy @ ("ACCEPT" | "DROP" | "-"))) => {
                let policy = match policy {
                    "ACCEPT" => Some(Policy::Accept),
                    "DROP" => Some(Policy::Drop),
                    _ => None,
                };
                let chain = Chain { place: first.place, policy, rules: Vec::new() };
                table.insert(name.to_string(), chain);
            }
            (None, Some("ACCEPT" | "-")) => {}
            (None, Some("DROP")) => {
                messages.error(first.place, "a policy in this table has no equivalent", None);
            }
            _ => messages.error(first.place, "a policy (ACCEPT, DROP or -) is expected", None),
        }
        return;
    }
    let ("-A", Some(name)) = (first.text.as_str(), words.get(1)) else {
        let help = Some("rules begin with `-A CHAIN`, as iptables-save prints them");
        return messages.error(first.place, "a rule is expected", help);
    };
    let Some(table) = table else {
        let help =
            Some("pf has options of rules for this purpose: tag, scrub, set prio; see pf.conf(5)");
        let message = "rules of the tables mangle, raw and security have no equivalent";
        return messages.error(first.place, message, help);
    };
    let Some(chain) = table.get_mut(&name.text) else {
        let message = format!("chain '{}' is not declared", name.text);
        return messages.error(name.place, message, None);
    };
    if let Some(rule) = rule::parse(&words[2..], first.place, line, messages) {
        chain.rules.push(rule);
    }
}
