//! Tests of `fwlab workload` with real commands: order, exit status, gaps, signals, and cleanup.

use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

fn fwlab(folder: &Path, workload: &str, flags: &[&str]) -> Command {
    std::fs::write(folder.join("load"), workload).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_fwlab"));
    command.current_dir(folder).args(["workload", "load"]).args(flags);
    command
}

/// Writes a script that appends a word to a file, atomically. It is a file, because commands have
/// no quotes.
fn with_scripts(folder: &Path) {
    std::fs::write(folder.join("say"), "sleep ${2:-0}\necho $1 >>log\n").unwrap();
}

fn run(workload: &str) -> (Output, Value, Vec<String>) {
    let folder = tempfile::tempdir().unwrap();
    with_scripts(folder.path());
    let output = fwlab(folder.path(), workload, &["--json"]).output().unwrap();
    let json = serde_json::from_slice(&output.stdout).unwrap();
    let log = std::fs::read_to_string(folder.path().join("log")).unwrap_or_default();
    (output, json, log.lines().map(str::to_string).collect())
}

#[test]
fn sequential_waits_for_each() {
    let (output, json, log) = run(
        "sequential 2 { command \"sh say a 0.1\" parallel { command \"sh say b\" } command \"sh say c\" }",
    );
    assert_eq!(log, ["a", "b", "c", "a", "b", "c"]);
    assert_eq!(output.status.code(), Some(0));
    let executed = json["executed"].as_array().unwrap();
    for pair in executed.windows(2) {
        let end = pair[0]["start"].as_f64().unwrap() + pair[0]["seconds"].as_f64().unwrap();
        assert!(end <= pair[1]["start"].as_f64().unwrap() + 1e-6, "{json:#}");
    }
}

#[test]
fn parallel_starts_all_and_waits_for_all() {
    let (_, json, log) = run(
        "sequential { parallel 3 { command \"sh say slow 0.5\" command \"sh say fast\" } command \"sh say end\" }",
    );
    assert_eq!(log.last().unwrap(), "end");
    assert_eq!(log.iter().filter(|word| *word == "slow").count(), 3);
    let executed = json["executed"].as_array().unwrap();
    assert_eq!(executed.len(), 7);
    // They start in the order of the file, each before the first slow one has ended.
    let words: Vec<&str> = executed.iter().map(|one| one["command"][2].as_str().unwrap()).collect();
    assert_eq!(words, ["slow", "fast", "slow", "fast", "slow", "fast", "end"]);
    let first_end =
        executed[0]["start"].as_f64().unwrap() + executed[0]["seconds"].as_f64().unwrap();
    assert!(executed[5]["start"].as_f64().unwrap() < first_end, "{json:#}");
}

#[test]
fn random_gaps_are_those_of_the_seed() {
    let (_, json, _) = run("random 3 42 0.05 0.25 { command \"true\" }");
    let starts: Vec<f64> = json["executed"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["start"].as_f64().unwrap() - one["late"].as_f64().unwrap())
        .collect();
    // random(3) with seed 42 gives 71876166, then 708592740.
    let gap = |number: f64| 0.05 + 0.2 * number / 2_147_483_647.0;
    assert!((starts[1] - starts[0] - gap(71_876_166.0)).abs() < 1e-4, "{json:#}");
    assert!((starts[2] - starts[1] - gap(708_592_740.0)).abs() < 1e-4, "{json:#}");
}

#[test]
fn failures_are_told_apart_and_do_not_stop_the_rest() {
    let (output, json, _) =
        run("sequential { command \"false\" command \"/no/such/program x\" command \"true\" }");
    assert_eq!(output.status.code(), Some(1));
    let endings: Vec<&Value> =
        json["executed"].as_array().unwrap().iter().map(|one| &one["ending"]).collect();
    assert_eq!(endings[0]["exit"], 1);
    assert!(endings[1]["not_started"].as_str().unwrap().contains("No such file"), "{json:#}");
    assert_eq!(endings[2]["exit"], 0);
}

#[test]
fn output_of_commands_is_not_mixed_with_json() {
    let (output, _, _) = run("command \"echo *.c $HOME\"");
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "*.c $HOME\n");
}

#[test]
fn a_mistake_is_shown_and_nothing_is_run() {
    let folder = tempfile::tempdir().unwrap();
    let load = "sequential {\n command \"touch ran\"\n comand \"x\"\n}\n";
    let output = fwlab(folder.path(), load, &[]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(message.starts_with("load:3:2: expected a job"), "{message}");
    assert!(message.contains("\n comand \"x\"\n ^\n"), "{message}");
    let output =
        fwlab(folder.path(), "parallel 3 { command \"touch ran\" }", &["--check"]).output();
    assert_eq!(String::from_utf8(output.unwrap().stdout).unwrap(), "load: 3 commands\n");
    assert!(!folder.path().join("ran").exists());
}

#[test]
fn ctrl_c_ends_everything_and_says_what_was_run() {
    let folder = tempfile::tempdir().unwrap();
    // A shell whose child would outlive it, one that ignores SIGTERM, and a command that never
    // starts.
    std::fs::write(
        folder.path().join("family"),
        "sleep 987 & echo $! >pid\necho ready >>log\nwait\n",
    )
    .unwrap();
    std::fs::write(
        folder.path().join("deaf"),
        "trap '' TERM\necho ready >>log\nwhile :; do sleep 0.1; done\n",
    )
    .unwrap();
    let workload = "sequential { command \"true\" parallel { command \"sh family\" command \"sh deaf\" } command \"touch ran\" }";
    let child = fwlab(folder.path(), workload, &["--json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let log = folder.path().join("log");
    let deadline = Instant::now() + Duration::from_secs(60);
    while std::fs::read_to_string(&log).unwrap_or_default().lines().count() < 2 {
        assert!(Instant::now() < deadline, "the commands did not start");
        std::thread::sleep(Duration::from_millis(10));
    }
    let pid = nix::unistd::Pid::from_raw(child.id().cast_signed());
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGINT).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(json["interrupted"], true);
    let executed = json["executed"].as_array().unwrap();
    assert_eq!(executed.len(), 3, "{json:#}");
    assert_eq!(executed[0]["ending"]["exit"], 0);
    assert_eq!(executed[1]["ending"]["signal"], "SIGTERM");
    assert_eq!(executed[2]["ending"]["signal"], "SIGKILL");
    assert!(!folder.path().join("ran").exists());
    let grandchild = std::fs::read_to_string(folder.path().join("pid")).unwrap();
    let state = std::fs::read_to_string(format!("/proc/{}/stat", grandchild.trim()));
    // The process is gone, or dead and not yet reaped.
    assert!(state.is_err() || state.unwrap().contains(") Z "));
}
