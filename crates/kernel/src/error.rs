//! Errors between userland and the kernel: one line each, object first, cause last.

use std::io;
use std::path::PathBuf;

use skipstep_ruleset::{TableName, failsafe};

/// Result of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The reason why the kernel part of a request failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The process is not root.
    #[error("{operation}: needs root (CAP_BPF, CAP_NET_ADMIN and CAP_SYS_ADMIN)")]
    NotRoot {
        /// object and step that was tried
        operation: String,
    },
    /// The kernel lacks tcx or BTF.
    #[error(
        "this kernel lacks {lacks}: skipstep needs Linux 6.6 or newer with CONFIG_NET_XGRESS and CONFIG_DEBUG_INFO_BTF"
    )]
    Kernel {
        /// name of the missing feature
        lacks: &'static str,
    },
    /// No BPF file system is mounted, and this process cannot mount a lasting one.
    #[error("{path}: no BPF file system is mounted and one mounted here would vanish with this process: run `mount -t bpf bpf {path}` outside, or enter the namespace with `nsenter --net=/run/netns/NAME` instead of `ip netns exec`", path = .path.display())]
    NoBpffs {
        /// mount point of the BPF file system
        path: PathBuf,
    },
    /// No instance has this name.
    #[error("{name}: no such instance: load a rule set first")]
    NoInstance {
        /// name of the instance
        name: String,
    },
    /// The name of an instance has characters that are not allowed, or a wrong length.
    #[error("{name:?}: an instance name has letters, digits, - and _, at most 63 of them")]
    InstanceName {
        /// the refused name
        name: String,
    },
    /// Another version of skipstep made the pins.
    #[error(
        "{name}: was made by another version of skipstep (layout {found}, this is {ours}): remove the instance and load again"
    )]
    Version {
        /// name of the instance
        name: String,
        /// layout version of the pins
        found: u32,
        /// layout version of this program
        ours: u32,
    },
    /// The pins exist, but not the files in /run that belong to them.
    #[error(
        "{name}: its files in /run/skipstep/{name} are gone: remove the instance and load again"
    )]
    Forgotten {
        /// name of the instance
        name: String,
    },
    /// The instance belongs to another network namespace.
    #[error(
        "{name}: this instance filters another network namespace: choose another name with -p, or remove it"
    )]
    Namespace {
        /// name of the instance
        name: String,
    },
    /// More entries are in use than the new limit allows.
    #[error("Current pool size exceeds requested {limit} limit {wanted}: {used} are in use")]
    InUse {
        /// name of the limit
        limit: &'static str,
        /// the limit that the rule set asks for
        wanted: u32,
        /// number of entries in use
        used: u32,
    },
    /// A `set limit` exceeds the size of the maps.
    #[error(
        "limit {limit} {wanted}: the running instance has room for {capacity}: disable it first (pfctl -d), then load and enable again"
    )]
    Capacity {
        /// name of the limit
        limit: &'static str,
        /// the limit that the rule set asks for
        wanted: u32,
        /// size of the maps in entries
        capacity: u32,
    },
    /// There are fewer free slots than rules to load.
    #[error(
        "{wanted} rules: only {free} of {limit} statistics slots are free, the others belong to the running rules and to states of earlier ones; disable it first (pfctl -d), then load and enable again"
    )]
    RuleSlots {
        /// number of rules to load
        wanted: usize,
        /// number of free slots
        free: usize,
        /// number of all slots
        limit: u32,
    },
    /// Rules are on trial, and a load without a trial would end the way back.
    #[error(
        "rules of user {uid} (process {pid}) are on trial for {left} s more: run `pfctl confirm` or `pfctl revert` first, or load with --confirm"
    )]
    OnTrial {
        /// user who loaded the rules
        uid: u32,
        /// process that loaded the rules
        pid: u32,
        /// seconds until the filter goes back
        left: u32,
    },
    /// The rules of the failsafe list change with its file only.
    #[error(
        "anchor {}: its rules are those of {file}: edit this file, and then load the main rules (pfctl -f /etc/pf.conf)",
        failsafe::ANCHOR,
        file = failsafe::FILE
    )]
    FailsafeList,
    /// No rules are on trial.
    #[error("no rules are on trial: `pfctl -f file --confirm seconds` loads some")]
    NoTrial,
    /// The time for a confirmation is over.
    #[error(
        "too late: the load was not confirmed in {seconds} s, and the rules before it are in force: load again"
    )]
    TrialFailed {
        /// time that the confirmation had
        seconds: u32,
    },
    /// A disabled filter is too small for a load on trial.
    #[error(
        "the disabled filter has too little room for these rules beside the previous ones: run `pfctl --room-for file`, and then load again"
    )]
    TrialRoom,
    /// States of a trial that failed are left.
    #[error(
        "states of the rules whose trial failed are left, and the kernel still ends them: load again in some seconds"
    )]
    StatesEnding,
    /// The kernel does not start the timer that goes back.
    #[error("the kernel does not start the timer (error {errno}), so nothing is loaded: try again")]
    Timer {
        /// the kernel's error
        errno: u32,
    },
    /// All places for programs that read dropped packets are taken.
    #[error(
        "{most} programs read the dropped packets already, and no more can: end one of them (pfctl drops)"
    )]
    DropReaders {
        /// largest number of such programs
        most: u32,
    },
    /// The masks and the table of a source limiter cannot change while it tracks sources.
    #[error(
        "line {line}: source limiter {name} tracks sources: its masks and its table cannot change until they are gone"
    )]
    LimiterBusy {
        /// name of the limiter
        name: String,
        /// line in pf.conf
        line: u32,
    },
    /// The trees of the rules are larger than the maps.
    #[error(
        "the trees of these rules have {nodes} nodes, there is room for {limit}: write `set evaluator skip-steps`, or put addresses into tables"
    )]
    Trees {
        /// number of nodes that the trees need
        nodes: usize,
        /// largest number of nodes
        limit: u32,
    },
    /// A map is full.
    #[error("{map}: full, it holds at most {limit} entries")]
    MapFull {
        /// name of the map
        map: String,
        /// size of the map in entries
        limit: u32,
    },
    /// There are as many references of `pfctl -E` as there may be.
    #[error(
        "{limit} references are held, which is the limit: `pfctl -s References` lists them, `pfctl -X TOKEN` releases one, `pfctl -d` all"
    )]
    References {
        /// largest number of references
        limit: usize,
    },
    /// No rule mentions the table, and no command has made it.
    #[error("{name}: no such table")]
    NoTable {
        /// name of the table
        name: TableName,
    },
    /// The table is const.
    #[error("{name}: the table is const: only a new rule set can change it")]
    ConstTable {
        /// name of the table
        name: TableName,
    },
    /// The kernel refuses a queue.
    #[error("line {line}: queue {name}: {cause}")]
    Queue {
        /// line in pf.conf
        line: u32,
        /// name of the queue
        name: String,
        /// the kernel's reason
        cause: String,
    },
    /// An interface cannot have the requested role on a bridge.
    #[error("{name}: {cause}")]
    Port {
        /// name of the interface
        name: String,
        /// the reason
        cause: String,
    },
    /// The compiler refuses the rule set.
    #[error(transparent)]
    Ruleset(#[from] skipstep_classifier::Error),
    /// The kernel's verifier refuses a program.
    #[error(
        "program {program}: refused by this kernel's verifier: {log} (SKIPSTEP_LIBBPF_DEBUG=1 \
         prints the whole log)"
    )]
    Verifier {
        /// name of the program
        program: String,
        /// last lines of the verifier's log
        log: String,
    },
    /// A step of libbpf failed.
    #[error("{operation}: {cause}")]
    Bpf {
        /// object and step
        operation: String,
        /// libbpf's reason
        cause: String,
    },
    /// A system call failed.
    #[error("{operation}: {cause}")]
    System {
        /// object and step
        operation: String,
        /// the system's error
        cause: io::Error,
    },
    /// A file or folder of skipstep belongs to another user.
    #[error(
        "{path}: belongs to user {owner}, so this user could control the filter: remove it (rm -r \
         {path}) and load the rules again", path = .path.display()
    )]
    Foreign {
        /// path of the file or folder
        path: PathBuf,
        /// number of the user
        owner: u32,
    },
    /// Other users may write to the folder of the pins.
    #[error(
        "{path}: other users can write to it (mode {mode:o}), so its contents are not trusted: \
         {remedy}", path = .path.display()
    )]
    Writable {
        /// path of the folder
        path: PathBuf,
        /// mode of the folder
        mode: u32,
        /// the command that repairs it
        remedy: String,
    },
    /// Another process has held a lock for too long.
    #[error(
        "{path}: still locked after {seconds} s, by {holder}: wait for that process or end it, and \
         try again", path = .path.display()
    )]
    Locked {
        /// path of the lock file
        path: PathBuf,
        /// seconds that we waited
        seconds: u64,
        /// number and command of the process that holds the lock
        holder: String,
    },
    /// A signal ended a wait for a lock.
    #[error("{path}: locked by another process, and a signal ended the wait", path = .path.display())]
    Stopped {
        /// path of the lock file
        path: PathBuf,
    },
    /// A file of skipstep cannot be understood.
    #[error("{path}: {cause}", path = .path.display())]
    Record {
        /// path of the file
        path: PathBuf,
        /// the reason
        cause: String,
    },
}

