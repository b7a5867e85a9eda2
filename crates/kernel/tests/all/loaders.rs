//! Several processes load at once, and some are killed: afterwards the kernel has one of the rule
//! sets, complete.
//!
//! ```text
//! this test ── private network namespace ── children: this program again, loading A, B, A, B, ...
//!                                           killed (-9) at instants spread over a load
//! ```

use std::collections::BTreeSet;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::common::{host, ruleset};
use skipstep_abi::limits::COPIES;
use skipstep_kernel::report::Hook;
use skipstep_kernel::trial::TrialRequest;
use skipstep_kernel::{Error, Instance};
use skipstep_ruleset::interface::Host;
use skipstep_ruleset::{Ruleset, TableEntry};
use skipstep_testing::TestNetwork;

/// Environment variable with the name of the instance that a child loads.
const ORDER: &str = "SKIPSTEP_TEST_LOADER";

/// Name of the test that becomes a loader if `ORDER` is set.
const TEST_OF_LOADERS: &str = "loaders::two_loaders_one_killed_leave_one_whole_rule_set";

/// Environment variable that selects the work of a loader: [`ON_TRIAL`] or [`TOO_LARGE`]; plain
/// loads if it is not set.
const WORK: &str = "SKIPSTEP_TEST_WORK";

/// The loader puts its loads on trial.
const ON_TRIAL: &str = "on trial";

/// Each load needs more room than the filter has.
const TOO_LARGE: &str = "too large";

/// Environment variable with the number of loaders to kill, two in each round.
const KILLS: &str = "SKIPSTEP_KILLS";

/// Returns the number of rounds.
fn rounds() -> u64 {
    let kills = std::env::var(KILLS).map_or(80, |kills| kills.parse().unwrap());
    kills / 2
}

/// Returns one of two rule sets that have nothing in common: number of rules, ports, table contents
/// (only one with an index), queues, and the interface with XDP.
fn rule_set(which: usize, host: &Host) -> Ruleset {
    let (rules, port, net, hosts) =
        [(60, 1000, "192.0.2", 100), (35, 5000, "198.51.100", 3)][which];
    let hosts: String = (100..100 + hosts).map(|host| format!(" {net}.{host}")).collect();
    let queues = QUEUES[which].iter().map(|(_, line)| line.to_string() + "\n");
    let mut text = format!("set xdp on {}\n", XDP[which]);
    text.extend(queues);
    text.push_str(&format!("table <t> {{{hosts} }}\npass from <t>\n"));
    for number in 0..rules {
        text.push_str(&format!("block in proto tcp to port {}\n", port + number));
    }
    ruleset(&text, host)
}

/// Queues of each rule set, with their names.
const QUEUES: [&[(&str, &str)]; 2] = [
    &[
        ("line", "queue line on em0 bandwidth 10M"),
        ("bulk", "queue bulk parent line bandwidth 10M default"),
    ],
    &[
        ("line", "queue line on em1 bandwidth 20M"),
        ("other", "queue other parent line bandwidth 5M"),
        ("rest", "queue rest parent line bandwidth 15M default"),
    ],
];
/// Interface with the queues of each rule set.
const QUEUED: [&str; 2] = ["em0", "em1"];
/// Interface with XDP of each rule set.
const XDP: [&str; 2] = ["em1", "em0"];

/// Loads the two rule sets into an instance, interleaved, until the process is killed.
fn load_for_ever(name: &str) -> ! {
    let host = skipstep_kernel::host::read().unwrap();
    let sets = [rule_set(0, &host), rule_set(1, &host)];
    let mut instance = Instance::open(name).unwrap();
    loop {
        for set in &sets {
            instance.load(set.clone(), &host).unwrap();
        }
    }
}

/// Loads the two rule sets on trial, and confirms or reverts them, until the process is killed.
fn try_for_ever(name: &str) -> ! {
    let host = skipstep_kernel::host::read().unwrap();
    let sets = [rule_set(0, &host), rule_set(1, &host)];
    let mut instance = Instance::open(name).unwrap();
    instance.set_trial(TrialRequest { seconds: 1, ..TrialRequest::default() });
    // the time may be over at any instant, and another loader may confirm or revert
    let check = |error| match error {
        Error::NoTrial | Error::TrialFailed { .. } => {}
        other => panic!("{other}"),
    };
    loop {
        for set in &sets {
            instance.load(set.clone(), &host).unwrap_or_else(check);
            instance.load(set.clone(), &host).unwrap_or_else(check);
            instance.confirm().map(drop).unwrap_or_else(check);
            instance.load(set.clone(), &host).unwrap_or_else(check);
            instance.revert().map(drop).unwrap_or_else(check);
        }
    }
}

