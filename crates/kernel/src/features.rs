//! Features of the running kernel that the data plane needs. BTF has the names of the kernel's
//! functions, so it shows the features that were built in, also to a user without privileges.

use std::collections::BTreeSet;
use std::fs;

/// BTF of the kernel.
pub(crate) const BTF: &str = "/sys/kernel/btf/vmlinux";

/// First release with tcx, major and minor number.
pub(crate) const FIRST_RELEASE: (u32, u32) = (6, 6);

/// A feature that a kernel may be built without.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Feature {
    /// Hooks of interfaces for programs that see packets in both directions.
    Tcx,
    /// Timers of BPF programs, for the sweep of expired states.
    Timers,
    /// BPF programs on netfilter's hooks, for the guard.
    NetfilterHooks,
}

impl Feature {
    /// All features.
    pub const ALL: [Feature; 3] = [Feature::Tcx, Feature::Timers, Feature::NetfilterHooks];

    /// Returns the name for messages.
    pub fn name(self) -> &'static str {
        match self {
            Feature::Tcx => "tcx",
            Feature::Timers => "timers of BPF programs",
            Feature::NetfilterHooks => "BPF programs on netfilter's hooks",
        }
    }

    /// Returns the option of the kernel's configuration.
    pub fn option(self) -> &'static str {
        match self {
            Feature::Tcx => "CONFIG_NET_XGRESS",
            Feature::Timers => "CONFIG_BPF_SYSCALL",
            Feature::NetfilterHooks => "CONFIG_NETFILTER_BPF_LINK",
        }
    }

    /// Returns the name of a function that only a kernel with the feature has.
    fn function(self) -> &'static str {
        match self {
            Feature::Tcx => "tcx_prog_attach",
            Feature::Timers => "bpf_timer_start",
            Feature::NetfilterHooks => "bpf_nf_link_attach",
        }
    }
}

/// The kernel as far as the data plane depends on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kernel {
    /// Release, as `uname -r` prints it.
    pub release: String,
    /// Features in its BTF; `None` if it has no BTF.
    pub features: Option<BTreeSet<Feature>>,
}

impl Kernel {
    /// Reads release and BTF of the running kernel.
    pub fn running() -> Self {
        Kernel { release: release(), features: fs::read(BTF).ok().map(|btf| features_in(&btf)) }
    }

    /// True if the release is one with tcx, or if its number cannot be read.
    pub fn is_recent(&self) -> bool {
        numbers_of(&self.release).is_none_or(|release| release >= FIRST_RELEASE)
    }
}

/// Returns the release of the running kernel.
fn release() -> String {
    let name = nix::sys::utsname::uname().ok();
    name.map(|name| name.release().to_string_lossy().into_owned()).unwrap_or_default()
}

/// Returns major and minor number of a release.
fn numbers_of(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

/// True if the running kernel is older than the first release with tcx.
pub(crate) fn is_too_old() -> bool {
    numbers_of(&release()).is_some_and(|release| release < FIRST_RELEASE)
}

/// Returns the features whose functions BTF names. Its strings end in zero bytes.
fn features_in(btf: &[u8]) -> BTreeSet<Feature> {
    let names = btf.split(|byte| *byte == 0);
    let known = |name: &[u8]| Feature::ALL.into_iter().find(|it| it.function().as_bytes() == name);
    names.filter_map(known).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_are_compared_by_number() {
        let kernel = |release: &str| Kernel { release: release.to_owned(), features: None };
        assert!(kernel("6.6.0-amd64").is_recent() && kernel("10.0").is_recent());
        assert!(!kernel("6.1.0-28-amd64").is_recent() && !kernel("5.15").is_recent());
        assert!(kernel("custom").is_recent());
    }

    #[test]
    fn features_are_whole_names() {
        let btf = b"\x9f\xeb\0\0tcx_prog_attach\0bpf_timer_started\0bpf_nf_link_attach\0";
        assert_eq!(features_in(btf), BTreeSet::from([Feature::Tcx, Feature::NetfilterHooks]));
    }
}
