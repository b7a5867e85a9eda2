//! A table as text: columns are as wide as their cells, with two spaces between.

use comfy_table::presets::NOTHING;
use comfy_table::{Cell, CellAlignment, Table as Columns};

use super::Table;

/// Returns the table. Headings of several lines end at the same line.
pub(super) fn table(table: &Table) -> String {
    let lines = |heading: &str| heading.lines().count();
    let most = table.columns.iter().map(|column| lines(&column.heading)).max().unwrap_or(0);
    let mut text = Columns::new();
    text.load_style(NOTHING);
    text.set_header(
        table
            .columns
            .iter()
            .map(|column| Cell::new("\n".repeat(most - lines(&column.heading)) + &column.heading)),
    );
    text.add_rows(&table.rows);
    for (column, numeric) in text.column_iter_mut().zip(table.columns.iter().map(|c| c.numeric)) {
        column.set_padding((0, 2));
        column.set_cell_alignment(if numeric { CellAlignment::Right } else { CellAlignment::Left });
    }
    text.trim_fmt() + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stand_on_the_right() {
        let mut one = Table::new(&["system", "ns#", "less\ncable#", "95 %"]);
        one.rows.push(["Linux router", "5", "1234", "× 1.0"].map(str::to_owned).to_vec());
        one.rows.push(["cable", "12345", "", ""].map(str::to_owned).to_vec());
        let expected = "                      less\n\
                        system           ns  cable  95 %\n\
                        Linux router      5   1234  × 1.0\n\
                        cable         12345\n";
        assert_eq!(table(&one), expected);
    }
}
