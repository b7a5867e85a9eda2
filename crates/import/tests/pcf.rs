//! Tests of the filter language of docs/reference/pcf.md: conversions, errors, and the effect of
//! its example.

use std::path::{Path, PathBuf};

use skipstep_import::{Imported, pcf};
use skipstep_pfconf::{Context, load};
use skipstep_scenario::host;

/// Returns the rules that `text` becomes, without comments and the first lines. Fails if pf.conf's
/// parser refuses them.
fn rules(text: &str) -> Vec<String> {
    let Imported { conf, warnings } = pcf::import(text, "test").unwrap_or_else(|messages| {
        panic!("{}", messages.iter().map(|m| m.explain() + "\n").collect::<String>())
    });
    assert_eq!(warnings, []);
    load(&conf, &Context::new(&host::standard()))
        .unwrap_or_else(|refused| panic!("{conf}\n{:?}", refused.diagnostics));
    let rules = conf.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    rules.skip(2).map(str::to_string).collect()
}

/// Returns the rules of a filter with these statements, applied on em0 incoming.
fn statements(text: &str) -> Vec<String> {
    rules(&format!("filter f {text} end apply f on em0 incoming;"))
}

/// Returns the messages about `text`.
fn refused(text: &str) -> Vec<String> {
    let messages = pcf::import(text, "test").expect_err("it should have been refused");
    messages.iter().map(|message| message.explain()).collect()
}

#[test]
fn each_test_has_an_equivalent() {
    for (statement, rule) in [
        ("fail;", "inet all"),
        ("ip_sa in (10.0.0.1) fail;", "inet from 10.0.0.1 to any"),
        ("ip_da in (10.0.0.0/8) fail;", "inet from any to 10.0.0.0/8"),
        ("ip_sa in (10.0.0.1..10.0.0.9) fail;", "inet from 10.0.0.1 - 10.0.0.9 to any"),
        ("ip_protocol in (17) fail;", "inet proto udp all"),
        ("ip_protocol in (47, 50..51) fail;", "inet proto { 47, 50, 51 } all"),
        ("tcp_dp in (23) fail;", "inet proto tcp from any to any port 23"),
        ("tcp_sp in (6000..6010) fail;", "inet proto tcp from any port 6000:6010 to any"),
        ("udp_dp in (53, 123) fail;", "inet proto udp from any to any port { 53, 123 }"),
        ("udp_sp in (7) fail;", "inet proto udp from any port 7 to any"),
        ("tcpflags/0x12 = 0x02 fail;", "inet proto tcp all flags S/SA"),
        (
            "tcpflags/18 = 2 tcp_dp in (20) fail;",
            "inet proto tcp from any to any port 20 flags S/SA",
        ),
        // Two tests of one field must both match.
        ("tcp_dp in (1..9) tcp_dp in (5..20) fail;", "inet proto tcp from any to any port 5:9"),
        ("tcpflags/2 = 2 tcpflags/16 = 0 fail;", "inet proto tcp all flags S/SA"),
    ] {
        assert_eq!(
            statements(statement),
            [format!("block drop in quick on em0 {rule}")],
            "{statement}"
        );
    }
}

#[test]
fn a_field_that_a_packet_does_not_have_is_0() {
    assert_eq!(
        statements("tcp_dp in (0..19, 22..65535) fail;"),
        [
            "match in on em0 inet all tag \"protocol:other\"",
            "match in on em0 inet proto { tcp, udp } all tag \"protocol:tcp-or-udp\"",
            "block drop in quick on em0 inet proto tcp from any to any port 20 <> 21",
            "block drop in quick on em0 inet proto udp all",
            "block drop in quick on em0 inet all tagged \"protocol:other\"",
        ]
    );
    assert_eq!(
        statements("ip_protocol in (1, 6) tcp_dp in (0..19) fail;"),
        [
            "block drop in quick on em0 inet proto tcp from any to any port 0:19",
            "block drop in quick on em0 inet proto icmp all",
        ]
    );
    assert_eq!(
        statements("ip_protocol in (6, 17) tcpflags/0x10 = 0 fail;"),
        [
            "block drop in quick on em0 inet proto tcp all flags /A",
            "block drop in quick on em0 inet proto udp all",
        ]
    );
}

#[test]
fn succeed_ends_its_filter_and_no_other() {
    let text = "filter a ip_protocol in (1) succeed; ip_sa in (10.0.0.1) fail; end
                filter b ip_da in (10.0.0.2) fail; end
                apply a on em0 incoming; apply b on em1 outgoing;";
    assert_eq!(
        rules(text),
        [
            "match in on em0 inet proto icmp all tag \"a:succeeded\"",
            "block drop in quick on em0 inet from 10.0.0.1 to any ! tagged \"a:succeeded\"",
            "block drop out quick on em1 inet from any to 10.0.0.2",
        ]
    );
    assert_eq!(statements("succeed;"), [""; 0], "nothing follows that it could end");
}

#[test]
fn each_log_host_has_its_own_log() {
    assert_eq!(
        statements("log 10.0.0.1; tcpflags/2 = 2 log 10.0.0.2; log 10.0.0.1;"),
        [
            "match in log (to pflog1) on em0 inet all",
            "match in log (to pflog2) on em0 inet proto tcp all flags S/S",
            "match in log (to pflog1) on em0 inet all",
        ]
    );
}

