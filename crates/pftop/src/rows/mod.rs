//! The rows of each kind of view.

pub mod drops;
pub mod interfaces;
pub mod log;
pub mod queues;
pub mod rules;
pub mod states;
pub mod tables;

use std::cmp::{Ordering, Reverse};

use crate::number::amount;
use crate::speed::Speed;

/// Prints a number of packets, addresses or states.
fn number(number: u64, width: usize) -> String {
    amount(number, width, 1000)
}

/// Prints a number of bytes.
fn bytes(number: u64, width: usize) -> String {
    amount(number, width, 1024)
}

/// Prints a rate, or `-` if nothing is known yet.
fn rate(rate: Option<u64>, width: usize, base: u64) -> String {
    rate.map_or_else(|| "-".to_owned(), |rate| amount(rate, width, base))
}

/// Compares two values of rows, of which the larger comes first.
fn largest<T: Ord>(value: impl Fn(usize) -> T) -> impl Fn(u32, u32) -> Ordering {
    move |a, b| Reverse(value(a as usize)).cmp(&Reverse(value(b as usize)))
}

/// Puts row numbers in an order. `compare` is `None` for the order of the numbers.
fn arrange(
    rows: &mut [u32],
    reverse: bool,
    end: usize,
    compare: Option<&dyn Fn(u32, u32) -> Ordering>,
) {
    match (compare, reverse) {
        (None, false) => rows.sort_unstable(),
        (None, true) => rows.sort_unstable_by_key(|row| Reverse(*row)),
        (Some(compare), false) => crate::table::sort_first(rows, end, compare),
        (Some(compare), true) => crate::table::sort_first(rows, end, |a, b| compare(b, a)),
    }
}

/// Returns the rate by which rows are sorted; unknown rates come last.
fn byte_rate(speeds: &[Speed]) -> impl Fn(usize) -> Option<u64> + '_ {
    |row| speeds[row].bytes
}
