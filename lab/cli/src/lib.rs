//! A laboratory that measures a firewall from the hosts on both sides of it.
//!
//! [`request_response`]: one host echoes, and the other counts the answered requests a second. Only
//! one packet is under way at any time. So the figure is the latency of the whole path, and shows
//! the part that a firewall adds.
//!
//! [`ftp`]: the FTP sessions and the bytes a second that clients get.
//!
//! [`raw`]: frames that programs in the kernel make and count, through networks built for them.
//!
//! [`workload`]: commands that run in the order and at the times of a file or of a capture.
//!
//! [`paper`]: published measurements, repeated, beside the published figures.
//!
//! [`speed`]: the performance targets of skipstep beside the measured figures, in one table.
//!
//! [`lookups`]: rules and packets for a measurement of rule evaluation.

pub mod paper;
pub mod speed;
