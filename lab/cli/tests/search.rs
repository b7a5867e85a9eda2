//! Tests of `fwlab search` on simulated devices: the output and the exit status.

use std::process::{Command, Output};

use serde_json::Value;

const TESTS: [&str; 7] =
    ["throughput", "loss-rate", "back-to-back", "latency", "system-recovery", "reset", "mlr"];

fn search(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_fwlab")).arg("search").args(arguments).output().unwrap()
}

fn json(arguments: &[&str]) -> (Value, Option<i32>) {
    let output = search(&[arguments, &["--json"]].concat());
    (serde_json::from_slice(&output.stdout).unwrap(), output.status.code())
}

#[test]
fn every_search_has_a_result_and_claims_no_standard() {
    for test in TESTS {
        let (report, status) = json(&[test, "--simulate", "knee:3e6", "--seconds", "10"]);
        assert_eq!(status, Some(0), "{test}");
        assert_eq!(report["test"], test);
        assert_eq!(report["complete"], true);
        assert!(!report["result"].is_null(), "{test}");
        assert_eq!(report["conformance"]["not"], "the device is simulated");
        let missing = report["on_a_virtual_link"]["partial"].as_array().unwrap();
        assert_eq!(missing[0], "the link is virtual");
        let short = |point: &Value| point.as_str().unwrap().contains("60 s");
        assert!(missing.iter().any(short), "{test}: trials are short: {missing:?}");
        assert!(!report["trials"].as_array().unwrap().is_empty(), "{test}");
    }
}

#[test]
fn a_device_that_dies_leaves_its_trials_and_a_reason() {
    for test in TESTS {
        let (report, status) = json(&[test, "--simulate", "die:2"]);
        assert_eq!(status, Some(1), "{test}");
        assert_eq!(report["complete"], false);
        assert_eq!(report["trials"].as_array().unwrap().len(), 1, "{test}");
        let why = report["incomplete_because"].as_str().unwrap();
        assert!(why.contains("trial 2 failed: the device does not answer"), "{why}");
    }
}

#[test]
fn nothing_is_measured_at_a_throughput_that_is_not_there() {
    for test in ["back-to-back", "latency", "system-recovery", "reset"] {
        let (report, status) = json(&[test, "--simulate", "knee:5", "--seconds", "1"]);
        assert_eq!(status, Some(1), "{test}");
        let why = report["incomplete_because"].as_str().unwrap();
        assert!(why.contains("the test needs a throughput above 0"), "{why}");
    }
    let (report, status) = json(&["throughput", "--simulate", "knee:5", "--seconds", "1"]);
    assert_eq!((status, report["result"]["rate"].as_f64()), (Some(0), Some(0.0)));
}

