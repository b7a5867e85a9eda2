//! pfctl: OpenBSD's flags, messages and output for skipstep.
//!
//! [`args`] parses the command line into [`request::Args`] by the table in [`flags`], and [`run`]
//! executes it. [`live`] reads views from the filter; [`show`] prints views and needs no kernel.

pub mod access;
pub mod anchors;
pub mod args;
pub mod bridge;
pub mod completion;
pub mod criteria;
pub mod diff;
pub mod doc;
pub mod doctor;
pub mod drops;
pub mod explain;
pub mod failsafe;
pub mod filter;
pub mod flags;
pub mod flush;
pub mod fmt;
pub mod import;
pub mod kill;
pub mod live;
pub mod load;
pub mod log;
pub mod output;
pub mod refusal;
pub mod request;
pub mod run;
pub mod scenarios;
pub mod session;
pub mod shell;
pub mod show;
pub mod state_file;
pub mod table;
pub mod trial;
pub mod verbs;
pub mod views;
pub mod words;
