//! `fwlab report`: makes one HTML page, or Markdown, of result files. The page needs no network.
//!
//! `content` has the contents of a report, `html` and `markdown` write it, and `chart` draws. Other
//! commands print a [`Table`] as text.

mod chart;
mod content;
mod html;
mod markdown;
pub(crate) mod number;
mod paper;
mod text;

use std::io::Write;
use std::path::PathBuf;

use anyhow::Context;

use crate::Run;

/// The flags of `fwlab report`.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Result files for one report
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
    /// A caveat for the reading of the figures.
    Warning(String),
    /// A table.
    Table(Table),
    /// A chart, with its title for readers who cannot see it.
    Chart(chart::Chart),
    /// A section with a title, closed until the reader opens it.
    Fold(String, Vec<Block>),
    /// Text printed unchanged.
    Verbatim(String),
}

/// Rows of cells below headings.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Table {
    columns: Vec<Column>,
    /// The rows. Each has a cell for each heading.
    pub rows: Vec<Vec<String>>,
}

/// A column of a table.
#[derive(Debug, Clone, PartialEq)]
struct Column {
    heading: String,
    numeric: bool,
    /// True for a column of names, in which lines do not wrap.
    whole: bool,
}

impl Table {
    /// Makes a table with these headings. A heading that ends in `#` is of numbers, in `=` of
    /// names.
    pub fn new(headings: &[&str]) -> Table {
        let column = |heading: &&str| Column {
            heading: heading.trim_end_matches(['#', '=']).to_string(),
            numeric: heading.ends_with('#'),
            whole: heading.ends_with('='),
        };
        Table { columns: headings.iter().map(column).collect(), rows: Vec::new() }
    }

    /// Returns the table as text, without columns that have no cells with text.
    pub fn text(self) -> String {
        text::table(&self.without_empty_columns())
    }

    /// Removes columns without any text.
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

/// Reads the result files, and writes the report.
///
/// # Errors
/// Fails if a file cannot be read or is no result, or if the report cannot be written.
pub fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let read = |path: &PathBuf| Run::read(path).with_context(|| path.display().to_string());
    let runs = arguments.files.iter().map(read).collect::<anyhow::Result<Vec<Run>>>()?;
    let text = if arguments.markdown { markdown(&runs) } else { html(&runs) };
    match &arguments.out {
        Some(path) => std::fs::write(path, text).with_context(|| path.display().to_string()),
        None => Ok(std::io::stdout().write_all(text.as_bytes())?),
    }
}

/// Returns the report of the runs as an HTML page.
pub fn html(runs: &[Run]) -> String {
    html::page(&content::title(runs), &content::report_blocks(runs))
}

/// Returns the report of the runs as Markdown.
pub fn markdown(runs: &[Run]) -> String {
    markdown::text(&content::report_blocks(runs))
}
