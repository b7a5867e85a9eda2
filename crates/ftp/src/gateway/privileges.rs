//! Whose rights the gateway has: root's to take its ports, and then nobody's.

use std::ffi::CString;

use anyhow::{Context, Result, bail};
use nix::sys::prctl::set_no_new_privs;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::unistd::{User, geteuid, initgroups, setresgid, setresuid};
use skipstep_worker::privileges::USERS;

/// Descriptors of a session at most: two control connections, two data connections, a pipe, and who
/// listens.
const FILES: usize = 8;

/// Descriptors that the process has besides those of its sessions.
const OTHER_FILES: usize = 64;

/// Sees to it that the sessions can have their descriptors, as far as the system allows it: one
/// that gets none for its server or its data is told so. What is wrong with that, if something is.
///
/// # Errors
/// There are not even enough for clients.
pub fn make_room(sessions: usize) -> Result<Option<String>> {
    let (least, most) = (sessions + OTHER_FILES, sessions * FILES + OTHER_FILES);
    let (_, allowed) = getrlimit(Resource::RLIMIT_NOFILE).context("open files")?;
    if allowed >= most as u64
        || setrlimit(Resource::RLIMIT_NOFILE, most as u64, most as u64).is_ok()
    {
        let allowed = allowed.max(most as u64);
        setrlimit(Resource::RLIMIT_NOFILE, allowed, allowed).context("open files")?;
        return Ok(None);
    }
    if allowed < least as u64 {
        bail!("{sessions} sessions need {least} open files, and only {allowed} are allowed");
    }
    setrlimit(Resource::RLIMIT_NOFILE, allowed, allowed).context("open files")?;
    Ok(Some(format!("{sessions} sessions may need {most} open files, and {allowed} are allowed")))
}

/// Becomes `user`, if root has started the program. Only who names `root` stays root.
///
/// # Errors
/// There is no such user, or those of the system.
pub fn drop_to(user: Option<&str>) -> Result<()> {
    set_no_new_privs().context("privileges")?;
    if !geteuid().is_root() {
        return Ok(());
    }
    let find = |name: &str| User::from_name(name).ok().flatten();
    let user = match user {
        Some(name) => find(name).with_context(|| format!("there is no user {name}"))?,
        None => USERS.into_iter().find_map(find).context("no user but root to be")?,
    };
    if user.uid.is_root() {
        log::warn!("running as root, as the configuration says");
        return Ok(());
    }
    let name = CString::new(user.name).context("user")?;
    initgroups(&name, user.gid).context("groups")?;
    setresgid(user.gid, user.gid, user.gid).context("group")?;
    setresuid(user.uid, user.uid, user.uid).context("user")
}
