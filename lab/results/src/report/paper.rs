//! The sections of a report about a repeated paper: its source, deviations from its experiment, and
//! its tables with the measured figures.

use super::{Block, Table};
use crate::Paper;

/// Returns the source of the paper, and the deviations from it.
pub(super) fn introduced(paper: &Paper) -> Vec<Block> {
    let mut blocks = vec![Block::Text(format!("After “{}”: {}.", paper.title, paper.source))];
    if !paper.differences.is_empty() {
        let listed = paper.differences.join("; ");
        blocks.push(Block::Text(format!("Otherwise than there: {listed}.")));
    }
    blocks
}

/// Returns the paper's tables.
pub(super) fn tables(paper: &Paper) -> Vec<Block> {
    let titled =
        |table: &crate::Table| [Block::Heading(2, table.title.clone()), Block::Table(table.into())];
    paper.tables.iter().flat_map(titled).collect()
}

impl From<&crate::Table> for Table {
    fn from(table: &crate::Table) -> Table {
        let heading = |(place, text): (usize, &String)| {
            let kind = if place < table.names { '=' } else { '#' };
            format!("{text}{kind}")
        };
        let headings: Vec<String> = table.columns.iter().enumerate().map(heading).collect();
        let headings: Vec<&str> = headings.iter().map(String::as_str).collect();
        Table { rows: table.rows.clone(), ..Table::new(&headings) }
    }
}