#[test]
fn a_system_or_a_simulated_device_is_named() {
    for wrong in [&["mlr"][..], &["mlr", "--simulate", "drop", "--system", "nft-flat"]] {
        assert_eq!(search(wrong).status.code(), Some(2), "{wrong:?}");
    }
    let refused = |arguments: &[&str]| {
        let output = search(arguments);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    assert!(refused(&["mlr", "--system", "nothing-like-it"]).contains("no such system"));
    let known = ["mlr", "--simulate", "knee", "--throughput", "5"];
    assert!(refused(&known).contains("--throughput: mlr measures the throughput itself"));
    let ip4 = ["mlr", "--system", "router", "--extension", "chain"];
    assert!(refused(&ip4).contains("IPv4 has no extension headers"));
    let options = ["mlr", "--system", "router", "--ip", "6", "--extension", "hop-by-hop"];
    assert!(refused(&options).contains("fwlab search hop-by-hop"));
}

#[test]
fn a_throughput_that_is_known_is_not_searched_for() {
    for test in ["back-to-back", "latency", "system-recovery", "reset"] {
        let known = [test, "--simulate", "knee:3e6", "--throughput", "2e6", "--seconds", "10"];
        let (report, status) = json(&known);
        assert_eq!(status, Some(0), "{test}");
        let missing = report["on_a_virtual_link"]["partial"].as_array().unwrap();
        let given = |point: &Value| point.as_str().unwrap().contains("was given");
        assert!(missing.iter().any(given), "{test}: {missing:?}");
    }
    let known = ["reset", "--simulate", "knee:3e6", "--throughput", "2e6"];
    assert_eq!(json(&known).0["trials"].as_array().unwrap().len(), 3);
}

#[test]
fn connections_are_searched_for() {
    let capacity = ["tcp-capacity", "--simulate", "knee:300", "--connections", "1000"];
    let (report, status) = json(&capacity);
    assert_eq!((status, report["result"]["connections"].as_u64()), (Some(0), Some(300)));
    let missing = report["on_a_virtual_link"]["partial"].as_array().unwrap();
    assert!(missing.iter().any(|point| point.as_str().unwrap().contains("section 4")));
    let (report, status) = json(&["tcp-rate", "--simulate", "knee:3e6"]);
    assert_eq!(status, Some(0));
    assert!((2.9e6..3.001e6).contains(&report["result"]["rate"].as_f64().unwrap()));
    let (report, status) = json(&["tcp-illegal", "--simulate", "knee:3e6"]);
    assert_eq!((status, report["result"][3]["share"].as_u64()), (Some(0), Some(90)));
    let (report, status) = json(&["tcp-tear-down", "--simulate", "knee:3e6"]);
    assert_eq!((status, report["result"]["connections"].as_u64()), (Some(0), Some(5000)));
    let (report, status) = json(&["tcp-fragments", "--simulate", "knee:3e6"]);
    let datagrams = &report["result"][1];
    assert_eq!((status, &datagrams["sent"]), (Some(0), &datagrams["received"]));
    assert!(datagrams["sent"].as_u64() > Some(0));
    let (report, status) = json(&["tcp-flood", "--simulate", "knee:2e6", "--throughput", "1e6"]);
    let floods = report["result"].as_array().unwrap();
    let came =
        |flood: &Value| flood["received"].as_f64().unwrap() / flood["sent"].as_f64().unwrap();
    assert_eq!((status, floods[0]["sent"].as_u64(), came(&floods[1])), (Some(0), Some(0), 1.0));
    assert!((came(&floods[2]) - 0.2).abs() < 0.01, "{:?}", floods[2]);
    // ten pages of 10,240 bytes over each of 1,000,000 connections a second
    let transfer = &floods[1]["transfer"];
    assert_eq!(
        (transfer["requests"].as_u64(), transfer["bytes"].as_u64()),
        (Some(10), Some(10_240))
    );
    assert_eq!(transfer["bits"].as_f64(), Some(1e6 * 10.0 * 10_240.0 * 8.0), "{transfer}");
    let pages = ["http-rate", "--simulate", "knee:3e5", "--requests", "4", "--object", "1000"];
    let (report, status) = json(&pages);
    let (rate, bits) = (&report["result"]["rate"], &report["result"]["bits"]);
    assert_eq!((status, rate.as_f64().unwrap() * 8000.0), (Some(0), bits.as_f64().unwrap()));
    assert!((1.15e6..1.22e6).contains(&rate.as_f64().unwrap()), "{rate}");
    let (report, status) = json(&["http-transfer", "--simulate", "knee:3e5"]);
    let sizes = report["result"].as_array().unwrap().iter().map(|one| one["bytes"].as_u64());
    assert_eq!((status, sizes.flatten().sum()), (Some(0), 64 + 1024 + 10_240 + 102_400));
    for wrong in [
        &["tcp-rate", "--simulate", "knee", "--connections", "5"][..],
        &["tcp-rate", "--simulate", "knee", "--requests", "5"],
        &["http-transfer", "--simulate", "knee", "--object", "5"],
        &["http-rate", "--simulate", "knee", "--throughput", "5"],
        &["tcp-capacity", "--simulate", "knee", "--size", "64"],
        &["tcp-rate", "--simulate", "knee", "--throughput", "5"],
    ] {
        assert_eq!(search(wrong).status.code(), Some(1), "{wrong:?}");
    }
}

#[test]
fn kinds_of_frames_are_searched_one_after_the_other() {
    let (report, status) = json(&["throughput", "--simulate", "knee:1e5", "--size", "all"]);
    let size = |one: &Value| one["setting"]["size"].as_u64().unwrap();
    let sizes: Vec<u64> = report.as_array().unwrap().iter().map(size).collect();
    assert_eq!((status, &sizes[..]), (Some(0), &[64, 128, 256, 512, 1024, 1280, 1518][..]));
    let missing = report[0]["on_a_virtual_link"]["partial"].to_string();
    assert!(missing.contains("section 12") && !missing.contains("9.1"), "{missing}");
    let (report, status) = json(&["throughput", "--simulate", "die:2", "--size", "64,128"]);
    assert_eq!((status, report[1]["complete"].as_bool()), (Some(1), Some(false)));
}

#[test]
fn flags_that_need_fwlabs_own_network_are_refused_by_name() {
    let wire = ["--client-if", "one", "--server-if", "other"];
    let agents = ["--client-agent", "one", "--server-agent", "other", "--key", "key"];
    let refused = |words: &[&[&str]], why: &str| {
        let output = search(&words.concat());
        assert_eq!(output.status.code(), Some(1), "{words:?}");
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(said.contains(why), "{said}");
    };
    refused(&[&["reset"], &wire], "fwlab cannot reset the device");
    refused(&[&["tcp-rate"], &wire], "use --system");
    refused(&[&["latency"], &wire, &agents], "clocks of two machines");
    refused(&[&["mlr"], &wire, &agents, &["--server-address", "::1"]], "--server-address");
    refused(&[&["mlr", "--simulate", "knee"], &agents], "--client-if");
    refused(&[&["mlr"], &agents], "--client-if");
    refused(&[&["tcp-rate"], &wire, &agents], "the routes of the agents' machines");
    refused(&[&["tcp-rate", "--system", "router"], &agents], "leave out --system");
    refused(&[&["tcp-rate", "--simulate", "knee"], &agents], "leave out --system");
    refused(&[&["tcp-illegal"], &agents], "--forbidden-port");
    let forbidden = ["--forbidden-port", "82"];
    refused(&[&["tcp-rate"], &agents, &forbidden], "is for tcp-illegal");
    let ports = ["--server-ports", "80-82"];
    refused(&[&["tcp-illegal"], &agents, &forbidden, &ports], "one of --server-ports");
    refused(&[&["mlr"], &wire, &agents, &ports], "benchmarking addresses");
    refused(&[&["mlr", "--simulate", "knee", "--networks", "256"]], "simulated device");
    for wrong in [&["mlr", "--system", "router"][..], &["mlr", "--simulate", "knee"]] {
        assert_eq!(search(&[wrong, &wire].concat()).status.code(), Some(2), "{wrong:?}");
    }
    for wrong in [&["tcp-rate", "--rules", "5"][..], &["tcp-rate", "--server-ports", "0"]] {
        assert_eq!(search(&[wrong, &agents].concat()).status.code(), Some(2), "{wrong:?}");
    }
    let alone = ["tcp-rate", "--system", "router", "--server-ports", "80"];
    assert_eq!(search(&alone).status.code(), Some(2));
}

#[test]
fn hop_by_hop_options_are_told_by_rate() {
    let (report, status) = json(&["hop-by-hop", "--simulate", "knee:3e6"]);
    assert_eq!((status, report["setting"]["extension"].as_str()), (Some(0), Some("hop-by-hop")));
    let shares: Vec<f64> = report["result"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|step| step["share"].as_f64())
        .collect();
    assert_eq!(shares, [0.01, 0.1, 0.5]);
}

#[test]
fn the_text_names_figure_and_standard() {
    let output = search(&["mlr", "--simulate", "knee:3e6"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.starts_with("simulated knee:3000000; no figure describes a real device\n"));
    assert!(text.contains("RFC 2544: conditional throughput 29"), "{text}");
    assert!(text.contains("conforms: no, the device is simulated\n"), "{text}");
    let output = search(&["mlr", "--simulate", "bump"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8(output.stderr).unwrap().contains("must be knee, slope or noise"));
}
