//! Removal of the pins of skipstep instances in the BPF file system.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::program::{beside, run};

/// Removes the skipstep instance of a namespace that is about to be deleted. Its programs and maps
/// are pinned in the BPF file system, and would outlive the namespace.
pub fn remove_instance(namespace: &str) {
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
