//! Tests of the program itself, without privileges: its output and its exit status.

use std::io::{Read, Write};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use skipstep_wire::pcap::{FileHeader, MAX_CAPTURED, PFLOG, PFLOG_HEADER, RecordHeader};

/// Runs pfctl with these arguments and this standard input.
fn pfctl(arguments: &[&str], input: &str) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_pfctl"))
        .args(arguments)
        .env_remove("SSH_CONNECTION")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

/// Returns exit status, standard output and standard error.
fn run(arguments: &[&str], input: &str) -> (i32, String, String) {
    let output = pfctl(arguments, input);
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

fn file(name: &str, text: &str) -> (tempfile::TempDir, String) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(name);
    std::fs::write(&path, text).unwrap();
    let path = path.to_str().unwrap().to_string();
    (dir, path)
}

#[test]
fn a_rule_set_is_checked_and_printed() {
    let rules = "ports = \"{ 22 80 }\"\nblock\npass in proto tcp to port $ports\n";
    let echo = "ports = \"{ 22 80 }\"\nblock drop all\n\
        pass in proto tcp from any to any port = 22 flags S/SA\n\
        pass in proto tcp from any to any port = 80 flags S/SA\n";
    assert_eq!(run(&["-nvf", "-"], rules), (0, echo.into(), String::new()));
    assert_eq!(run(&["-nf", "-"], rules), (0, String::new(), String::new()));
}

#[test]
fn ports_are_printed_by_name() {
    let (status, out, _) = run(&["-P", "-nvf", "-"], "pass proto udp to port 53\n");
    assert_eq!((status, &*out), (0, "pass proto udp from any to any port = domain\n"));
}

#[test]
fn macros_come_from_the_command_line() {
    let (status, out, _) = run(&["-D", "port=53", "-nvf", "-"], "pass proto udp to port $port\n");
    assert_eq!((status, &*out), (0, "pass proto udp from any to any port = 53\n"));
}

#[test]
fn an_error_names_file_and_line() {
    let (_dir, path) = file("pf.conf", "block\npass in on\n");
    let (status, out, err) = run(&["-nf", &path], "");
    assert_eq!((status, out, err), (1, String::new(), format!("{path}:2: syntax error\n")));
}

#[test]
fn translation_rules_are_parsed_and_printed() {
    let rules = "pass out inet nat-to 192.0.2.1\n";
    let (status, out, err) = run(&["-nvf", "-"], rules);
    let printed = "pass out inet all flags S/SA nat-to 192.0.2.1\n";
    assert_eq!((status, &*out, &*err), (0, printed, ""));
}

#[test]
fn a_missing_file_is_an_error() {
    let (status, _, err) = run(&["-nf", "/not/there"], "");
    assert_eq!(status, 1);
    assert_eq!(
        err,
        "pfctl: cannot open the main config file!: /not/there: No such file or directory\n"
    );
}

#[test]
fn a_wrong_line_is_answered_with_the_usage() {
    let (status, out, err) = run(&["-s", "nonsense"], "");
    assert_eq!((status, &*out), (1, ""));
    assert!(
        err.starts_with("pfctl: Unknown show modifier 'nonsense'\nusage: pfctl [-dEeg"),
        "{err}"
    );
    let (status, _, err) = run(&[], "");
    assert!(status == 1 && err.starts_with("usage: pfctl "), "{err}");
}

#[test]
fn help_is_asked_for_and_goes_to_standard_output() {
    let (status, out, err) = run(&["-h"], "");
    assert_eq!((status, &*err), (0, ""));
    assert!(out.contains("  -F modifier     flush rules"), "{out}");
    assert_eq!(run(&["--help"], "").1, out);
    let (status, out, err) = run(&["--version"], "");
    assert_eq!((status, &*err), (0, ""));
    assert!(out.starts_with("pfctl of skipstep "), "{out}");
}

#[test]
fn a_packet_is_explained_without_privileges() {
    let (_dir, path) = file("pf.conf", "block\npass in on em0 proto tcp to port 22\n");
    let packet = "in em0 tcp 10.0.0.1:4000 > 10.0.0.2:22 S";
    let (status, out, err) = run(&["explain", "-f", &path, packet], "");
    assert_eq!((status, &*err), (0, ""));
    assert!(out.contains(&format!("pass by rule 1, {path}:2\n")), "{out}");
    let (status, out, _) = run(&["explain", "--json", "-f", &path, packet], "");
    let json: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!((status, &json["verdict"], &json["rule"]["line"]), (0, &"pass".into(), &2.into()));
}

#[test]
fn a_packet_is_explained_in_the_words_of_pf_conf() {
    let (_dir, path) = file("pf.conf", "block\npass in on em0 inet6 proto tcp to port 22\n");
    let line = "in on em0 proto tcp from 2001:db8::9 port 4000 to 2001:db8::1 port ssh flags S";
    let words: Vec<&str> = ["explain", "-f", &path].into_iter().chain(line.split(' ')).collect();
    let (status, out, err) = run(&words, "");
    assert_eq!((status, &*err), (0, ""));
    assert!(out.contains(&format!("pass by rule 1, {path}:2\n")), "{out}");
}

