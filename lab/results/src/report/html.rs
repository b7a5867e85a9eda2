//! A report as one HTML page. Style and charts are inline: the page fetches nothing and has no
//! scripts.

use std::fmt::Write;

use super::escape::escaped;
use super::{Block, Column, Table, chart};

const STYLE: &str = include_str!("style.css");

/// Returns the whole page.
pub(super) fn page(title: &str, blocks: &[Block]) -> String {
    let mut out = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <title>{}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n",
        escaped(title)
    );
    write_all(&mut out, blocks);
    out.push_str("</main>\n</body>\n</html>\n");
    out
}

fn write_all(out: &mut String, blocks: &[Block]) {
    for block in blocks {
        let _ = match block {
            Block::Heading(level, text) => writeln!(out, "<h{level}>{}</h{level}>", escaped(text)),
            Block::Text(text) => writeln!(out, "<p>{}</p>", escaped(text)),
            Block::Warning(text) => writeln!(out, "<p class=\"warning\">{}</p>", escaped(text)),
            Block::Table(table) => {
                write_table(out, table);
                Ok(())
            }
            Block::Chart(chart) => {
                chart::write(out, chart);
                Ok(())
            }
            Block::Fold(title, inside) => {
                let _ = writeln!(out, "<details>\n<summary>{}</summary>", escaped(title));
                write_all(out, inside);
                writeln!(out, "</details>")
            }
            Block::Verbatim(text) => writeln!(out, "<pre>{}</pre>", escaped(text)),
        };
    }
}

fn write_table(out: &mut String, table: &Table) {
    out.push_str("<div class=\"wide\"><table>\n");
    let class = |column: &Column| match (column.numeric, column.whole) {
        (true, _) => " class=\"number\"",
        (false, true) => " class=\"whole\"",
        (false, false) => "",
    };
    if table.columns.iter().any(|column| !column.heading.is_empty()) {
        out.push_str("<thead><tr>");
        for column in &table.columns {
            let _ = write!(out, "<th{}>{}</th>", class(column), escaped(&column.heading));
        }
        out.push_str("</tr></thead>\n");
    }
    out.push_str("<tbody>\n");
    // A thick line separates rows with different first numbers.
    let mut before: Option<&String> = None;
    for row in &table.rows {
        let first = row.first().filter(|_| table.columns[0].numeric);
        let begins = before.is_some() && first.is_some() && first != before;
        out.push_str(if begins { "<tr class=\"next\">" } else { "<tr>" });
        before = first;
        for (cell, column) in row.iter().zip(&table.columns) {
            let _ = write!(out, "<td{}>{}</td>", class(column), cell_text(cell));
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</tbody></table></div>\n");
}

/// Returns a cell with intervals in brackets set smaller.
fn cell_text(cell: &str) -> String {
    let is_interval = |text: &str| text.ends_with(')') && text.contains(" – ");
    let one = |text: &str| match text.split_once(" (") {
        Some((value, interval)) if is_interval(text) => {
            format!("{} <small>({}</small>", escaped(value), escaped(interval))
        }
        _ => escaped(text),
    };
    // findings have several values in a cell
    let several: Vec<&str> = cell.split("; ").collect();
    match several.iter().all(|text| is_interval(text)) {
        // each interval ends its line
        true => several.into_iter().map(one).collect(),
        false => one(cell),
    }
}

#[cfg(test)]
mod tests {
    use crate::report::html;
    use crate::{Role, System, example};

    #[test]
    fn a_page_has_everything_and_fetches_nothing() {
        let page = html(&[example::run()]);
        for expected in [
            "<title>Linux vs. OpenBSD: A Firewall Performance Test, repeated 2026-11-22T18:00:00Z</title>",
            "<td class=\"number\">4590</td><td class=\"number\">41 000</td>",
            "Otherwise than there: shorter trials.",
            "run to completion on one CPU, no queueing; not RFC 2544 throughput",
            "drop &lt;&amp;&gt; &quot;quoted&quot;",
            "holds here",
            "<svg",
            "Fast Processor",
            "nftables v1.0.6",
        ] {
            assert!(page.contains(expected), "{expected}");
        }
        for forbidden in ["http:", "https:", "src=", "<script", "@import", "url(", "<link"] {
            assert!(!page.contains(forbidden), "{forbidden}");
        }
        // A page of two runs has both.
        assert!(html(&[example::run(), example::run()]).matches("<figure>").count() == 2);
    }

    #[test]
    fn text_of_a_run_is_escaped() {
        let mut run = example::run();
        let evil = "</pre><script>alert('x')</script>";
        let mut system = System::new("evil", evil, Role::Subject, "router", evil.to_string());
        system.hooks = vec![evil.to_string()];
        run.systems.push(system);
        run.series[0].title = evil.to_string();
        run.series[0].points[0].void = Some(evil.to_string());
        run.incomplete_because = Some(evil.to_string());
        if let Some(paper) = &mut run.paper {
            paper.title = evil.to_string();
            paper.tables[0].rows[0][2] = evil.to_string();
        }
        run.complete = false;
        for sample in &mut run.series[0].points[0].samples {
            if sample.system == "null" {
                sample.system = "evil".to_string();
            }
        }
        assert!(!html(&[run]).contains("<script"));
    }
}
