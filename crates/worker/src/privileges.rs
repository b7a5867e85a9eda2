//! Privilege dropping for a process that reads untrusted bytes. Afterwards the process sees no
//! files, is a user without rights, gets no new rights, and may make only the system calls that it
//! needs.

use std::collections::BTreeMap;
use std::env::consts::ARCH;

use anyhow::{Context, Result};
use nix::libc;
use nix::sys::prctl::{set_no_new_privs, set_pdeathsig};
use nix::sys::signal::Signal;
use nix::unistd::{User, chdir, chroot, setgroups, setresgid, setresuid};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch,
};

/// Users for the FTP programs: a process becomes the first that exists.
pub const PROXY_USERS: [&str; 2] = ["proxy", "nobody"];

/// Users for workers of skipstepd: a worker becomes the first that exists. `make install` creates
/// the first for skipstepd alone, because processes of the same user may signal each other.
pub const SKIPSTEPD_USERS: [&str; 2] = ["_skipstepd", "nobody"];

/// Returns the first of `users` that exists.
///
/// # Errors
/// Fails if none exists.
pub fn find_user(users: &[&str]) -> Result<User> {
    let found = users.iter().find_map(|name| User::from_name(name).ok().flatten());
    found.with_context(|| format!("there is no user {}", users.join(" and no user ")))
}

/// Becomes the first of `users` that exists, in an empty root directory, for good. The kernel sends
/// `death` when the parent ends.
///
/// # Errors
/// Fails if no such user exists, or if a system call fails.
pub fn drop(users: &[&str], death: Signal) -> Result<()> {
    let user = find_user(users)?;
    let empty = skipstep_kernel::empty_folder()?;
    // only root may enter the folder, so enter it before changing the user
    chroot(&empty).with_context(|| empty.display().to_string())?;
    chdir("/").with_context(|| empty.display().to_string())?;
    setgroups(&[user.gid]).context("groups")?;
    setresgid(user.gid, user.gid, user.gid).context("group")?;
    setresuid(user.uid, user.uid, user.uid).context("user")?;
    set_no_new_privs().context("privileges")?;
    set_pdeathsig(death).context("guardian")
}

/// A system call that a process may make.
#[derive(Debug, Clone, Copy)]
pub struct Call {
    number: i64,
    /// Number of an argument, a mask of its bits, and the only value that these bits may have.
    argument: Option<(u8, u64, u64)>,
}

impl Call {
    /// Allows the call of this number with any arguments.
    pub const fn any(number: libc::c_long) -> Call {
        Call { number, argument: None }
    }

    /// Allows the call if its argument number `place`, from 0 on, is `value` (32 bits).
    pub const fn with(number: libc::c_long, place: u8, value: u64) -> Call {
        Call::masked(number, place, u32::MAX as u64, value)
    }

    /// Allows the call if its argument number `place`, from 0 on, has `value` in the bits of `mask`
    /// (32 bits).
    pub const fn masked(number: libc::c_long, place: u8, mask: u64, value: u64) -> Call {
        Call { number, argument: Some((place, mask, value)) }
    }

    fn rule(&self) -> Result<Option<SeccompRule>, seccompiler::BackendError> {
        let Some((place, mask, value)) = self.argument else { return Ok(None) };
        let (length, equal) = (SeccompCmpArgLen::Dword, SeccompCmpOp::MaskedEq(mask));
        let condition = SeccompCondition::new(place, length, equal, value)?;
        SeccompRule::new(vec![condition]).map(Some)
    }
}

