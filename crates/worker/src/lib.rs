//! Guardians and workers. A program that reads bytes of strangers runs as two processes: a
//! guardian, which keeps root's rights and reads no such byte, and a worker, which reads them and
//! has no rights ([`privileges`]). The worker gets descriptors that the guardian has opened
//! ([`descriptors`]), and asks for more over a [`channel`]. skipstepd, ftp-proxy and ftpsesame are
//! made of these parts.

pub mod channel;
pub mod descriptors;
pub mod privileges;
pub mod process;
