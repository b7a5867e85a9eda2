//! `fwlab report`: result files as one page that opens without a network, or as Markdown.
//!
//! `content` says what is in a report, `html` and `markdown` how it is written, `chart` draws.

mod chart;
mod content;
mod escape;
mod html;
mod markdown;
mod number;
mod paper;

use std::io::Write;
use std::path::PathBuf;

use anyhow::Context;

use crate::results::Run;

/// What is to be reported.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Result files; several make one report
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// File to write, instead of standard output
    #[arg(long, short, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Write Markdown instead of HTML
    #[arg(long)]
    markdown: bool,
}

/// A part of a report.
#[derive(Debug, Clone, PartialEq)]
enum Block {
    /// A heading of level 1 to 3.
    Heading(u8, String),
    /// A paragraph.
    Text(String),
    /// What must be known to read the figures.
    Warning(String),
    /// A table.
    Table(Table),
    /// A picture, and the same in words for who cannot see it.
    Chart(chart::Chart),
    /// Something that is only shown when asked for.
    Fold(String, Vec<Block>),
    /// Text as it is, every character of it.
    Verbatim(String),
}

/// Rows of cells below headings.
#[derive(Debug, Clone, Default, PartialEq)]
struct Table {
    columns: Vec<Column>,
    rows: Vec<Vec<String>>,
}

/// A column of a table.
#[derive(Debug, Clone, PartialEq)]
struct Column {
    heading: String,
    numeric: bool,
    /// Holds names, which are not broken.
    whole: bool,
}

impl Table {
    /// Columns of these headings; those that end in `#` hold numbers, in `=` names.
    fn new(headings: &[&str]) -> Table {
        let column = |heading: &&str| Column {
            heading: heading.trim_end_matches(['#', '=']).to_string(),
            numeric: heading.ends_with('#'),
            whole: heading.ends_with('='),
        };
        Table { columns: headings.iter().map(column).collect(), rows: Vec::new() }
    }

    /// Takes away columns in which no row has anything.
    fn without_empty_columns(mut self) -> Table {
        for index in (0..self.columns.len()).rev() {
            if self.rows.iter().all(|row| row[index].is_empty()) {
                self.columns.remove(index);
                for row in &mut self.rows {
                    row.remove(index);
                }
            }
        }
        self
    }
}

/// Reads the files and writes the report.
///
/// # Errors
/// A file is of no use, or the report cannot be written.
pub fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let read = |path: &PathBuf| Run::read(path).with_context(|| path.display().to_string());
    let runs = arguments.files.iter().map(read).collect::<anyhow::Result<Vec<Run>>>()?;
    let text = if arguments.markdown { markdown(&runs) } else { html(&runs) };
    match &arguments.out {
        Some(path) => std::fs::write(path, text).with_context(|| path.display().to_string()),
        None => Ok(std::io::stdout().write_all(text.as_bytes())?),
    }
}

/// The report of some runs as a page.
pub fn html(runs: &[Run]) -> String {
    html::page(&content::title(runs), &content::of(runs))
}

/// The report of some runs as Markdown.
pub fn markdown(runs: &[Run]) -> String {
    markdown::text(&content::of(runs))
}
