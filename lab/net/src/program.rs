//! Running other programs to their end.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread;

use anyhow::{Context, bail, ensure};

/// Runs a command to its end with `input` as its standard input, and returns its standard output.
///
/// # Errors
/// Fails if the program does not exist or fails; the error has its message.
pub fn run(command: &mut Command, input: &str) -> anyhow::Result<String> {
    use std::io::Write;

    let name = command.get_program().to_string_lossy().into_owned();
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = match command.spawn() {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            bail!("{name}: no such program: install it")
        }
        other => other.with_context(|| name.clone())?,
    };
    let mut pipe = child.stdin.take().context("no pipe to the command")?;
    let output = thread::scope(|scope| {
        // a command that ends before it read its input reports the reason on standard error
        scope.spawn(move || pipe.write_all(input.as_bytes()));
        child.wait_with_output()
    });
    let output = output.with_context(|| name.clone())?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(
        output.status.success(),
        "{name}: {}",
        first_message(&said, &output.status.to_string())
    );
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Returns the first line of `said` that is not blank, or `otherwise` if there is none.
pub(crate) fn first_message<'s>(said: &'s str, otherwise: &'s str) -> &'s str {
    said.lines().find(|line| !line.trim().is_empty()).unwrap_or(otherwise)
}

/// Returns the path of a program beside this one, or its bare name if it is not there.
pub fn beside(name: &str) -> PathBuf {
    let beside = std::env::current_exe().ok().map(|own| own.with_file_name(name));
    beside.filter(|path| path.exists()).unwrap_or_else(|| name.into())
}
