//! Privileges of the gateway: root's to bind its ports, and then those of an unprivileged user.

use std::ffi::CString;

use anyhow::{Context, Result, bail};
use nix::libc;
use nix::sys::prctl::set_no_new_privs;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::unistd::{geteuid, initgroups, setresgid, setresuid};
use skipstep_worker::privileges::{
    self, CONNECTIONS, Call, PROXY_USERS, THREADS, USUAL, find_user,
};

/// Number of file descriptors of a session at most: two control connections, two data connections,
/// a pipe and listeners.
const FILES: usize = 8;

/// Number of file descriptors of the process besides those of its sessions.
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

/// System calls by which the C library resolves names. It reads files, loads libraries, and sends
/// queries to servers and the local resolver.
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

/// Flags that open a file for more than reading.
const WRITES: u64 = (libc::O_ACCMODE | libc::O_CREAT | libc::O_TRUNC) as u64;

/// Restricts the process and its future threads to the system calls of a gateway. It can start no
/// program, fork no process and write no file.
///
/// # Errors
/// Fails if the kernel refuses the filter.
pub fn confine() -> Result<()> {
    privileges::hide_clone3()?;
    privileges::confine(&[USUAL, CONNECTIONS, THREADS, DATA, NAMES])
}

/// Raises the limit of open files for `sessions` sessions, as far as the system allows. Returns a
/// warning if the limit stays too low for all of them. A session that gets no descriptor for its
/// server or its data reports an error to the client.
///
/// # Errors
/// Fails if the limit is too low even for the clients' connections.
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

/// Becomes `user` if root started the program. The process stays root only if `user` is `root`.
///
/// # Errors
/// Fails if the user does not exist, or if the system refuses a call.
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
