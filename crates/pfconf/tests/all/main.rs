//! Tests of whole texts, in one program so that they are linked once.

mod anchors;
mod common;
mod differences;
mod docs;
mod failsafe;
mod format;
mod freebsd;
mod golden;
mod hostile;
mod identity;
mod manual;
mod meaning;
mod optimize;
mod optimized;
mod properties;
mod realworld;
mod regress;
mod translation;
