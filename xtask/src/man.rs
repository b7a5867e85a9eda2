//! Files that are generated from the tables of flags of pfctl and pftop: manual pages and shell
//! completions.

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result};

/// Writes the files below `man/` of the project.
///
/// # Errors
/// Fails if a file cannot be written.
pub fn run() -> Result<ExitCode> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../man");
    for (name, text) in pfctl::doc::files().into_iter().chain(pftop::doc::files()) {
        let path = directory.join(name);
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent).with_context(|| parent.display().to_string())?;
        }
        std::fs::write(&path, text).with_context(|| path.display().to_string())?;
        println!("{}", path.display());
    }
    Ok(ExitCode::SUCCESS)
}
