//! Runs of pfctl as from a shell.

use std::io::{Read, Write, pipe};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::Context;

/// The output of a run.
pub struct Output {
    pub stdout: String,
    pub stderr: String,
    /// True if the exit status was 0.
    pub success: bool,
}

/// The program, and its working directory.
pub struct Pfctl {
    program: PathBuf,
    folder: PathBuf,
}

impl Pfctl {
    /// Returns the pfctl that was built together with this program, to run in `folder`.
    ///
    /// # Errors
    /// Fails if the path of this program is unknown.
    pub fn beside(folder: &Path) -> anyhow::Result<Pfctl> {
        let own = std::env::current_exe()?;
        Ok(Pfctl { program: own.with_file_name("pfctl"), folder: folder.into() })
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.args(arguments).current_dir(&self.folder).stdin(Stdio::piped());
        // the host of the cases has no ssh session, so pfctl must not check one
        command.env_remove("SSH_CONNECTION");
        command
    }

    /// Runs pfctl with `input` as standard input. Returns both output streams separately.
    ///
    /// # Errors
    /// Fails if pfctl cannot be started.
    pub fn run(&self, arguments: &[&str], input: &str) -> anyhow::Result<Output> {
        self.run_command(self.command(arguments), input)
    }

    /// Runs pfctl as [`Pfctl::run`] does, in a new network namespace after the shell command
    /// `furnish`.
    ///
    /// # Errors
    /// Fails if unshare(1) cannot be started.
    pub fn run_elsewhere(
        &self,
        furnish: &str,
        arguments: &[&str],
        input: &str,
    ) -> anyhow::Result<Output> {
        let mut command = Command::new("unshare");
        command.args(["--net", "sh", "-c", &format!("{furnish} && exec \"$@\""), "sh"]);
        command.arg(&self.program).args(arguments);
        command.current_dir(&self.folder).stdin(Stdio::piped());
        self.run_command(command, input)
    }

    fn run_command(&self, mut command: Command, input: &str) -> anyhow::Result<Output> {
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let mut child = child.with_context(|| self.program.display().to_string())?;
        let writer = write_input(child.stdin.take(), input);
        let output = child.wait_with_output()?;
        let _ = writer.join();
        Ok(Output {
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
            success: output.status.success(),
        })
    }

    /// Runs pfctl with both output streams in `stdout`, as `2>&1` does.
    ///
    /// # Errors
    /// Fails if pfctl cannot be started, or if the output cannot be read.
    pub fn run_together(&self, arguments: &[&str], input: &str) -> anyhow::Result<Output> {
        let (mut reader, writer) = pipe()?;
        let mut command = self.command(arguments);
        command.stdout(writer.try_clone()?).stderr(writer);
        let mut child = command.spawn().with_context(|| self.program.display().to_string())?;
        // the command has open write ends, so the pipe would never end
        drop(command);
        let feeder = write_input(child.stdin.take(), input);
        let mut bytes = Vec::new();
        reader.read_to_end(&mut bytes)?;
        let _ = feeder.join();
        Ok(Output {
            stdout: String::from_utf8_lossy(&bytes).into_owned(),
            stderr: String::new(),
            success: child.wait()?.success(),
        })
    }
}

/// Writes the input in a thread, because a program that does not read all of it must not block us.
fn write_input(
    stdin: Option<std::process::ChildStdin>,
    input: &str,
) -> std::thread::JoinHandle<()> {
    let input = input.to_owned();
    std::thread::spawn(move || {
        if let Some(mut stdin) = stdin {
            // a program that ends early closes its input
            let _ = stdin.write_all(input.as_bytes());
        }
    })
}
