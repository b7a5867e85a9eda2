//! Contents of tables from statements and files, and their output (pf-features section 11).

use std::collections::HashSet;

use ipnet::IpNet;
use skipstep_ruleset::{Table, TableEntry};

use crate::ast::{Address, Host, TableContents, TableDefinition};
use crate::context::Context;
use crate::{print, resolve};

/// Most bytes of a table name.
pub const LONGEST_NAME: usize = 31;

/// Most bytes of a word in a table file. No host name is longer.
const LONGEST_WORD: usize = 255;

/// Returns the table that a statement defines. Appends messages that OpenBSD prints without a place
/// to `bare`.
///
/// # Errors
/// Fails with OpenBSD's message if an entry is no network, or if a file cannot be read or parsed.
pub fn define(
    definition: &TableDefinition,
    context: &Context,
    bare: &mut Vec<String>,
) -> Result<Table, String> {
    let mut entries = Vec::new();
    for contents in &definition.contents {
        match contents {
            TableContents::List(hosts) => {
                for host in hosts {
                    match entry(host, false) {
                        Some(entry) => entries.push(entry),
                        None => {
                            return Err(
                                "cannot create address buffer: Invalid argument".to_string()
                            );
                        }
                    }
                }
            }
            TableContents::File(name) => {
                let text = (context.read_file)(name)
                    .map_err(|error| format!("cannot load \"{name}\": {}", plain(&error)))?;
                let lines = parse(&text, context).map_err(|(_, message)| {
                    bare.push(message);
                    format!("file \"{name}\" contains bad data")
                })?;
                entries.extend(lines);
            }
        }
    }
    Ok(Table {
        name: definition.name.clone(),
        persist: definition.persist,
        constant: definition.constant,
        counters: definition.counters,
        defined: true,
        stated: true,
        initialized: definition.initialized,
        entries: without_duplicates(entries),
    })
}

/// Parses the text of a table file. `#` and FreeBSD's `;` begin comments.
///
/// # Errors
/// Fails at the first wrong entry, with its line number (from 1) and a message.
pub fn parse(text: &str, context: &Context) -> Result<Vec<TableEntry>, (u32, String)> {
    let mut entries = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let wrong = |message| (index as u32 + 1, message);
        let mut words =
            line.split(['#', ';']).next().unwrap_or_default().split_whitespace().peekable();
        while let Some(word) = words.next() {
            if word.len() > LONGEST_WORD {
                return Err(wrong("string too long".to_string()));
            }
            let name = word.trim_start_matches('!');
            let negated = (word.len() - name.len()) % 2 == 1;
            let weight = match words.next_if_eq(&"weight") {
                None => 0,
                Some(_) => weight(words.next()).map_err(wrong)?,
            };
            for host in resolve::host(name, context).map_err(wrong)? {
                let entry = entry(&Host { weight, ..host }, negated);
                entries
                    .push(entry.ok_or_else(|| wrong(format!("prefix too long for IPv4: {name}")))?);
            }
        }
    }
    Ok(entries)
}

/// Parses the number behind `weight`.
fn weight(word: Option<&str>) -> Result<u16, String> {
    let word = word.ok_or("a number must follow weight")?;
    match word.parse() {
        Ok(weight) if weight > 0 => Ok(weight),
        _ => Err(format!("weight out of range: {word}")),
    }
}

fn entry(host: &Host, negated: bool) -> Option<TableEntry> {
    let Address::Net(address, length) = host.address else {
        return None;
    };
    let net = resolve::net(address, length)?;
    Some(TableEntry { negated: host.negated ^ negated, net, weight: host.weight })
}

/// Removes all but the first entry for a network, as pf does.
fn without_duplicates(mut entries: Vec<TableEntry>) -> Vec<TableEntry> {
    let mut seen = HashSet::<IpNet>::with_capacity(entries.len());
    entries.retain(|entry| seen.insert(entry.net));
    entries
}

/// Returns an I/O error in the words of strerror(3), without Rust's error number.
pub fn plain(error: &std::io::Error) -> String {
    use std::io::ErrorKind;
    match error.kind() {
        ErrorKind::NotFound => "No such file or directory".to_string(),
        ErrorKind::PermissionDenied => "Permission denied".to_string(),
        _ => {
            let text = error.to_string();
            text.split(" (os error").next().unwrap_or(&text).to_string()
        }
    }
}

/// Returns the statement as `pfctl -nv` prints it.
pub fn echo(table: &TableDefinition) -> String {
    // only here may a number be the name of a table
    let is_number = table.name.bytes().all(|c| c.is_ascii_digit());
    let name = if is_number { table.name.as_str().into() } else { print::word(&table.name) };
    let mut text = format!("table <{name}>");
    for (is_set, word) in
        [(table.constant, " const"), (table.persist, " persist"), (table.counters, " counters")]
    {
        text += if is_set { word } else { "" };
    }
    let mut in_list = false;
    for contents in &table.contents {
        match contents {
            TableContents::File(name) => {
                text += if in_list { " }" } else { "" };
                text += &format!(" file {}", print::quoted(name));
                in_list = false;
            }
            TableContents::List(hosts) => {
                text += if in_list { "" } else { " {" };
                for host in hosts {
                    text += if host.negated { " !" } else { " " };
                    text += &print::host(host);
                }
                in_list = true;
            }
        }
    }
    text += if in_list { " }" } else { "" };
    if table.initialized && table.contents.is_empty() {
        text += " { }";
    }
    text
}
