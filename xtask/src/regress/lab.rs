//! The host of the cases: a network namespace with the interfaces that they name. A mount namespace
//! has the files of host, user, group and service names.

use std::path::PathBuf;
use std::process::{Command, ExitCode};

use anyhow::{Context, bail};

use super::case::Case;
use super::pfctl::Pfctl;

/// Interfaces that OpenBSD's Makefile creates. Here they are bridges, because every kernel can
/// create one.
const INTERFACES: [&str; 3] = ["lo1000000", "tun1000000", "tun1000001"];

const LOCALHOST: &str = "127.0.0.1 localhost\n::1 localhost\n";

/// Names with their numbers on OpenBSD, by file.
const NAMES: [(&str, &str); 6] = [
    (
        "/etc/group",
        "wheel:*:0:\nbin:*:7:\nsshd:*:27:\n_pfetch:*:56:\n_pkgfetch:*:57:\n_relayd:*:89:\n_syspatch:*:112:\nnobody:*:32767:\n_ntp:*:83:\n\
         _ftp_proxy:*:71:\n",
    ),
    (
        "/etc/passwd",
        "bin:*:3:7::/:/sbin/nologin\nproxy:*:71:71::/:/sbin/nologin\n_ntp:*:83:83::/:\n\
         _nsd:*:97:97::/:\n_pbuild:*:55:55::/:\n_smtpd:*:95:95::/:\n_tor:*:554:554::/:\n\
         _unbound:*:53:53::/:\n_iperfd:*:631:631::/:\ntcpcryptd:*:632:632::/:\n",
    ),
    ("/etc/services", "auth 113/tcp\nbgp 179/tcp\nmicrosoft-ds 445/tcp\n"),
    ("/etc/protocols", "carp 112\n"),
    ("/etc/hosts", LOCALHOST),
    // host names come from the file above only
    ("/etc/nsswitch.conf", "hosts: files\n"),
];

/// Runs this program again with the same arguments, in new namespaces.
///
/// # Errors
/// Fails if unshare(1) cannot run.
pub fn enter() -> anyhow::Result<ExitCode> {
    let own = std::env::current_exe()?;
    let status = Command::new("unshare")
        .args(["--net", "--mount", "--propagation", "private", "--"])
        .arg(own)
        .args(std::env::args_os().skip(1))
        .arg("--inside")
        .status()
        .context("unshare")?;
    Ok(ExitCode::from(u8::try_from(status.code().unwrap_or(2)).unwrap_or(2)))
}

/// The host. Dropping the value removes everything outside of the namespaces.
pub struct Lab {
    /// The folder for files of this run.
    scratch: PathBuf,
}

impl Lab {
    /// Creates interfaces and files.
    ///
    /// # Errors
    /// Fails if a file cannot be written or mounted, or if ip(8) fails.
    pub fn new() -> anyhow::Result<Lab> {
        let scratch = std::env::temp_dir().join(format!("skipstep-{}", std::process::id()));
        std::fs::create_dir(&scratch).with_context(|| scratch.display().to_string())?;
        let lab = Lab { scratch };
        for (file, names) in NAMES {
            lab.add_names(file, names)?;
        }
        ip("link set lo name lo0")?;
        ip("link set lo0 up")?;
        // Linux lists the newest address first, and ::1 must be first, as on OpenBSD
        ip("address add fe80::1/64 dev lo0 nodad")?;
        ip("address delete ::1/128 dev lo0")?;
        ip("address add ::1/128 dev lo0 nodad")?;
        for interface in INTERFACES {
            ip(&format!("link add {interface} type bridge"))?;
        }
        Ok(lab)
    }

    /// Returns pfctl in the folder of `case`, because paths in the case are relative to the folder.
    ///
    /// # Errors
    /// Fails if the path of this program is unknown.
    pub fn pfctl(&self, case: &Case) -> anyhow::Result<Pfctl> {
        Pfctl::beside(case.folder())
    }

    /// Returns pfctl in the folder of this run.
    ///
    /// # Errors
    /// Fails if the path of this program is unknown.
    pub fn pfctl_in_scratch(&self) -> anyhow::Result<Pfctl> {
        Pfctl::beside(&self.scratch)
    }