#[test]
fn applications_say_where() {
    let filter = "filter f ip_sa in (10.0.0.0/24, 10.9.0.1) fail; end\n";
    let at = |on: &str| rules(&format!("{filter} apply f on {on};"));
    let list = "{ 10.0.0.0/24, 10.9.0.1 }";
    assert_eq!(
        at("em1 outgoing"),
        [format!("block drop out quick on em1 inet from {list} to any")]
    );
    assert_eq!(at("first"), [format!("block drop in quick inet from {list} to any")]);
    assert_eq!(
        at("10.0.0.0/255.255.255.128 to 10.1.0.0/16"),
        ["block drop in quick inet from 10.0.0.0/25 to 10.1.0.0/16"]
    );
    assert_eq!(at("10.2.0.0/16 to 10.1.0.0/16"), [""; 0], "no source is in both");
}

#[test]
fn applications_on_first_come_first() {
    let text =
        "filter a fail; end filter b log 10.0.0.1; end apply a on em0 incoming; apply b on first;";
    assert!(rules(text)[0].starts_with("match in log"), "{:?}", rules(text));
}

#[test]
fn rules_without_equivalent_are_refused_with_their_line() {
    let fragments = "test:2: this test of ipfrag has no equivalent\n    ipfrag in (1..100) fail; end\n    ^^^^^^";
    let message = &refused("filter f\nipfrag in (1..100) fail; end\napply f on first;")[0];
    assert!(message.starts_with(fragments), "{message}");
    for statement in
        ["ipfrag in (0) fail;", "ipfrag in (1..8) succeed;", "ip_protocol in (0) fail;"]
    {
        let text = format!("filter f\n{statement} fail; end apply f on first;");
        let message = &refused(&text)[0];
        assert!(message.starts_with("test:2: "), "{message}");
        assert!(message.contains("has no equivalent"), "{message}");
    }
}

#[test]
fn all_errors_are_reported_with_their_positions() {
    let text = "filter f\n\ttcp_dp (80) fail;\n\ttcp_dp in (90000) fail;\n\tip_sa in (10.0.0.9..10.0.0.1) fail;\n\
                end\nfilter f end\nfilter guests ip_sa in (10.0.0.0/255.0.255.0) fail; end\napply guest on first;\n\
                apply f on em0 sideways;\nbogus\n";
    let messages = refused(text);
    let first: Vec<&str> = messages.iter().filter_map(|message| message.lines().next()).collect();
    assert_eq!(
        first,
        [
            "test:2: `in` expected",
            "test:3: the number is larger than 65535",
            "test:4: the range ends before it begins",
            "test:7: the mask has gaps",
            "test:9: `incoming` or `outgoing` expected",
            "test:10: syntax error",
            "test:6: filter 'f' is already defined in line 1",
            "test:8: filter 'guest' is not defined",
            "test:1: warning: filter 'f' is not applied",
            "test:6: warning: filter 'f' is not applied",
            "test:7: warning: filter 'guests' is not applied",
        ]
    );
    assert!(messages[7].ends_with("    help: did you mean `guests`?"), "{}", messages[7]);
}

#[test]
fn hostile_texts_end_quickly() {
    let list: String = (0..2000).map(|n| format!("10.{}.{}.1,", n / 250, n % 250)).collect();
    let ports: String = (0..2000).map(|n| format!("{},", n * 2 + 1)).collect();
    let many = format!(
        "filter f ip_sa in ({list} 10.0.0.1) ip_da in ({list} 10.0.0.1) tcp_dp in ({ports} 1) fail; end\n\
         apply f on first;"
    );
    assert!(refused(&many)[0].contains("the lists make more than 1000000 rules"));
    let long = format!("filter f {} end", "bogus ".repeat(1_000_000));
    assert!(refused(&long)[0].starts_with("test:1: test or action expected"));
    assert!(refused(&";".repeat(1_000_000)).len() <= 100);
    // A long line is not shown below its message.
    assert_eq!(refused(&";".repeat(401))[0].lines().count(), 2);
    assert_eq!(refused(&";".repeat(400))[0].lines().count(), 4);
    for text in [
        "",
        "filter",
        "filter f",
        "filter f tcp_dp in (",
        "apply",
        "apply f on 10.0.0.0/",
        "\0",
        "é..",
    ] {
        let _ = pcf::import(text, "test");
    }
}

/// Compares the example's conversion with tests/scenarios/pcf.scn, which also has packets for each
/// of the example's comments. `UPDATE=1` writes the conversion to the file.
#[test]
fn the_scenario_is_about_the_example() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let read = |path: PathBuf| std::fs::read_to_string(path).expect("it can be read");
    let imported = pcf::import(&read(root.join("examples/ftp-server.pcf")), "ftp-server.pcf");
    let path = root.join("tests/scenarios/pcf.scn");
    let scenario = read(path.clone());
    let (before, rest) = scenario.split_once("rules {\n").expect("it has rules");
    let (_, after) = rest.split_once("\n}\n").expect("the rules end");
    let conf = imported.expect("the example converts").conf;
    let expected = format!("{before}rules {{\n{}\n}}\n{after}", conf.trim_end());
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, &expected).expect("it can be written");
    } else {
        assert_eq!(scenario, expected);
    }
}

#[test]
fn files_are_only_so_large() {
    let refused = skipstep_import::pcf::import(&" ".repeat(17 << 20), "f").unwrap_err();
    assert_eq!(refused[0].to_string(), "f:1: file is too large: 17825792 bytes, at most 16777216");
}
