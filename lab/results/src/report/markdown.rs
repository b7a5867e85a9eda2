//! A report as Markdown.

use std::fmt::Write;

use super::{Block, Table};

/// Returns the whole report.
pub(super) fn text(blocks: &[Block]) -> String {
    let mut out = String::new();
    write_all(&mut out, blocks);
    out
}

fn write_all(out: &mut String, blocks: &[Block]) {
    for block in blocks {
        match block {
            Block::Heading(level, text) => {
                let _ = writeln!(out, "{} {}\n", "#".repeat(usize::from(*level)), escaped(text));
            }
            Block::Text(text) => {
                let _ = writeln!(out, "{}\n", escaped(text));
            }
            Block::Warning(text) => {
                let _ = writeln!(out, "> **{}**\n", escaped(text));
            }
            Block::Table(table) => write_table(out, table),
            // The table below the chart has the same figures.
            Block::Chart(_) => {}
            Block::Fold(title, inside) => {
                let _ = writeln!(out, "### {}\n", escaped(title));
                write_all(out, inside);
            }
            Block::Verbatim(text) => {
                let fence = "`".repeat(longest_run(text, '`').max(2) + 1);
                let _ = writeln!(out, "{fence}\n{}\n{fence}\n", text.trim_end_matches('\n'));
            }
        }
    }
}

fn write_table(out: &mut String, table: &Table) {
    let row = |cells: &mut dyn Iterator<Item = String>| {
        format!("| {} |", cells.collect::<Vec<_>>().join(" | "))
    };
    let _ = writeln!(out, "{}", row(&mut table.columns.iter().map(|c| escaped(&c.heading))));
    let rule = |numeric| if numeric { "---:" } else { "---" }.to_string();
    let _ = writeln!(out, "{}", row(&mut table.columns.iter().map(|c| rule(c.numeric))));
    for cells in &table.rows {
        let _ = writeln!(out, "{}", row(&mut cells.iter().map(|cell| escaped(cell))));
    }
    out.push('\n');
}

/// Escapes special characters of Markdown, and replaces line ends by spaces.
fn escaped(text: &str) -> String {
    let mut out = String::new();
    for letter in text.chars() {
        match letter {
            '\\' | '`' | '*' | '_' | '<' | '>' | '[' | ']' | '|' | '#' => {
                out.extend(['\\', letter])
            }
            '\n' | '\r' => out.push(' '),
            _ => out.push(letter),
        }
    }
    out
}

fn longest_run(text: &str, of: char) -> usize {
    text.split(|letter| letter != of).map(str::len).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example;

    #[test]
    fn a_run_in_markdown() {
        let text = crate::report::markdown(&[example::run()]);
        assert!(
            text.starts_with("# Linux vs. OpenBSD: A Firewall Performance Test, repeated"),
            "{text}"
        );
        assert!(text.contains("| 500 | UDP 64 | 4590 | 41 000 |"), "{text}");
        assert!(text.contains("> **Mode cost: run to completion on one CPU"), "{text}");
        let row = text.lines().find(|line| line.starts_with("| 100 | nftables flat |")).unwrap();
        assert!(row.contains("| 1\u{202f}306 (") && row.contains("| 4.2"), "{row}");
        assert!(text.contains("```\ndrop <&> \"quoted\"\n"), "{text}");
        let cells = |line: &str| line.matches(" | ").count();
        let heading = text.lines().find(|line| line.starts_with("| Rules | System")).unwrap();
        assert_eq!(cells(heading), cells(row), "{heading}\n{row}");
    }

    #[test]
    fn marks_are_only_letters() {
        assert_eq!(escaped("a|b\n*c*"), "a\\|b \\*c\\*");
        let fenced = text(&[Block::Verbatim("x\n````\ny".to_string())]);
        assert_eq!(fenced, "`````\nx\n````\ny\n`````\n\n");
    }
}
