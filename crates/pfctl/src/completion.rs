//! Sources of shell completions.

/// The source of a value's completions in a shell.
#[derive(Debug, Clone, Copy)]
pub enum Completion {
    /// no completions
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
