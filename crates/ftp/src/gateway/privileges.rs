//! Whose rights the gateway has: root's to take its ports, and then nobody's.

use anyhow::{Context, Result, bail};
use nix::sys::prctl::set_no_new_privs;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::unistd::{User, geteuid, initgroups, setresgid, setresuid};
use std::ffi::CString;

/// Whom the process becomes if it was not told: the first of these that there is.
const USERS: [&str; 2] = ["proxy", "nobody"];

/// Descriptors of a session at most: two control connections, two data connections, a pipe and who listens.
const FILES: usize = 8;

/// Descriptors that the process has besides those of its sessions.
const OTHER_FILES: usize = 64;

/// Sees to it that the sessions can have their descriptors.
///
/// # Errors
/// The system does not allow so many.
pub fn make_room(sessions: usize) -> Result<()> {
    let wanted = (sessions * FILES + OTHER_FILES) as u64;
    let (_, most) = getrlimit(Resource::RLIMIT_NOFILE).context("open files")?;
    let most = if geteuid().is_root() { most.max(wanted) } else { most };
    if most < wanted {
        bail!("{sessions} sessions need {wanted} open files, and only {most} are allowed");
    }
    setrlimit(Resource::RLIMIT_NOFILE, wanted, most).context("open files")
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
