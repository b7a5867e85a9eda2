//! A report as one HTML page. Style and charts are inline: the page fetches nothing and has no
//! scripts.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::{Block, Column, Table, chart};

const STYLE: &str = include_str!("style.css");

/// Returns the whole page.
pub(super) fn page(title: &str, blocks: &[Block]) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) }
                style { (PreEscaped(STYLE)) }
            }
            body { main { (all(blocks)) } }
        }
    };
    page.into_string()
}

fn all(blocks: &[Block]) -> Markup {
    html! {
        @for block in blocks {
            @match block {
                Block::Heading(1, text) => h1 { (text) },
                Block::Heading(_, text) => h2 { (text) },
                Block::Text(text) => p { (text) },
                Block::Warning(text) => p.warning { (text) },
                Block::Table(rows) => (table(rows)),
                Block::Chart(drawn) => (chart::figure(drawn)),
                Block::Fold(title, inside) => details { summary { (title) } (all(inside)) },
                Block::Verbatim(text) => pre { (text) },
            }
        }
    }
}

fn class(column: &Column) -> Option<&'static str> {
    match (column.numeric, column.whole) {
        (true, _) => Some("number"),
        (false, true) => Some("whole"),
        (false, false) => None,
    }
}

fn table(table: &Table) -> Markup {
    // A thick line separates rows with different first numbers.
    let first = |row: usize| table.rows[row].first().filter(|_| table.columns[0].numeric);
    let begins = |row: usize| row > 0 && first(row) != first(row - 1);
    html! {
        div.wide {
            table {
                @if table.columns.iter().any(|column| !column.heading.is_empty()) {
                    thead {
                        tr {
                            @for column in &table.columns {
                                th class=[class(column)] { (column.heading) }
                            }
                        }
                    }
                }
                tbody {
                    @for (index, row) in table.rows.iter().enumerate() {
                        tr class=[begins(index).then_some("next")] {
                            @for (text, column) in row.iter().zip(&table.columns) {
                                td class=[class(column)] { (cell(text)) }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Returns a cell with intervals in brackets set smaller.
fn cell(text: &str) -> Markup {
    let is_interval = |text: &&str| text.ends_with(')') && text.contains(" – ");
    // findings have several values in a cell; each interval ends its line
    let several: Vec<&str> = text.split("; ").collect();
    let parts = if several.iter().all(is_interval) { several } else { vec![text] };
    html! {
        @for part in parts {
            @match part.split_once(" (").filter(|_| is_interval(&part)) {
                Some((value, interval)) => { (value) " " small { "(" (interval) } },
                None => (part),
            }
        }
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
