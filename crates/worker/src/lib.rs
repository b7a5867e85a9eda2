//! Guardians and workers. A program that reads untrusted bytes runs as two processes. The guardian
//! keeps root's rights and reads none of these bytes. The worker reads them and has no rights
//! ([`privileges`]). The worker gets descriptors that the guardian has opened ([`descriptors`]),
//! and requests more over a [`channel`]. skipstepd, ftp-proxy and ftpsesame consist of such
//! processes.

pub mod channel;
pub mod descriptors;
pub mod privileges;
pub mod process;