#[test]
fn explain_without_a_packet_prints_the_grammar() {
    let (status, out, err) = run(&["explain"], "");
    assert_eq!((status, &*out), (1, ""));
    assert!(err.starts_with("pfctl: explain: no packet given\nusage: pfctl explain "), "{err}");
    assert_eq!(err.matches("\n  pfctl explain ").count(), 2, "two examples: {err}");
    let (status, out, _) = run(&["explain", "-h"], "");
    assert_eq!(status, 0);
    assert!(err.ends_with(&out) && out.contains("from ADDRESS [port PORT]"), "{out}");
}

/// The findings depend on the machine. Their form does not, and every user sees the kernel.
#[test]
fn the_doctor_prints_the_level_of_each_finding() {
    let (status, out, err) = run(&["doctor"], "");
    assert_eq!(&*err, "");
    let heads = out.lines().filter(|line| !line.starts_with(' '));
    let levels = heads.map(|line| match line.split_whitespace().next() {
        Some("OK") => 0,
        Some("WARN") => 1,
        Some("FAIL") => 2,
        _ => panic!("{line}"),
    });
    assert_eq!(levels.max(), Some(status), "{out}");
    assert!(out.lines().any(|line| line.contains(" kernel ")), "{out}");
    assert_eq!(run(&["doctor", "eth0"], "").0, 1, "an interface needs -i");
}

#[test]
fn a_packet_that_is_none_is_refused() {
    let (_dir, path) = file("pf.conf", "pass\n");
    let (status, out, err) = run(&["explain", "-f", &path, "in em0 tcp nonsense"], "");
    assert_eq!((status, &*out), (1, ""));
    assert!(err.starts_with("pfctl: "), "{err}");
}

const SCENARIO: &str = "rules { block all; pass in on em0 proto tcp to port 22 }\n\
    in em0 tcp 10.0.0.1:4000 > 10.0.0.2:22 S => pass rule 1\n\
    in em0 udp 10.0.0.1:53 > 10.0.0.2:53 => block rule 0\n";

#[test]
fn scenarios_run_without_privileges() {
    let (_dir, path) = file("ssh.scn", SCENARIO);
    assert_eq!(run(&["test", &path], ""), (0, "1 passed, 0 failed\n".into(), String::new()));
}

#[test]
fn a_scenario_that_fails_is_reported() {
    let (dir, path) = file("ssh.scn", &SCENARIO.replace("=> block rule 0", "=> pass"));
    let report = dir.path().join("report.xml");
    let (status, out, _) = run(&["test", "--junit", report.to_str().unwrap(), &path], "");
    assert_eq!(status, 1);
    assert!(out.contains(&format!("{path}:3: ")), "{out}");
    assert!(out.ends_with("0 passed, 1 failed\n"), "{out}");
    let xml = std::fs::read_to_string(report).unwrap();
    assert!(xml.contains("failures=\"1\""), "{xml}");
}

#[test]
fn the_example_in_the_manual_page_is_a_rule_set() {
    let page = include_str!("../../../man/pf.conf.5");
    let example = page.split(".Sh EXAMPLES").nth(1).unwrap();
    let rules = example.split(".Bd -literal -offset indent\n").nth(1).unwrap();
    let rules = rules.split(".Ed").next().unwrap();
    assert_eq!(run(&["-nf", "-"], rules), (0, String::new(), String::new()));
}

#[test]
fn a_log_is_written_as_pcap_until_the_reader_closes_it() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("pflog0");
    let mut child = Command::new(env!("CARGO_BIN_EXE_pfctl"))
        .args(["log", "-w", "-", path.to_str().unwrap()])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdout = child.stdout.take().unwrap();
    let mut read = |bytes: usize| {
        let mut read = vec![0; bytes];
        stdout.read_exact(&mut read).unwrap();
        read
    };
    // the header comes at once; the log does not even exist yet
    let header = FileHeader::new(PFLOG, MAX_CAPTURED as u32);
    assert_eq!(FileHeader::parse(&read(FileHeader::BYTES)), Some(header));
    let captured = PFLOG_HEADER as u32 + 20;
    let record = RecordHeader { time: Duration::from_secs(1), captured, length: 1600 };
    let record = [&record.to_bytes()[..], &vec![0; captured as usize]].concat();
    let log = [&FileHeader::new(PFLOG, 260).to_bytes()[..], &record].concat();
    std::fs::write(dir.path().join("new"), log).unwrap();
    std::fs::rename(dir.path().join("new"), &path).unwrap();
    assert_eq!(read(record.len()), record);
    std::fs::File::options().append(true).open(&path).unwrap().write_all(&record).unwrap();
    assert_eq!(read(record.len()), record);
    drop(stdout);
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    let message = format!("pfctl: {}: no packet was logged yet\n", path.display());
    assert_eq!(String::from_utf8(output.stderr).unwrap(), message);
}