impl Error {
    /// True if this machine or user cannot do it at all: not root, or a kernel too old. Tests may
    /// be skipped for this reason only.
    pub fn is_unsupported(&self) -> bool {
        matches!(self, Error::NotRoot { .. } | Error::Kernel { .. })
    }

    /// True if the cause is that the object exists already.
    pub(crate) fn is_already_there(&self) -> bool {
        matches!(self, Error::System { cause, .. } if cause.kind() == io::ErrorKind::AlreadyExists)
    }

    /// True if the cause is that the object does not exist.
    pub(crate) fn is_not_found(&self) -> bool {
        matches!(self, Error::System { cause, .. } if cause.kind() == io::ErrorKind::NotFound)
    }
}

/// Adds the object and the step that failed to an error.
pub trait Context<T> {
    /// Converts an error; `operation` names the object and the step.
    ///
    /// # Errors
    /// Returns the converted error: [`Error::NotRoot`] if permission is denied to a user other than
    /// root.
    fn context(self, operation: impl FnOnce() -> String) -> Result<T>;
}

impl<T> Context<T> for libbpf_rs::Result<T> {
    fn context(self, operation: impl FnOnce() -> String) -> Result<T> {
        self.map_err(|error| match error.kind() {
            libbpf_rs::ErrorKind::PermissionDenied if !is_root() => {
                Error::NotRoot { operation: operation() }
            }
            _ => Error::Bpf { operation: operation(), cause: last_cause(&error) },
        })
    }
}

impl<T> Context<T> for io::Result<T> {
    fn context(self, operation: impl FnOnce() -> String) -> Result<T> {
        self.map_err(|cause| match cause.kind() {
            io::ErrorKind::PermissionDenied if !is_root() => {
                Error::NotRoot { operation: operation() }
            }
            _ => Error::System { operation: operation(), cause },
        })
    }
}

impl<T> Context<T> for nix::Result<T> {
    fn context(self, operation: impl FnOnce() -> String) -> Result<T> {
        self.map_err(io::Error::from).context(operation)
    }
}

/// True for root. A refusal has another reason then than a lack of root's rights.
fn is_root() -> bool {
    nix::unistd::geteuid().is_root()
}

/// Returns the innermost cause: libbpf-rs wraps errno in sentences of its own.
pub(crate) fn last_cause(error: &libbpf_rs::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}
