//! The machine on which figures were measured.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Settings of the kernel that change the cost of packets.
const SYSCTLS: [&str; 16] = [
    "kernel.bpf_stats_enabled",
    "kernel.sched_rt_runtime_us",
    "net.bridge.bridge-nf-call-ip6tables",
    "net.bridge.bridge-nf-call-iptables",
    "net.core.bpf_jit_enable",
    "net.core.bpf_jit_harden",
    "net.core.busy_poll",
    "net.core.default_qdisc",
    "net.core.netdev_budget",
    "net.core.netdev_max_backlog",
    "net.core.rmem_max",
    "net.core.wmem_max",
    "net.ipv4.ip_forward",
    "net.ipv4.tcp_congestion_control",
    "net.netfilter.nf_conntrack_max",
    "vm.nr_hugepages",
];

/// The machine and its software. Names and addresses of the machine are not recorded.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Environment {
    /// Release and version of the kernel.
    pub kernel: String,
    /// `x86_64`, `aarch64`, …
    pub architecture: String,
    /// The kernel's boot id, which changes with every boot. Runs of one boot share the same luck.
    pub boot: Option<String>,
    /// The processors.
    pub cpu: Cpu,
    /// Bytes of memory.
    pub memory: Option<u64>,
    /// The kernel's mitigations of processor vulnerabilities, by vulnerability.
    pub mitigations: BTreeMap<String, String>,
    /// The kernel's clock source.
    pub clocksource: Option<String>,
    /// Settings of the kernel that change the cost of packets, if they exist.
    pub sysctls: BTreeMap<String, String>,
    /// Versions of programs that took part, as the programs print them.
    pub programs: BTreeMap<String, String>,
    /// Load average of the minute before the run: running and waiting processes.
    pub load_average: Option<f64>,
    /// Share of the run's time, in percent, that the hypervisor gave to other guests.
    pub steal: Option<f64>,
    /// The reason for which samples have no CPU cycles. None if cycles are counted.
    #[serde(default)]
    pub no_cycles: Option<String>,
}

/// The processors of a machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Cpu {
    /// The name of the model.
    pub model: String,
    /// Number of online processors.
    pub online: u32,
    /// Threads of a core. None if unknown.
    pub threads_per_core: Option<u32>,
    /// The frequency governor. None if the frequency is fixed.
    pub governor: Option<String>,
    /// True if the machine is a guest of a hypervisor.
    pub guest: bool,
}

impl Environment {
    /// Describes this machine. `programs` are commands that print a version, for example `["nft",
    /// "--version"]`. Missing programs are left out.
    pub fn capture(programs: &[&[&str]]) -> Environment {
        let root = Path::new("/");
        let mut environment = Environment::read(root);
        for words in programs {
            if let Some(version) = version(words) {
                environment.programs.insert(words[0].to_string(), version);
            }
        }
        environment
    }

    /// Reads the description from the files below `root`.
    fn read(root: &Path) -> Environment {
        let line = |path: &str| first_line(&root.join(path));
        let cpuinfo = fs::read_to_string(root.join("proc/cpuinfo")).unwrap_or_default();
        let version = line("proc/sys/kernel/version").unwrap_or_default();
        let release = line("proc/sys/kernel/osrelease").unwrap_or_default();
        let sysctls = SYSCTLS.iter().filter_map(|name| {
            let path = format!("proc/sys/{}", name.replace('.', "/"));
            Some((name.to_string(), line(&path)?))
        });
        Environment {
            kernel: format!("{release} {version}").trim().to_string(),
            architecture: std::env::consts::ARCH.to_string(),
            boot: line("proc/sys/kernel/random/boot_id"),
            cpu: Cpu::read(root, &cpuinfo),
            memory: memory(&root.join("proc/meminfo")),
            mitigations: mitigations(&root.join("sys/devices/system/cpu/vulnerabilities")),
            clocksource: line("sys/devices/system/clocksource/clocksource0/current_clocksource"),
            sysctls: sysctls.collect(),
            programs: BTreeMap::new(),
            load_average: line("proc/loadavg")
                .and_then(|line| line.split_whitespace().next()?.parse().ok()),
            steal: None,
            no_cycles: None,
        }
    }
}

impl Cpu {
    fn read(root: &Path, cpuinfo: &str) -> Cpu {
        let value = |name: &str| {
            cpuinfo.lines().find_map(|line| {
                let (key, value) = line.split_once(':')?;
                (key.trim() == name).then(|| value.trim().to_string())
            })
        };
        let number = |name: &str| value(name)?.parse::<u32>().ok();
        let online = cpuinfo.lines().filter(|line| line.starts_with("processor")).count();
        let threads = number("siblings").zip(number("cpu cores"));
        Cpu {
            model: value("model name").or_else(|| value("CPU part")).unwrap_or_default(),
            online: u32::try_from(online).unwrap_or(u32::MAX),
            threads_per_core: threads.and_then(|(threads, cores)| threads.checked_div(cores)),
            governor: first_line(
                &root.join("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
            ),
            guest: value("flags")
                .is_some_and(|flags| flags.split_whitespace().any(|flag| flag == "hypervisor")),
        }
    }
}

/// A watch of the processor time that the hypervisor gives to other guests.
pub struct Watch {
    since: Instant,
    before: Option<[u64; 2]>,
}

impl Watch {
    /// Begins to watch.
    pub fn begin() -> Watch {
        Watch { since: Instant::now(), before: cpu_time(Path::new("/proc/stat")) }
    }

