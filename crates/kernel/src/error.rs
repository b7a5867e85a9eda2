//! What can go wrong between userland and the kernel: one line each, object first, cause last.

use std::io;
use std::path::PathBuf;

use skipstep_ruleset::TableName;

/// Result of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why the kernel part of a request failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Not root.
    #[error("{what}: needs root (CAP_BPF, CAP_NET_ADMIN and CAP_SYS_ADMIN)")]
    NotRoot {
        /// what was tried
        what: String,
    },
    /// The kernel lacks tcx or BTF.
    #[error(
        "this kernel lacks {lacks}: skipstep needs Linux 6.6 or newer with CONFIG_NET_XGRESS and CONFIG_DEBUG_INFO_BTF"
    )]
    Kernel {
        /// what it lacks
        lacks: &'static str,
    },
    /// The BPF file system is not there and cannot be mounted from here.
    #[error("{path}: no BPF file system is mounted and one mounted here would vanish with this process: run `mount -t bpf bpf {path}` outside, or enter the namespace with `nsenter --net=/run/netns/NAME` instead of `ip netns exec`", path = .path.display())]
    NoBpffs {
        /// where it should be
        path: PathBuf,
    },
    /// No instance of that name.
    #[error("{name}: no such instance: load a rule set first")]
    NoInstance {
        /// its name
        name: String,
    },
    /// An instance name that is no file name.
    #[error("{name:?}: an instance name has letters, digits, - and _, at most 63 of them")]
    InstanceName {
        /// the name
        name: String,
    },
    /// Pins made by another version.
    #[error(
        "{name}: was made by another version of skipstep (layout {found}, this is {ours}): remove the instance and load again"
    )]
    Version {
        /// instance
        name: String,
        /// layout of the pins
        found: u32,
        /// ours
        ours: u32,
    },
    /// The pins are there, the files that belong to them are not.
    #[error(
        "{name}: its files in /run/skipstep/{name} are gone: remove the instance and load again"
    )]
    Forgotten {
        /// instance
        name: String,
    },
    /// The instance belongs to another network namespace.
    #[error(
        "{name}: this instance filters another network namespace: choose another name with -p, or remove it"
    )]
    Namespace {
        /// instance
        name: String,
    },
    /// More of something than a limit would allow is in use.
    #[error("Current pool size exceeds requested {limit} limit {wanted}: {used} are in use")]
    InUse {
        /// name of the limit
        limit: &'static str,
        /// what the rule set says
        wanted: u32,
        /// how many there are
        used: u32,
    },
    /// A `set limit` exceeds what the maps were made for.
    #[error(
        "limit {limit} {wanted}: the running instance has room for {capacity}: disable it first (pfctl -d), then load and enable again"
    )]
    Capacity {
        /// name of the limit
        limit: &'static str,
        /// what the rule set says
        wanted: u32,
        /// places there are
        capacity: u32,
    },
    /// More rules in use than there are slots.
    #[error(
        "{wanted} rules: only {free} of {limit} statistics slots are free, the others belong to the running rules and to states of earlier ones; disable it first (pfctl -d), then load and enable again"
    )]
    RuleSlots {
        /// rules to load
        wanted: usize,
        /// slots free
        free: usize,
        /// slots there are
        limit: u32,
    },
    /// A source limiter cannot name its sources otherwise while it has some.
    #[error(
        "line {line}: source limiter {name} tracks sources: its masks and its table cannot change until they are gone"
    )]
    LimiterBusy {
        /// name of the limiter
        name: String,
        /// line of pf.conf
        line: u32,
    },
    /// The trees of the rules are larger than the data plane holds.
    #[error(
        "the trees of these rules have {cells} cells, there is room for {limit}: write `set evaluator skip-steps`, or put addresses into tables"
    )]
    Trees {
        /// how many they want
        cells: usize,
        /// how many there can be
        limit: u32,
    },
    /// A map is full.
    #[error("{map}: full, it holds at most {limit} entries")]
    MapFull {
        /// name of the map
        map: String,
        /// its size
        limit: u32,
    },
    /// A table that rules do not mention and nobody made.
    #[error("{name}: no such table")]
    NoTable {
        /// its name
        name: TableName,
    },
    /// A const table.
    #[error("{name}: the table is const: only a new rule set can change it")]
    ConstTable {
        /// its name
        name: TableName,
    },
    /// The kernel does not take a queue.
    #[error("line {line}: queue {name}: {cause}")]
    Queue {
        /// where it was written
        line: u32,
        /// its name
        name: String,
        /// what the kernel says
        cause: String,
    },
    /// An interface cannot be what it is to be on a bridge.
    #[error("{name}: {cause}")]
    Port {
        /// its name
        name: String,
        /// why not
        cause: String,
    },
    /// Rules do not fit.
    #[error(transparent)]
    Ruleset(#[from] skipstep_classifier::Error),
    /// The kernel's verifier does not accept a program.
    #[error(
        "program {program}: refused by this kernel's verifier: {log} (SKIPSTEP_LIBBPF_DEBUG=1 shows all it said)"
    )]
    Verifier {
        /// the program
        program: String,
        /// the last lines of the verifier's log
        log: String,
    },
    /// A step of libbpf failed.
    #[error("{what}: {cause}")]
    Bpf {
        /// object and step
        what: String,
        /// what libbpf says
        cause: String,
    },
    /// A system call failed.
    #[error("{what}: {cause}")]
    System {
        /// object and step
        what: String,
        /// what the system says
        cause: io::Error,
    },
    /// A file or folder of ours belongs to another user.
    #[error(
        "{path}: belongs to user {owner}, who could stop or change the filter by it: remove it (rm -r {path}) and load the rules again", path = .path.display()
    )]
    Foreign {
        /// the file or folder
        path: PathBuf,
        /// number of the user
        owner: u32,
    },
    /// Other users may write to the folder of the pins.
    #[error(
        "{path}: other users may write to it (mode {mode:o}), so they could have put anything there: {remedy}", path = .path.display()
    )]
    Writable {
        /// the folder
        path: PathBuf,
        /// its mode
        mode: u32,
        /// how to mend it
        remedy: String,
    },
    /// Another process holds a lock for too long.
    #[error(
        "{path}: still locked after {seconds} s, by {holder}: wait until it is done, or end it, and try again", path = .path.display()
    )]
    Locked {
        /// the file
        path: PathBuf,
        /// how long we waited
        seconds: u64,
        /// number and command of the process that holds the lock
        holder: String,
    },
    /// A signal ended a wait for a lock.
    #[error("{path}: locked by another process, and a signal ended the wait", path = .path.display())]
    Stopped {
        /// the file
        path: PathBuf,
    },
    /// A file of ours cannot be understood.
    #[error("{path}: {cause}", path = .path.display())]
    Record {
        /// the file
        path: PathBuf,
        /// what is wrong with it
        cause: String,
    },
}

