//! What a process that reads what strangers send gives up: it has no files, and is nobody.

use anyhow::{Context, Result};
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::Signal;
use nix::unistd::{User, chdir, chroot, setgroups, setresgid, setresuid};

/// Users without rights, of whom a process becomes the first that there is.
pub(crate) const USERS: [&str; 2] = ["proxy", "nobody"];

/// Gives them up. The process ends with its parent, which opens the filter for it.
///
/// # Errors
/// There is no such user, or the system refuses.
pub fn drop() -> Result<()> {
    let users = USERS.iter().find_map(|name| User::from_name(name).ok().flatten());
    let user = users.context("neither a user `proxy` nor `nobody`")?;
    let empty = skipstep_kernel::empty_folder()?;
    // the folder is root's alone, so the process enters it as long as it still is root
    chroot(&empty).with_context(|| empty.display().to_string())?;
    chdir("/").with_context(|| empty.display().to_string())?;
    setgroups(&[user.gid]).context("groups")?;
    setresgid(user.gid, user.gid, user.gid).context("group")?;
    setresuid(user.uid, user.uid, user.uid).context("user")?;
    set_pdeathsig(Signal::SIGTERM).context("guardian")
}
