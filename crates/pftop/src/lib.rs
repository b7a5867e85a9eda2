//! pftop: the states, rules and counters of the filter on a terminal, as they change.
//!
//! [`app`] has the state of the program and reads the rows of a view through [`source`]. [`page`]
//! makes the lines of the screen from it. [`screen`] draws these lines on a terminal, and [`batch`]
//! prints them. [`keys`] has the commands of the user.

pub mod app;
pub mod batch;
pub mod doc;
pub mod filter;
pub mod glyphs;
pub mod keys;
pub mod number;
pub mod options;
pub mod order;
pub mod page;
pub mod privileges;
pub mod rows;
pub mod run;
pub mod screen;
pub mod source;
pub mod speed;
pub mod status;
pub mod table;
pub mod terminal;
pub mod view;
