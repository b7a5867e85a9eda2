//! Settings of the kernel in /proc/sys. Those below `net/` are settings of the network namespace of
//! the process that reads them.

use std::fs;
use std::path::PathBuf;

/// Returns the path of the file of a setting, for instance of `net/ipv4/ip_forward`.
pub(crate) fn file(setting: &str) -> PathBuf {
    PathBuf::from("/proc/sys").join(setting)
}

/// Returns the value of a setting; `None` if the kernel lacks the setting, or if this user may not
/// read it.
pub fn read(setting: &str) -> Option<String> {
    let value = fs::read_to_string(file(setting)).ok()?;
    Some(value.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_read_by_their_paths() {
        assert!(read("kernel/osrelease").is_some_and(|release| !release.ends_with('\n')));
        assert_eq!(read("net/ipv4/conf/no-such-interface/forwarding"), None);
    }
}
