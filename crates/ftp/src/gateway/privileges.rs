//! Whose rights the gateway has: root's to take its ports, and then nobody's.

use std::ffi::CString;

use anyhow::{Context, Result, bail};
use nix::libc;
use nix::sys::prctl::set_no_new_privs;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::unistd::{geteuid, initgroups, setresgid, setresuid};
use skipstep_worker::privileges::{
    self, CONNECTIONS, Call, PROXY_USERS, THREADS, USUAL, find_user,
};

/// Descriptors of a session at most: two control connections, two data connections, a pipe, and who
/// listens.
const FILES: usize = 8;

/// Descriptors that the process has besides those of its sessions.
const OTHER_FILES: usize = 64;

/// System calls for clients and data connections.
const DATA: &[Call] = &[
    Call::any(libc::SYS_accept4),
    Call::any(libc::SYS_listen),
    Call::any(libc::SYS_pipe2),
    Call::any(libc::SYS_splice),
    Call::with(libc::SYS_fcntl, 1, libc::F_SETPIPE_SZ as u64),
    Call::with(libc::SYS_fcntl, 1, libc::F_DUPFD_CLOEXEC as u64),
    Call::any(libc::SYS_epoll_create1),
    Call::any(libc::SYS_eventfd2),
    Call::any(libc::SYS_socketpair),
    Call::any(libc::SYS_rt_sigaction),
];

/// System calls by which the C library resolves names: it reads files, loads libraries, and asks
/// servers and the local resolver.
const NAMES: &[Call] = &[
    Call::masked(libc::SYS_openat, 2, WRITES, libc::O_RDONLY as u64),
    Call::any(libc::SYS_newfstatat),
    Call::any(libc::SYS_fstat),
    Call::any(libc::SYS_statx),
    Call::any(libc::SYS_lseek),
    Call::any(libc::SYS_pread64),
    #[cfg(target_arch = "x86_64")]
    Call::any(libc::SYS_access),
    #[cfg(target_arch = "x86_64")]
    Call::any(libc::SYS_stat),
    Call::with(libc::SYS_socket, 0, libc::AF_UNIX as u64),
    Call::with(libc::SYS_socket, 0, libc::AF_NETLINK as u64),
    Call::any(libc::SYS_sendmmsg),
    Call::with(libc::SYS_ioctl, 1, libc::FIONREAD),
    Call::any(libc::SYS_getpid),
    Call::any(libc::SYS_getuid),
    Call::any(libc::SYS_geteuid),
    Call::any(libc::SYS_getgid),
    Call::any(libc::SYS_getegid),
    Call::any(libc::SYS_uname),
    Call::with(libc::SYS_mmap, 2, libc::PROT_READ as u64),
    Call::with(libc::SYS_mmap, 2, (libc::PROT_READ | libc::PROT_EXEC) as u64),
    Call::with(libc::SYS_mprotect, 2, libc::PROT_READ as u64),
];

/// Flags by which a file is opened for more than reading.
const WRITES: u64 = (libc::O_ACCMODE | libc::O_CREAT | libc::O_TRUNC) as u64;

/// Leaves the process, and the threads that it will have, with the system calls of a gateway: it
/// starts no other program, makes no other process, and writes no file.
///
/// # Errors
/// Those of the system.
pub fn confine() -> Result<()> {
    privileges::hide_clone3()?;
    privileges::confine(&[USUAL, CONNECTIONS, THREADS, DATA, NAMES])
}

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
    let user = match user {
        Some(name) => find_user(&[name])?,
        None => find_user(&PROXY_USERS)?,
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
