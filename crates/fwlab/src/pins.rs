//! What a skipstep instance leaves pinned in the file system of BPF.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::program::{beside, run};

/// Removes the instance of a host that is about to go: its programs and tables are pinned in the
/// file system, and would stay.
pub fn forget(namespace: &str) {
    let path = PathBuf::from("/run/netns").join(namespace);
    let Ok(inode) = std::fs::metadata(&path).map(|metadata| metadata.ino()) else { return };
    if Path::new(&format!("/sys/fs/bpf/skipstep/netns-{inode}")).exists() {
        let mut remove = Command::new("nsenter");
        remove
            .arg(format!("--net={}", path.display()))
            .arg(beside("pfctl"))
            .args(["-q", "--remove"]);
        if let Err(error) = run(&mut remove, "") {
            eprintln!("fwlab: {namespace}: {error:#}");
        }
    }
}