/// Calls of every process with one thread: memory, time, waiting, open descriptors, and exit. They
/// allow no executable memory, and no signal to another process of the same user.
pub const USUAL: &[Call] = &[
    Call::any(libc::SYS_brk),
    Call::with(libc::SYS_mmap, 2, (libc::PROT_READ | libc::PROT_WRITE) as u64),
    Call::any(libc::SYS_munmap),
    Call::any(libc::SYS_mremap),
    Call::any(libc::SYS_madvise),
    Call::any(libc::SYS_futex),
    Call::any(libc::SYS_getrandom),
    Call::any(libc::SYS_clock_gettime),
    Call::any(libc::SYS_clock_nanosleep),
    Call::any(libc::SYS_ppoll),
    #[cfg(target_arch = "x86_64")]
    Call::any(libc::SYS_poll),
    Call::any(libc::SYS_epoll_pwait),
    #[cfg(target_arch = "x86_64")]
    Call::any(libc::SYS_epoll_wait),
    Call::any(libc::SYS_read),
    Call::any(libc::SYS_write),
    Call::any(libc::SYS_writev),
    Call::any(libc::SYS_sendmsg),
    Call::any(libc::SYS_recvmsg),
    Call::any(libc::SYS_close),
    Call::with(libc::SYS_fcntl, 1, libc::F_GETFD as u64),
    Call::any(libc::SYS_rt_sigreturn),
    Call::any(libc::SYS_rt_sigprocmask),
    Call::any(libc::SYS_restart_syscall),
    Call::any(libc::SYS_sigaltstack),
    Call::any(libc::SYS_exit),
    Call::any(libc::SYS_exit_group),
];

/// Calls for TCP connections to other hosts, and for waiting for many of them.
pub const CONNECTIONS: &[Call] = &[
    Call::any(libc::SYS_epoll_ctl),
    Call::with(libc::SYS_socket, 0, libc::AF_INET as u64),
    Call::with(libc::SYS_socket, 0, libc::AF_INET6 as u64),
    Call::any(libc::SYS_bind),
    Call::any(libc::SYS_connect),
    Call::any(libc::SYS_getsockname),
    Call::any(libc::SYS_getpeername),
    Call::any(libc::SYS_getsockopt),
    Call::any(libc::SYS_setsockopt),
    Call::any(libc::SYS_recvfrom),
    Call::any(libc::SYS_sendto),
    Call::any(libc::SYS_shutdown),
    Call::with(libc::SYS_ioctl, 1, libc::FIONBIO),
];

/// Calls of a process that makes threads while it works. The calls cannot make another process.
pub const THREADS: &[Call] = &[
    Call::any(libc::SYS_clone3),
    Call::masked(libc::SYS_clone, 0, libc::CLONE_THREAD as u64, libc::CLONE_THREAD as u64),
    Call::any(libc::SYS_set_robust_list),
    Call::any(libc::SYS_rseq),
    Call::any(libc::SYS_gettid),
    Call::any(libc::SYS_sched_getaffinity),
    Call::any(libc::SYS_sched_yield),
    Call::with(libc::SYS_prctl, 0, libc::PR_SET_NAME as u64),
    Call::with(libc::SYS_mmap, 2, libc::PROT_NONE as u64),
    Call::with(libc::SYS_mprotect, 2, libc::PROT_NONE as u64),
    Call::with(libc::SYS_mprotect, 2, (libc::PROT_READ | libc::PROT_WRITE) as u64),
];

/// Makes clone3(2) fail as on a kernel without it. The C library then makes threads by clone(2),
/// whose flags a filter can check.
///
/// # Errors
/// Fails as [`confine`] does.
pub fn hide_clone3() -> Result<()> {
    let rules = BTreeMap::from([(libc::SYS_clone3, Vec::new())]);
    install(rules, SeccompAction::Allow, SeccompAction::Errno(libc::ENOSYS as u32))
}

/// Allows the process only these system calls. The kernel refuses all others (`EPERM`).
///
/// # Errors
/// Fails if the kernel refuses the filter, or if seccompiler does not support the architecture.
pub fn confine(calls: &[&[Call]]) -> Result<()> {
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> = BTreeMap::new();
    for call in calls.iter().copied().flatten() {
        let rule = call.rule().context("system calls")?;
        rules.entry(call.number).or_default().extend(rule);
    }
    install(rules, SeccompAction::Errno(libc::EPERM as u32), SeccompAction::Allow)
}

/// Installs a filter that does `listed` for the calls of `rules`, and `others` for all others.
fn install(
    rules: BTreeMap<i64, Vec<SeccompRule>>,
    others: SeccompAction,
    listed: SeccompAction,
) -> Result<()> {
    let machine = TargetArch::try_from(ARCH).context("system calls")?;
    let filter = SeccompFilter::new(rules, others, listed, machine);
    let program = BpfProgram::try_from(filter.context("system calls")?).context("system calls")?;
    seccompiler::apply_filter(&program).context("system calls")
}