impl Error {
    /// Whether nobody could do it here: not root, or a kernel too old. Tests may be skipped then,
    /// and for no other reason.
    pub fn is_unsupported(&self) -> bool {
        matches!(self, Error::NotRoot { .. } | Error::Kernel { .. })
    }

    /// True if the cause is that something is there already.
    pub(crate) fn is_already_there(&self) -> bool {
        matches!(self, Error::System { cause, .. } if cause.kind() == io::ErrorKind::AlreadyExists)
    }

    /// Whether the cause is that something is not there.
    pub(crate) fn is_not_found(&self) -> bool {
        matches!(self, Error::System { cause, .. } if cause.kind() == io::ErrorKind::NotFound)
    }
}

/// Says what was being done when something failed.
pub(crate) trait Context<T> {
    /// `what` names the object and the step.
    fn context(self, what: impl FnOnce() -> String) -> Result<T>;
}

impl<T> Context<T> for libbpf_rs::Result<T> {
    fn context(self, what: impl FnOnce() -> String) -> Result<T> {
        self.map_err(|error| match error.kind() {
            libbpf_rs::ErrorKind::PermissionDenied if !is_root() => Error::NotRoot { what: what() },
            _ => Error::Bpf { what: what(), cause: last_cause(&error) },
        })
    }
}

impl<T> Context<T> for io::Result<T> {
    fn context(self, what: impl FnOnce() -> String) -> Result<T> {
        self.map_err(|cause| match cause.kind() {
            io::ErrorKind::PermissionDenied if !is_root() => Error::NotRoot { what: what() },
            _ => Error::System { what: what(), cause },
        })
    }
}

impl<T> Context<T> for nix::Result<T> {
    fn context(self, what: impl FnOnce() -> String) -> Result<T> {
        self.map_err(io::Error::from).context(what)
    }
}

/// What root is not allowed has other reasons than not being root.
fn is_root() -> bool {
    nix::unistd::geteuid().is_root()
}

/// The innermost cause: libbpf-rs wraps errno in sentences of its own.
pub(crate) fn last_cause(error: &libbpf_rs::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}
