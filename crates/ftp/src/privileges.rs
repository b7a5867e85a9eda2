//! What a process that reads what strangers send gives up: it has no files, and is nobody.

use std::fs;

use anyhow::{Context, Result};
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::Signal;
use nix::unistd::{User, chdir, chroot, setgroups, setresgid, setresuid};

/// An empty folder, all that the process sees of the file system.
const EMPTY: &str = "/run/skipstep/empty";

/// Users without rights, of whom a process becomes the first that there is.
pub(crate) const USERS: [&str; 2] = ["proxy", "nobody"];

/// Gives them up. The process ends with its parent, which opens the filter for it.
///
/// # Errors
/// There is no such user, or the system refuses.
pub fn drop() -> Result<()> {
    let users = USERS.iter().find_map(|name| User::from_name(name).ok().flatten());
    let user = users.context("neither a user `proxy` nor `nobody`")?;
    fs::create_dir_all(EMPTY).context(EMPTY)?;
    chroot(EMPTY).context(EMPTY)?;
    chdir("/").context(EMPTY)?;
    setgroups(&[user.gid]).context("groups")?;
    setresgid(user.gid, user.gid, user.gid).context("group")?;
    setresuid(user.uid, user.uid, user.uid).context("user")?;
    set_pdeathsig(Signal::SIGTERM).context("guardian")
}
