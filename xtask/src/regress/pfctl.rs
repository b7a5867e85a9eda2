//! Runs pfctl as a shell would.

use std::io::{Read, Write, pipe};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::Context;

/// What a run of pfctl left.
pub struct Output {
    pub stdout: String,
    pub stderr: String,
    /// It exited with status 0.
    pub success: bool,
}

/// The program, and the folder it is run in.
pub struct Pfctl {
    program: PathBuf,
    folder: PathBuf,
}

impl Pfctl {
    /// The pfctl that was built together with this program.
    pub fn beside(folder: &Path) -> anyhow::Result<Pfctl> {
        let own = std::env::current_exe()?;
        Ok(Pfctl { program: own.with_file_name("pfctl"), folder: folder.into() })
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.args(arguments).current_dir(&self.folder).stdin(Stdio::piped());
        // the machine's own pfctl says nothing of a session it is not in
        command.env_remove("SSH_CONNECTION");
        command
    }

    /// Both streams, each by itself.
    pub fn run(&self, arguments: &[&str], input: &str) -> anyhow::Result<Output> {
        self.run_command(self.command(arguments), input)
    }

    /// As [`Pfctl::run`], in a network namespace of its own that a shell command furnishes first.
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

    /// Both streams in one (`2>&1`), in `stdout`.
    pub fn run_together(&self, arguments: &[&str], input: &str) -> anyhow::Result<Output> {
        let (mut reader, writer) = pipe()?;
        let mut command = self.command(arguments);
        command.stdout(writer.try_clone()?).stderr(writer);
        let mut child = command.spawn().with_context(|| self.program.display().to_string())?;
        // with our own writing ends the pipe would never end
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

/// Writes in a thread of its own: whoever does not read all of its input must not block us.
fn write_input(
    stdin: Option<std::process::ChildStdin>,
    input: &str,
) -> std::thread::JoinHandle<()> {
    let input = input.to_owned();
    std::thread::spawn(move || {
        if let Some(mut stdin) = stdin {
            // a program that ends early has closed it
            let _ = stdin.write_all(input.as_bytes());
        }
    })
}
