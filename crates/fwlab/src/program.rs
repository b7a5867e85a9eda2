//! Programs that are run to their end.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread;

use anyhow::{Context, bail, ensure};

/// Runs a command to its end with `input` to read; what it printed.
///
/// # Errors
/// It is not there or fails; what it said is in the error.
pub fn run(command: &mut Command, input: &str) -> anyhow::Result<String> {
    use std::io::Write;

    let name = command.get_program().to_string_lossy().into_owned();
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = match command.spawn() {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            bail!("{name}: no such program: it is needed here, install it")
        }
        other => other.with_context(|| name.clone())?,
    };
    let mut pipe = child.stdin.take().context("no pipe to the command")?;
    let output = thread::scope(|scope| {
        // who ends before it read everything says why on its standard error
        scope.spawn(move || pipe.write_all(input.as_bytes()));
        child.wait_with_output()
    });
    let output = output.with_context(|| name.clone())?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{name}: {}", said_first(&said, &output.status.to_string()));
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// What somebody said: the first line with something in it, or else other words.
pub(crate) fn said_first<'s>(said: &'s str, otherwise: &'s str) -> &'s str {
    said.lines().find(|line| !line.trim().is_empty()).unwrap_or(otherwise)
}

/// A program that is to be beside this one, or in the path.
pub fn beside(name: &str) -> PathBuf {
    let beside = std::env::current_exe().ok().map(|own| own.with_file_name(name));
    beside.filter(|path| path.exists()).unwrap_or_else(|| name.into())
}