/// Loads the two rule sets, each with room for more states than the load before, until the process
/// is killed. The filter must be disabled.
fn enlarge_for_ever(name: &str) -> ! {
    let host = skipstep_kernel::host::read().unwrap();
    loop {
        for which in 0..2 {
            let mut instance = Instance::open(name).unwrap();
            let mut set = rule_set(which, &host);
            set.options.limits.states = instance.maps().states.capacity() + 1;
            instance.load(set, &host).unwrap();
        }
    }
}

fn start_loader(name: &str) -> Child {
    loader(name).spawn().unwrap()
}

/// Starts a loader with one of the values of [`WORK`].
fn start_to(work: &str, name: &str) -> Child {
    loader(name).env(WORK, work).spawn().unwrap()
}

/// Starts skipstepd in a process group with its workers.
fn start_daemon(name: &str, folder: &Path) -> Child {
    let own = std::env::current_exe().unwrap();
    let program: PathBuf = own.ancestors().nth(2).unwrap().join("skipstepd");
    assert!(program.exists(), "{} is missing: cargo build --bins", program.display());
    Command::new(program)
        .args(["-p", name, "-f"])
        .arg(folder.join("pflog"))
        .process_group(0)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// Returns the command of a loader.
fn loader(name: &str) -> Command {
    // a child of this thread is in this thread's network namespace
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", TEST_OF_LOADERS, "--include-ignored", "--nocapture"])
        .env(ORDER, name)
        .stdout(Stdio::null())
        .stderr(Stdio::inherit());
    command
}

/// Child processes, which end when the test ends or fails.
struct Loaders(Vec<Child>);

impl Drop for Loaders {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Asserts that the rules in the kernel are one of the two rule sets, and that the records agree.
fn assert_whole(name: &str, host: &Host) {
    let instance = Instance::open(name).unwrap();
    let loaded = instance.loaded().unwrap().ruleset;
    let which = (0..2).find(|which| rule_set(*which, host) == loaded);
    let which = which.expect("one of the two rule sets is in force");
    let rules = instance.rules_in_force().unwrap();
    assert_eq!(rules.len(), loaded.rules.len());
    for (walked, written) in rules.iter().zip(&loaded.rules) {
        assert_eq!(walked.number, written.number);
        assert_eq!(walked.destination_port.low, written.destination.ports.map_or(0, |p| p.low));
    }
    let entries: Vec<TableEntry> = instance.table_entries(&"t".into()).unwrap();
    assert_eq!(entries, rule_set(which, host).tables[0].entries);
    assert_eq!(instance.rule_counters("").unwrap().len(), rules.len());
    assert_switched(&instance, which);
    // there may be more, which the killed process began to write
    assert!(instance.table_versions().unwrap().len() >= 2, "<t> and the own addresses");
}

/// Asserts that queues and XDP programs are those of the rule set in force, after another change
/// has recovered.
fn assert_switched(instance: &Instance, which: usize) {
    instance.set_debug(0).unwrap();
    for view in instance.interfaces().unwrap() {
        let Some(index) = view.index else { continue };
        let stats = instance.queue_stats(index).unwrap();
        let queues: BTreeSet<&str> = stats.keys().map(String::as_str).collect();
        let mut wanted: BTreeSet<&str> = QUEUES[which].iter().map(|(name, _)| *name).collect();
        if view.name != QUEUED[which] {
            wanted.clear();
        }
        assert_eq!(queues, wanted, "queues of {}, rule set {which}", view.name);
        let has_xdp = view.hook == Hook::Xdp;
        assert_eq!(has_xdp, view.name == XDP[which], "XDP on {}, rule set {which}", view.name);
    }
}

/// Calls `test` with an instance in a network of its own.
fn with_instance(test: impl FnOnce(&str, &mut Instance, &Host) + Send + 'static) {
    std::thread::spawn(|| {
        TestNetwork::enter(&host()).unwrap();
        let host = skipstep_kernel::host::read().unwrap();
        let thread = nix::unistd::gettid();
        let name = format!("test-{}-loaders-{thread}", std::process::id());
        let mut instance = Instance::open_or_create(&name, 100).unwrap();
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            test(&name, &mut instance, &host);
        }));
        instance.remove().unwrap();
        if let Err(panic) = result {
            std::panic::resume_unwind(panic);
        }
    })
    .join()
    .unwrap();
}

