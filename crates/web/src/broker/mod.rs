//! The broker: executes the requests of the page with root's privileges, and nothing else.
//!
//! The broker listens on a unix socket. The group of the socket decides which processes may ask;
//! the token in a request decides whether it may change the filter.

mod command;
mod options;
mod session;
mod tokens;

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use anyhow::{Context, Result};

pub use command::Command;
pub use options::Options;
use options::{Administration, TokenCommand};
pub use session::read_request;

/// Maximum number of requests at a time. Each runs one pfctl.
const MAX_SESSIONS: usize = 32;

/// Executes the command line: lists or changes tokens, or serves requests until the process ends.
///
/// # Errors
/// Fails if the token file cannot be read or written, or if the socket cannot be made.
pub fn run(options: &Options) -> Result<()> {
    match &options.command {
        Some(Administration::Token(command)) => change_tokens(&options.tokens, command),
        None => serve(options),
    }
}

fn change_tokens(file: &Path, command: &TokenCommand) -> Result<()> {
    match command {
        TokenCommand::Add { role, name } => println!("{}", tokens::add(file, *role, name)?),
        TokenCommand::Remove { name } => tokens::remove(file, name)?,
        TokenCommand::List => {
            for token in tokens::read(file)? {
                println!("{} {}", token.role, token.name);
            }
        }
    }
    Ok(())
}

fn serve(options: &Options) -> Result<()> {
    let listener = listen(&options.socket, &options.group)
        .with_context(|| options.socket.display().to_string())?;
    let options = Arc::new(options.clone());
    let sessions = Arc::new(Sessions::default());
    for stream in listener.incoming() {
        let stream = match stream {
            Ok(stream) => stream,
            Err(error) => {
                // too many open files, for instance: others end soon
                eprintln!("skipstep-broker: {error}");
                thread::sleep(std::time::Duration::from_millis(100));
                continue;
            }
        };
        start(stream, &options, &sessions);
    }
    Ok(())
}

/// Serves one connection in a thread of its own.
fn start(stream: UnixStream, options: &Arc<Options>, sessions: &Arc<Sessions>) {
    let Some(slot) = sessions.take() else {
        session::refuse(&stream, "too many requests at a time: try again in a moment");
        return;
    };
    let options = Arc::clone(options);
    thread::spawn(move || {
        let _slot = slot;
        session::serve(&stream, &options);
    });
}

/// Makes the socket, for root and `group` only.
fn listen(path: &Path, group: &str) -> Result<UnixListener> {
    let group = nix::unistd::Group::from_name(group)?.with_context(|| {
        format!("there is no group {group}: `groupadd --system {group}` adds it")
    })?;
    match fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error.into()),
        _ => {}
    }
    // nobody connects before the group has the socket
    nix::sys::stat::umask(nix::sys::stat::Mode::from_bits_truncate(0o177));
    let listener = UnixListener::bind(path)?;
    chown(path, None, Some(group.gid.as_raw()))?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o660))?;
    Ok(listener)
}

/// The number of requests that are being served.
#[derive(Default)]
struct Sessions(AtomicUsize);

impl Sessions {
    fn take(self: &Arc<Self>) -> Option<Slot> {
        let add = |running| (running < MAX_SESSIONS).then_some(running + 1);
        self.0.fetch_update(Ordering::AcqRel, Ordering::Acquire, add).ok()?;
        Some(Slot(Arc::clone(self)))
    }
}

/// A place among the requests at a time, which is free again when this value is dropped.
struct Slot(Arc<Sessions>);

impl Drop for Slot {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_requests_at_a_time_is_limited() {
        let sessions = Arc::new(Sessions::default());
        let slots: Vec<Slot> = (0..MAX_SESSIONS).map_while(|_| sessions.take()).collect();
        assert_eq!(slots.len(), MAX_SESSIONS);
        assert!(sessions.take().is_none());
        drop(slots);
        assert!(sessions.take().is_some());
    }
}
