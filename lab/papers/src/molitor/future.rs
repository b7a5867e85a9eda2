//! The future work that Molitor names in section 11: many clients and servers, both directions,
//! HTTP. Workloads derived from real traffic are part of `fwlab workload`.

use fwlab_load::sockets::Talk;
use fwlab_net::family::Family;
use fwlab_net::traffic::{ServerAddress, TrafficKind};
use fwlab_net::transport::Transport::Tcp;
use fwlab_results::{Finding, Run, Table};

use super::{SMALL, titled};
use crate::series::{series, talk};
use crate::study::{PlannedPoint, Study, Work};
use crate::text::number;
use crate::verdict::{Check, Range, SampleKey, change, finding, middle, ratio};

/// Number of clients and of servers in the tests with many.
const MANY: usize = 8;

const FTP: &str = "Future: FTP sessions";
const FTP_MANY: &str = "Future: FTP sessions, 8 clients, 8 servers";
const HTTP: &str = "Future: pages by HTTP";
const HTTP_MANY: &str = "Future: pages by HTTP, 8 clients, 8 servers";
const SEND: &str = "Future: bytes to the server";
const BOTH: &str = "Future: bytes both ways at once";

/// Filters that let more traffic through than his rules.
pub(super) const FILTERS: [&str; 2] = ["skipstep-states", "nft-conntrack"];

/// Number of rules of these filters.
pub(super) const RULES: u32 = 100;

/// Plans the tests for filters, or for the proxy. The proxy supports FTP only, and one server.
pub(super) fn cells(study: &Study, by_filter: bool) -> Vec<PlannedPoint> {
    let all = [
        (FTP, TrafficKind::Ftp, 1),
        (FTP_MANY, TrafficKind::Ftp, MANY),
        (HTTP, TrafficKind::Http, 1),
        (HTTP_MANY, TrafficKind::Http, MANY),
        (SEND, TrafficKind::Send, 1),
        (BOTH, TrafficKind::Both, 1),
    ];
    let cell = |(title, kind, clients): (&str, TrafficKind, usize)| {
        let one = talk(kind, Tcp, Family::V4, SMALL as usize, study.seconds);
        let way =
            if by_filter && clients > 1 { ServerAddress::Each } else { ServerAddress::Straight };
        let talk = Talk { clients, way, active: by_filter, ..one };
        let series = series(titled(title, by_filter), &talk, None);
        PlannedPoint { series, at: None, work: Work::Talk(talk) }
    };
    all.into_iter()
        .filter(|(_, kind, _)| by_filter || *kind == TrafficKind::Ftp)
        .map(cell)
        .collect()
}

/// Makes the table of these tests.
pub(super) fn table(run: &Run) -> Option<Table> {
    let systems = ["null", "router", FILTERS[0], FILTERS[1], "ftp-gw"];
    let value = |title: &str, system: &str| {
        let title = titled(title, system != "ftp-gw");
        middle(run, &SampleKey { title: &title, at: None, system })
    };
    let row = |(title, unit): &(&str, &str)| {
        let mut row = vec![format!("{}, {unit}", title.trim_start_matches("Future: "))];
        let cells = systems.map(|system| value(title, system).map_or("-".to_owned(), number));
        row.extend(cells);
        row
    };
    let tests = [
        (FTP, "1/s"),
        (FTP_MANY, "1/s"),
        (HTTP, "1/s"),
        (HTTP_MANY, "1/s"),
        (SEND, "Mbit/s"),
        (BOTH, "Mbit/s"),
    ];
    let mut columns = vec!["Test".to_owned()];
    columns.extend(systems.map(str::to_owned));
    value(FTP, "null").map(|_| Table {
        title: "His future directions: clients of one process, and one server for them by ftp-gw"
            .to_owned(),
        columns,
        names: 1,
        rows: tests.iter().map(row).collect(),
    })
}

/// Checks his expectations.
pub(super) fn findings(run: &Run) -> Vec<Finding> {
    let many = |system: &str, range| {
        let titles = [FTP_MANY, FTP].map(|title| titled(title, system != "ftp-gw"));
        let key = |title| SampleKey { title, at: None, system };
        let ratio = ratio(run, &key(&titles[0]), &key(&titles[1]));
        Check {
            what: format!("sessions of 8 clients by sessions of one client, {system}"),
            ratio,
            range,
        }
    };
    let like_ftp = |system: &str| {
        let key = |title| SampleKey { title, at: None, system };
        let ratio = change(run, &key(FTP), &key(HTTP));
        Check {
            what: format!("relative HTTP rate with {system} by its relative FTP rate"),
            ratio,
            range: Range::EQUAL,
        }
    };
    if !run.series.iter().any(|series| series.title == FTP) {
        return Vec::new();
    }
    vec![
        finding(
            "expected: more clients and servers make more sessions, but not through a proxy",
            "“the proxy firewall will probably not perform much better”, others with “marked improvement”",
            vec![
                many(FILTERS[0], Range::MORE),
                many(FILTERS[1], Range::MORE),
                many("ftp-gw", Range::EQUAL),
            ],
        ),
        finding(
            "expected: HTTP suffers as FTP sessions do",
            "“probably the results would be similar to those for FTP”",
            FILTERS.map(like_ftp).into(),
        ),
    ]
}