#[test]
#[ignore = "needs root"]
fn two_loaders_one_killed_leave_one_whole_rule_set() {
    if let Ok(name) = std::env::var(ORDER) {
        match std::env::var(WORK).as_deref() {
            Ok(ON_TRIAL) => try_for_ever(&name),
            Ok(TOO_LARGE) => enlarge_for_ever(&name),
            _ => load_for_ever(&name),
        }
    }
    with_instance(|name, instance, host| {
        instance.load(rule_set(0, host), host).unwrap();
        instance.enable().unwrap();
        assert_whole(name, host);
        for round in 0..rounds() {
            let mut loaders = Loaders(vec![start_loader(name), start_loader(name)]);
            std::thread::sleep(Duration::from_millis(20 + round * 37 % 150));
            loaders.0[0].kill().unwrap();
            loaders.0[0].wait().unwrap();
            drop(loaders);
            assert_whole(name, host);
        }
        // and the next load removes everything that the killed processes wrote
        instance.load(rule_set(1, host), host).unwrap();
        assert_whole(name, host);
        assert_eq!(instance.table_versions().unwrap().len(), 2, "<t> and the own addresses");
    });
}

#[test]
#[ignore = "needs root"]
fn killed_loads_on_trial_leave_one_whole_rule_set() {
    with_instance(|name, instance, host| {
        instance.load(rule_set(0, host), host).unwrap();
        instance.enable().unwrap();
        for round in 0..rounds() {
            let mut loaders = Loaders(vec![start_to(ON_TRIAL, name), start_to(ON_TRIAL, name)]);
            std::thread::sleep(Duration::from_millis(20 + round * 37 % 300));
            loaders.0[0].kill().unwrap();
            loaders.0[0].wait().unwrap();
            drop(loaders);
            // in some rounds the timer ends the trial
            while round % 8 == 7 && instance.trial().unwrap().is_some() {
                std::thread::sleep(Duration::from_millis(20));
            }
            match instance.revert() {
                Ok(_) | Err(Error::NoTrial | Error::TrialFailed { .. }) => {}
                Err(error) => panic!("{error}"),
            }
            assert_whole(name, host);
        }
        instance.load(rule_set(1, host), host).unwrap();
        assert_whole(name, host);
        assert_eq!(instance.table_versions().unwrap().len(), 2, "<t> and the own addresses");
    });
}

/// Kills skipstepd alone, or with its workers.
fn kill_daemon(daemon: &mut Child, with_workers: bool) {
    let process = Pid::from_raw(daemon.id() as i32);
    let target = if with_workers { Pid::from_raw(-process.as_raw()) } else { process };
    kill(target, Signal::SIGKILL).unwrap();
    daemon.wait().unwrap();
}

#[test]
#[ignore = "needs root"]
fn killed_skipstepds_and_loads_on_trial_leave_one_whole_rule_set() {
    with_instance(|name, instance, host| {
        let folder = tempfile::tempdir().unwrap();
        instance.load(rule_set(0, host), host).unwrap();
        instance.enable().unwrap();
        for round in 0..rounds() {
            let mut loaders =
                Loaders(vec![start_daemon(name, folder.path()), start_to(ON_TRIAL, name)]);
            std::thread::sleep(Duration::from_millis(20 + round * 37 % 400));
            if round % 2 == 0 {
                loaders.0[1].kill().unwrap();
            }
            // skipstepd may be ending the trial of the killed loader
            std::thread::sleep(Duration::from_micros(round * 7919 % 20_000));
            kill_daemon(&mut loaders.0[0], round % 4 < 2);
            drop(loaders);
            // in some rounds nobody but the timer ends the trial
            while round % 8 == 6 && instance.trial().unwrap().is_some() {
                std::thread::sleep(Duration::from_millis(20));
            }
            match instance.revert() {
                Ok(_) | Err(Error::NoTrial | Error::TrialFailed { .. }) => {}
                Err(error) => panic!("{error}"),
            }
            assert_whole(name, host);
        }
        // and a skipstepd that lives ends a trial by itself
        let mut daemon = Loaders(vec![start_daemon(name, folder.path())]);
        let mut on_trial = Instance::open(name).unwrap();
        let kept = instance.loaded().unwrap().ruleset;
        let other = usize::from(kept == rule_set(0, host));
        on_trial.set_trial(TrialRequest { seconds: 1, ..TrialRequest::default() });
        on_trial.load(rule_set(other, host), host).unwrap();
        let (begin, file) = (Instant::now(), format!("/run/skipstep/{name}/trial.json"));
        while Path::new(&file).exists() {
            assert!(begin.elapsed() < Duration::from_secs(5), "skipstepd does not end the trial");
            std::thread::sleep(Duration::from_millis(20));
        }
        assert_eq!(instance.loaded().unwrap().ruleset, kept);
        kill_daemon(&mut daemon.0[0], true);
        assert_whole(name, host);
        assert_eq!(instance.table_versions().unwrap().len(), 2, "<t> and the own addresses");
    });
}