    /// Mounts another file over `file`, which has `names` and the other names of the previous file.
    fn add_names(&self, file: &str, names: &str) -> anyhow::Result<()> {
        let old = std::fs::read_to_string(file).unwrap_or_default();
        let others = old.lines().filter(|line| !defines(names, line));
        let text: String = names.lines().chain(others).map(|line| format!("{line}\n")).collect();
        let new = self.write(&format!("names{}", file.replace('/', "-")), text.as_bytes())?;
        run("mount", &["--bind", &new.display().to_string(), file])
    }

    /// Gives addresses to host names.
    ///
    /// # Errors
    /// Fails if the file of host names cannot be written.
    pub fn add_hosts(&self, names: &[&str]) -> anyhow::Result<()> {
        let mut hosts = LOCALHOST.to_owned();
        for (at, name) in names.iter().enumerate() {
            hosts += &format!("192.0.2.{} {name}\n", at + 1);
        }
        // this file is mounted over /etc/hosts
        self.write("names-etc-hosts", hosts.as_bytes())?;
        Ok(())
    }

    /// Writes a file of this run, and returns its path.
    ///
    /// # Errors
    /// Fails if the file cannot be written.
    pub fn write(&self, name: &str, text: &[u8]) -> anyhow::Result<PathBuf> {
        let path = self.scratch.join(name);
        std::fs::write(&path, text).with_context(|| path.display().to_string())?;
        Ok(path)
    }

    /// Creates an empty file of this run in place of `path`, and returns the new path.
    ///
    /// # Errors
    /// Fails if the file cannot be written.
    pub fn file(&self, path: &str) -> anyhow::Result<String> {
        let path = self.write(&path.trim_start_matches('/').replace('/', "-"), b"")?;
        Ok(path.display().to_string())
    }

    /// Returns the output of `diff -u` for two texts.
    ///
    /// # Errors
    /// Fails if a file cannot be written, or if diff(1) cannot run.
    pub fn diff(&self, expected: &str, actual: &str) -> anyhow::Result<String> {
        let expected = self.write("expected", expected.as_bytes())?;
        let actual = self.write("actual", actual.as_bytes())?;
        let output = Command::new("diff").arg("-u").args([expected, actual]).output()?;
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Executes a script of ifconfig(8) with Linux's ip(8).
    ///
    /// # Errors
    /// Fails if a line is unknown, or if ip(8) fails.
    pub fn ifconfig(&self, script: &str) -> anyhow::Result<()> {
        for line in script.lines() {
            let words: Vec<&str> = line.split_whitespace().collect();
            match words[..] {
                [] => {}
                ["ifconfig", name, "create"] => ip(&format!("link add {name} type bridge"))?,
                ["ifconfig", name, "destroy"] => ip(&format!("link delete {name}"))?,
                ["ifconfig", name, "inet", address, "netmask", "0xffffff00", ref rest @ ..] => {
                    let verb = if rest.contains(&"delete") { "delete" } else { "add" };
                    ip(&format!("address {verb} {address}/24 dev {name}"))?;
                }
                _ => bail!("ifconfig: {line}"),
            }
        }
        Ok(())
    }
}

/// Returns true if a line of `file` begins with the same name as `line`.
fn defines(file: &str, line: &str) -> bool {
    let name = |line: &str| line.split([':', ' ', '\t']).next().map(str::to_owned);
    file.lines().any(|other| name(other) == name(line))
}

impl Drop for Lab {
    fn drop(&mut self) {
        // pins are in a file system that all namespaces share
        if let Ok(pfctl) = Pfctl::beside(&self.scratch) {
            let _ = pfctl.run(&["-q", "--remove"], "");
        }
        for (file, _) in NAMES {
            let _ = run("umount", &[file]);
        }
        let _ = std::fs::remove_dir_all(&self.scratch);
    }
}

/// Runs ip(8) with the words of `line`.
///
/// # Errors
/// Fails if ip(8) cannot run or fails.
pub fn ip(line: &str) -> anyhow::Result<()> {
    run("ip", &line.split(' ').collect::<Vec<_>>())
}

fn run(program: &str, arguments: &[&str]) -> anyhow::Result<()> {
    let output =
        Command::new(program).args(arguments).output().with_context(|| program.to_owned())?;
    if !output.status.success() {
        let message = String::from_utf8_lossy(&output.stderr);
        bail!("{program} {}: {}", arguments.join(" "), message.trim_end());
    }
    Ok(())
}
