//! Tests that unmodified tcpdump and tshark read the log files.

use std::net::IpAddr;
use std::process::Command;

use skipstep_abi::verdict::{action, direction};
use skipstep_abi::{INET, INET6, LogRecord, address_bytes};
use skipstepd::file;
use skipstepd::log::{self, Logs};
use skipstepd::pflog::Origin;
use zerocopy::FromZeros;

fn record(packet: &[u8], addresses: [&str; 2], ports: [u16; 2]) -> LogRecord {
    let [source, destination] = addresses.map(|text| text.parse::<IpAddr>().unwrap());
    let mut record = LogRecord {
        time: 1,
        source: address_bytes(source),
        destination: address_bytes(destination),
        source_port: ports[0].to_be_bytes(),
        destination_port: ports[1].to_be_bytes(),
        family: if source.is_ipv4() { INET } else { INET6 },
        action: action::BLOCK,
        direction: direction::IN,
        anchor_rule: -1,
        caplen: packet.len() as u16,
        wirelen: packet.len() as u32,
        ..LogRecord::new_zeroed()
    };
    record.ifname[..3].copy_from_slice(b"em0");
    record.data[..packet.len()].copy_from_slice(packet);
    record
}

/// Returns three records of the main rule set: a blocked SYN over IPv4, a UDP packet over IPv6 that
/// the default rule passes, and an outbound match.
fn records() -> [LogRecord; 3] {
    let tcp4 = [
        0x45, 0, 0, 40, 0, 1, 0, 0, 64, 6, 0, 0, 10, 0, 1, 5, 192, 0, 2, 7, // IPv4
        0x0f, 0xa0, 0, 22, 0, 0, 0, 1, 0, 0, 0, 0, 0x50, 2, 0xff, 0xff, 0, 0, 0,
        0, // TCP, SYN
    ];
    let mut udp6 = vec![0x60, 0, 0, 0, 0, 8, 17, 64];
    let [source6, destination6] = ["2001:db8:1::5", "2001:db8:2::7"];
    for text in [source6, destination6] {
        udp6.extend(address_bytes(text.parse().unwrap()));
    }
    udp6.extend([0, 53, 0x0f, 0xa0, 0, 8, 0, 0]);
    let block = LogRecord { rule: 4, ..record(&tcp4, ["10.0.1.5", "192.0.2.7"], [4000, 22]) };
    let pass = LogRecord {
        rule: -1,
        action: action::PASS,
        ..record(&udp6, [source6, destination6], [53, 4000])
    };
    let matched = LogRecord { rule: 7, action: action::MATCH, direction: direction::OUT, ..block };
    [block, pass, matched]
}

/// Runs a program and returns its standard output.
fn run(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output();
    let output = output.unwrap_or_else(|error| panic!("{program}: {error}: install {program}"));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn log_file() -> (tempfile::TempDir, String) {
    let dir = tempfile::tempdir().unwrap();
    let mut logs = Logs::new(&dir.path().join("pflog"), 160);
    let open = |number| file::open(&log::path(&dir.path().join("pflog"), number));
    let main = Origin { anchor: String::new(), uid: 0, pid: 77 };
    for record in records() {
        logs.add(&record, &main, open);
    }
    let [block, ..] = records();
    let inside = LogRecord { anchor_rule: 9, anchor: 1, ..block };
    let anchor = Origin { anchor: "proxies/ftp".into(), ..main };
    logs.add(&inside, &anchor, open);
    assert_eq!(logs.flush(), [""; 0]);
    let path = dir.path().join("pflog0").to_str().unwrap().to_string();
    (dir, path)
}

#[test]
fn tcpdump_reads_the_file() {
    let (_dir, path) = log_file();
    let text = run("tcpdump", &["-nettr", &path]);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 4, "{text}");
    assert!(
        lines[0].contains("rule 4/0(match): block in on em0: 10.0.1.5.4000 > 192.0.2.7.22"),
        "{text}"
    );
    assert!(lines[1].contains("pass in on em0: 2001:db8:1::5.53 > 2001:db8:2::7.4000"), "{text}");
    // tcpdump has no name for OpenBSD's action number of `match`
    assert!(lines[2].contains("rule 7/0(match): unkn(12) out on em0"), "{text}");
    // for a rule in an anchor: number of the anchor rule, name of the anchor, number of the rule in
    // it
    assert!(lines[3].contains("rule 9.ftp.4/0(match): block in on em0"), "{text}");
}

#[test]
#[ignore = "needs tshark"]
fn tshark_reads_the_file() {
    let (_dir, path) = log_file();
    let fields = [
        "-r",
        &path,
        "-T",
        "fields",
        "-e",
        "pflog.ifname",
        "-e",
        "pflog.rulenr",
        "-e",
        "pflog.action",
        "-e",
        "pflog.dir",
        "-e",
        "ip.src",
        "-e",
        "ipv6.src",
        "-e",
        "pflog.ruleset",
        "-e",
        "pflog.subrulenr",
        "-e",
        "_ws.malformed",
    ];
    let text = run("tshark", &fields);
    let rows: Vec<Vec<&str>> = text.lines().map(|line| line.split('\t').collect()).collect();
    assert_eq!(rows.len(), 4, "{text}");
    assert_eq!(rows[0][..5], ["em0", "4", "1", "1", "10.0.1.5"], "{text}");
    assert_eq!(rows[1][5], "2001:db8:1::5", "{text}");
    assert_eq!(rows[3][6..8], ["ftp", "4"], "{text}");
    assert_eq!((rows[3][1], rows[0][6], rows[0][7]), ("9", "", "-1"), "{text}");
    assert!(rows.iter().all(|row| row[8].is_empty()), "{text}");
}