    /// Returns the seconds since the start, and the percentage of all processors' time that was
    /// stolen.
    pub fn end(&self) -> (f64, Option<f64>) {
        let share = self.before.zip(cpu_time(Path::new("/proc/stat"))).map(|(before, after)| {
            let passed = |which: usize| after[which].saturating_sub(before[which]) as f64;
            if passed(0) > 0.0 { 100.0 * passed(1) / passed(0) } else { 0.0 }
        });
        (self.since.elapsed().as_secs_f64(), share)
    }
}

/// Returns the ticks of all processors together: all time, and stolen time.
fn cpu_time(path: &Path) -> Option<[u64; 2]> {
    let line = first_line(path)?;
    let ticks: Vec<u64> =
        line.strip_prefix("cpu ")?.split_whitespace().map_while(|word| word.parse().ok()).collect();
    // user, nice, system, idle, iowait, irq, softirq, steal; guest time is part of user time
    Some([ticks.get(..8)?.iter().sum(), ticks[7]])
}

fn first_line(path: &Path) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    Some(text.lines().next().unwrap_or_default().trim().to_string())
}

fn memory(path: &Path) -> Option<u64> {
    let line = first_line(path)?;
    let kilobytes = line.strip_prefix("MemTotal:")?.trim().strip_suffix(" kB")?;
    Some(kilobytes.trim().parse::<u64>().ok()? * 1024)
}

fn mitigations(folder: &Path) -> BTreeMap<String, String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let fault = |entry: fs::DirEntry| {
        Some((entry.file_name().into_string().ok()?, first_line(&entry.path())?))
    };
    entries.filter_map(fault).collect()
}

/// Returns the first line that a program prints about its version.
fn version(words: &[&str]) -> Option<String> {
    let (program, arguments) = words.split_first()?;
    let output = Command::new(program).args(arguments).stdin(Stdio::null()).output().ok()?;
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    said.lines().map(str::trim).find(|line| !line.is_empty()).map(str::to_string)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        root
    }

    #[test]
    fn a_machine_is_described() {
        let root = machine(&[
            ("proc/sys/kernel/osrelease", "6.18.1\n"),
            ("proc/sys/kernel/version", "#1 SMP\n"),
            (
                "proc/cpuinfo",
                "processor : 0\nmodel name : Fast\nsiblings : 4\ncpu cores : 2\nflags : fpu hypervisor\n\nprocessor : 1\n",
            ),
            ("proc/meminfo", "MemTotal:       1024 kB\nMemFree: 1 kB\n"),
            ("proc/loadavg", "0.25 0.5 1 1/1 1\n"),
            ("proc/sys/net/core/bpf_jit_enable", "1\n"),
            ("sys/devices/system/cpu/vulnerabilities/meltdown", "Not affected\n"),
            ("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "performance\n"),
        ]);
        let environment = Environment::read(root.path());
        assert_eq!(environment.kernel, "6.18.1 #1 SMP");
        assert_eq!(
            environment.cpu,
            Cpu {
                model: "Fast".to_string(),
                online: 2,
                threads_per_core: Some(2),
                governor: Some("performance".to_string()),
                guest: true,
            }
        );
        assert_eq!(environment.memory, Some(1 << 20));
        assert_eq!(environment.load_average, Some(0.25));
        assert_eq!(environment.sysctls["net.core.bpf_jit_enable"], "1");
        assert_eq!(environment.sysctls.len(), 1);
        assert_eq!(environment.mitigations["meltdown"], "Not affected");
        assert_eq!(environment.clocksource, None);
    }

    #[test]
    fn a_machine_that_says_nothing_of_itself_is_no_error() {
        let root = machine(&[]);
        let environment = Environment::read(root.path());
        assert_eq!((environment.kernel.as_str(), environment.cpu.online), ("", 0));
    }

    #[test]
    fn programs_that_are_there_say_their_version() {
        let environment =
            Environment::capture(&[&["cargo", "--version"], &["no-such-program-anywhere"]]);
        assert!(environment.programs["cargo"].starts_with("cargo "));
        assert_eq!(environment.programs.len(), 1);
        assert!(environment.cpu.online > 0);
    }

    #[test]
    fn stolen_time_is_a_share_of_all() {
        let root = machine(&[("stat", "cpu  10 0 10 60 0 0 0 20 5 0\ncpu0 1\n")]);
        assert_eq!(cpu_time(&root.path().join("stat")), Some([100, 20]));
        let (seconds, steal) = Watch::begin().end();
        assert!(seconds >= 0.0);
        assert!((0.0..=100.0).contains(&steal.unwrap()));
    }
}
