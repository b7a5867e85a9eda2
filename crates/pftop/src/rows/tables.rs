//! Rows of tables.

use pfctl::show::tables::{TableView, flags, full_name};

use super::{arrange, bytes, largest, number, rate};
use crate::order::Order;
use crate::speed::{Counted, Speed, Speeds};
use crate::table::{Cell, Column, Rows, Subject};

const COLUMNS: [Column; 8] = [
    Column::left("TABLE", 18, 60),
    Column::left("FLAGS", 7, 7),
    Column::right("ADDRS", 7, 10),
    Column::right("MATCH", 7, 12),
    Column::right("NOMATCH", 7, 12),
    Column::right("PKTS", 7, 12),
    Column::right("BYTES", 7, 14),
    Column::right("BYTE/S", 7, 12),
];

/// The tables that exist.
pub struct Tables {
    tables: Vec<TableView>,
    speeds: Vec<Speed>,
    rows: Vec<u32>,
}

/// Returns the packets and bytes of rules that name the table.
fn counted(table: &TableView) -> Counted {
    table.traffic.iter().flatten().fold(Counted::default(), |sum, cell| Counted {
        packets: sum.packets + cell.packets,
        bytes: sum.bytes + cell.bytes,
    })
}

impl Tables {
    /// Makes the rows.
    pub fn new(
        mut tables: Vec<TableView>,
        speeds: &mut Speeds<String>,
        now: std::time::Instant,
    ) -> Tables {
        tables.retain(|table| table.active);
        let speeds =
            speeds.update(now, tables.iter().map(|table| (full_name(table), counted(table))));
        let rows = (0..tables.len() as u32).collect();
        Tables { tables, speeds, rows }
    }
}

impl Rows for Tables {
    fn columns(&self) -> &[Column] {
        &COLUMNS
    }

    fn len(&self) -> usize {
        self.rows.len()
    }

    fn arrange(&mut self, order: Order, reverse: bool, end: usize) {
        let (tables, speeds) = (&self.tables, &self.speeds);
        let compare = largest(|row: usize| match order {
            Order::Packets => Some(counted(&tables[row]).packets),
            Order::Bytes => Some(counted(&tables[row]).bytes),
            Order::Addresses => Some(tables[row].addresses as u64),
            _ => speeds[row].bytes,
        });
        let compare: Option<&dyn Fn(u32, u32) -> _> =
            if order == Order::None { None } else { Some(&compare) };
        arrange(&mut self.rows, reverse, end, compare);
    }

    fn cell(&self, place: usize, column: usize, width: usize) -> Cell {
        let row = self.rows[place] as usize;
        let table = &self.tables[row];
        Cell::plain(match column {
            0 => full_name(table),
            1 => flags(table),
            2 => number(table.addresses as u64, width),
            3 => number(table.matches, width),
            4 => number(table.nomatch, width),
            5 => number(counted(table).packets, width),
            6 => bytes(counted(table).bytes, width),
            _ => rate(self.speeds[row].bytes, width, 1024),
        })
    }

    fn details(&self, place: usize) -> [String; 2] {
        let table = &self.tables[self.rows[place] as usize];
        [
            format!(
                "table <{}>: {} addresses, {} references in rules",
                full_name(table),
                table.addresses,
                table.rules
            ),
            format!("{} lookups matched, {} did not", table.matches, table.nomatch),
        ]
    }

    fn subject(&self, _: usize) -> Subject {
        Subject::Other
    }
}
