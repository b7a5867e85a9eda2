//! What shells complete.

/// What a shell completes a value with.
#[derive(Debug, Clone, Copy)]
pub enum Completion {
    /// nothing
    None,
    /// file names
    File,
    /// names of network interfaces
    Interface,
    /// names of tables
    Table,
    /// paths of anchors
    Anchor,
    /// words of a list
    Words(fn() -> Vec<&'static str>),
}