#[test]
#[ignore = "needs root"]
fn killed_loads_that_enlarge_a_disabled_filter_leave_one_whole_rule_set() {
    with_instance(|name, instance, host| {
        instance.load(rule_set(0, host), host).unwrap();
        // the kernel checks all programs for each load, which takes a second or more
        for round in 0..rounds() / 4 {
            let mut loaders = Loaders(vec![start_to(TOO_LARGE, name)]);
            std::thread::sleep(Duration::from_millis(100 + round * 397 % 3000));
            loaders.0[0].kill().unwrap();
            drop(loaders);
            let found = Instance::open(name).unwrap().loaded().unwrap().ruleset;
            let is_whole = (0..2).any(|which| found.rules == rule_set(which, host).rules);
            assert!(is_whole, "round {round}: {} rules are in force", found.rules.len());
        }
        // and the filter works
        *instance = Instance::open(name).unwrap();
        instance.load(rule_set(1, host), host).unwrap();
        instance.enable().unwrap();
        assert_whole(name, host);
        assert_eq!(instance.table_versions().unwrap().len(), 2, "<t> and the own addresses");
    });
}

#[test]
#[ignore = "needs root"]
fn a_load_on_trial_goes_back_and_releases_all_that_only_it_uses() {
    with_instance(|name, instance, host| {
        instance.load(rule_set(0, host), host).unwrap();
        instance.enable().unwrap();
        let mut on_trial = Instance::open(name).unwrap();
        on_trial.set_trial(TrialRequest { seconds: 600, ..TrialRequest::default() });
        for _ in 0..3 {
            for which in [1, 0, 1] {
                on_trial.load(rule_set(which, host), host).unwrap();
                assert_eq!(instance.trial().unwrap().unwrap().kept, rule_set(0, host));
            }
            assert!(matches!(
                instance.load(rule_set(1, host), host),
                Err(Error::OnTrial { left: 500..=600, .. })
            ));
            assert_eq!(instance.loaded().unwrap().ruleset, rule_set(1, host));
            instance.revert().unwrap();
            assert_eq!(instance.loaded().unwrap().ruleset, rule_set(0, host));
            assert_whole(name, host);
            assert_eq!(instance.table_versions().unwrap().len(), 2, "<t> and the own addresses");
        }
        on_trial.load(rule_set(1, host), host).unwrap();
        instance.confirm().unwrap();
        assert_eq!(instance.loaded().unwrap().ruleset, rule_set(1, host));
        assert_whole(name, host);
        assert_eq!(instance.table_versions().unwrap().len(), 2, "<t> and the own addresses");
        assert!(matches!(instance.confirm(), Err(Error::NoTrial)));
    });
}

#[test]
#[ignore = "needs root"]
fn a_read_ahead_of_a_replaced_rule_set_is_discarded() {
    with_instance(|name, instance, host| {
        instance.load(rule_set(0, host), host).unwrap();
        instance.enable().unwrap();
        for others in 0..3 {
            let before = instance.loaded().unwrap().generation;
            let ahead = instance.read_ahead();
            let mut other = Instance::open(name).unwrap();
            for which in 0..others {
                other.load(rule_set(which, host), host).unwrap();
            }
            instance.load_ahead(rule_set(1, host), host, ahead).unwrap();
            assert_whole(name, host);
            let after = instance.loaded().unwrap().generation;
            let next =
                |generation, _| generation / COPIES * COPIES + [1, COPIES][generation as usize % 4];
            let expected = (0..=others).fold(before, next);
            assert_eq!(after, expected, "no generation is written twice");
            assert_eq!(instance.table_versions().unwrap().len(), 2, "nothing of others is left");
        }
    });
}
