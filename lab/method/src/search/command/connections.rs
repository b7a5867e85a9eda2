//! The searches of RFC 3511: runs the search of a test, and prints its result.

use std::fmt::Write as _;

use fwlab_load::connections::datagrams::Datagrams;
use fwlab_load::connections::flood::Flood;
use fwlab_load::connections::{Pages, Setup};
use serde_json::json;

use super::search::{Found, Search};
use crate::search::Failure;
use crate::search::tcp::{self, Transfer};
use crate::search::test::{ConnectionTest, ConnectionTestAtRate};

/// The rate for trials whose limit is still unknown, as a share of the client's rate over a cable.
const CAREFUL: f64 = 0.25;

/// The default of `--object` for pages beside a flood.
const LARGE: u32 = 10_240;

/// Runs a test that needs no known setup rate.
pub(super) fn search(search: &mut Search, test: ConnectionTest) -> Found {
    match test {
        ConnectionTest::TcpCapacity => capacity(search),
        ConnectionTest::TcpRate => {
            let found = setup_rate(search)?;
            Ok((json!(found), tcp::conformance(search.setting, &[])))
        }
        ConnectionTest::TcpTearDown => tear_down(search),
        ConnectionTest::HttpTransfer => {
            let found = pages(search, &tcp::OBJECTS)?;
            Ok((json!(found), tcp::conformance(search.setting, &[])))
        }
        ConnectionTest::HttpRate => {
            let found = pages(search, &[search.arguments.pages().bytes])?;
            Ok((json!(found.first()), tcp::conformance(search.setting, &[])))
        }
    }
}

/// Runs a test at the setup rate, which is searched for first if it is not given.
pub(super) fn at_rate(search: &mut Search, test: ConnectionTestAtRate) -> Found {
    let given = search.arguments.throughput;
    let rate = match given {
        Some(rate) => rate,
        None => setup_rate(search)?.found.rate,
    };
    if rate == 0.0 {
        return Err(Failure::NoThroughput);
    }
    let given = given.map(|_| "the rate of the test was given, and not searched for");
    match test {
        ConnectionTestAtRate::Flood => flood(search, rate, given),
        ConnectionTestAtRate::Illegal => illegal(search, rate, given),
        ConnectionTestAtRate::Fragments => fragments(search, rate, given),
    }
}

/// Returns the rate for trials whose limit is still unknown.
fn careful_rate(search: &Search) -> f64 {
    search.arguments.throughput.unwrap_or(search.setting.most * CAREFUL)
}

fn capacity(search: &mut Search) -> Found {
    let rate = careful_rate(search);
    let found = tcp::capacity(search.runner, search.arguments.connections(), rate)?;
    let limit = match found.refused {
        None => "limit of the search (--connections)".to_owned(),
        Some(refused) => format!("of {refused} connections, some failed"),
    };
    let _ = writeln!(
        search.text,
        "{} simultaneous connections, attempted at {rate:.0} a second; {limit}",
        found.connections
    );
    print_setup(&found.setup, &mut search.text);
    let limited = found.refused.is_none().then_some("the search ended before the device's limit");
    let conformance = tcp::conformance(search.setting, &[limited]);
    Ok((json!(found), conformance))
}

fn tear_down(search: &mut Search) -> Found {
    let (rate, count) = (careful_rate(search), search.arguments.connections());
    let found = tcp::tear_down(search.runner, search.setting, count, rate)?;
    let _ = writeln!(
        search.text,
        "{:.0} connections a second torn down, of at most {:.0} a second; {} connections",
        found.rate, search.setting.most, found.connections
    );
    print_times("closed by both sides", &found.times, &mut search.text);
    Ok((json!(found), tcp::conformance(search.setting, &[])))
}

fn setup_rate(search: &mut Search) -> Result<tcp::SetupRate, Failure> {
    let plan = search.plan();
    let found = tcp::setup_rate(search.runner, search.setting, &plan)?;
    let _ = writeln!(
        search.text,
        "{:.0} connections a second, of at most {:.0} attempts a second",
        found.found.rate, search.setting.most
    );
    print_setup(&found.setup, &mut search.text);
    Ok(found)
}

/// Searches for the highest rate of pages of each size in bytes.
fn pages(search: &mut Search, sizes: &[u32]) -> Result<Vec<tcp::Transactions>, Failure> {
    let (one, plan) = (search.arguments.pages(), search.plan());
    let mut all = Vec::new();
    for &bytes in sizes {
        let pages = Pages { bytes, ..one };
        let found = tcp::transactions(search.runner, search.setting, &plan, pages)?;
        let _ = writeln!(
            search.text,
            "pages of {bytes} bytes: {:.0} a second, {:.3} Mbit/s, {} over each connection; {:.0} \
             connections a second, of at most {:.0} attempts a second",
            found.rate,
            found.bits / 1e6,
            one.requests,
            found.connections.rate,
            found.connections.most
        );
        print_times("fetched", &found.times, &mut search.text);
        all.push(found);
    }
    Ok(all)
}

fn flood(search: &mut Search, rate: f64, given: Option<&str>) -> Found {
    let arguments = search.arguments;
    let pages = Pages { bytes: arguments.object.unwrap_or(LARGE), ..arguments.pages() };
    let transfers = match arguments.throughput {
        // the given rate, unless client and server cannot manage it
        Some(rate) => rate.min(search.runner.most(pages, rate)?),
        None => {
            let plan = search.plan();
            let found = tcp::transactions(search.runner, search.setting, &plan, pages)?;
            found.connections.rate
        }
    };
    let rates = tcp::Rates { single: rate, transfers: (transfers, pages) };
    let found = tcp::flood(search.runner, &rates, arguments.seconds)?;
    for one in &found {
        let Flood { sent, received } = one.flood;
        let beside = match sent {
            0 => "without a flood".to_owned(),
            _ => format!(
                "beside {sent} SYNs from unused addresses, of which {:.2} % reached the server",
                share(received, sent)
            ),
        };
        print_served((one.served, one.attempted), &beside, &mut search.text);
        let Transfer { attempted, served, bits, .. } = one.transfer;
        let _ = writeln!(
            search.text,
            "  and {:.3} Mbit/s in pages of {} bytes; {:.2} % of {attempted} connections got all \
             their {}",
            bits / 1e6,
            pages.bytes,
            share(served, attempted),
            pages.requests
        );
    }
    let flood = Some("the flood comes from the clients' host, over its link (section 5.5)");
    Ok((json!(found), tcp::conformance(search.setting, &[given, flood])))
}

fn illegal(search: &mut Search, rate: f64, given: Option<&str>) -> Found {
    let found = tcp::illegal(search.runner, rate, search.arguments.seconds)?;
    for one in &found {
        let _ = writeln!(
            search.text,
            "{:>3} % forbidden: {:.2} % of {} allowed connections were served, {:.2} % of {} \
             forbidden ones got through",
            one.share,
            share(one.served, one.attempted),
            one.attempted,
            share(one.leaked, one.forbidden),
            one.forbidden
        );
    }
    Ok((json!(found), tcp::conformance(search.setting, &[given])))
}

fn fragments(search: &mut Search, rate: f64, given: Option<&str>) -> Found {
    let found = tcp::fragments(search.runner, rate, search.arguments.seconds)?;
    for one in &found {
        let Datagrams { sent, received } = one.datagrams;
        let beside = match sent {
            0 => "without fragments".to_owned(),
            _ => format!(
                "beside {sent} datagrams in fragments, of which {:.2} % arrived",
                share(received, sent)
            ),
        };
        print_served((one.served, one.attempted), &beside, &mut search.text);
    }
    let fragments = Some(
        "the load of fragments is no share of the link's speed, and there is one MTU (section 5.9)",
    );
    Ok((json!(found), tcp::conformance(search.setting, &[given, fragments])))
}

/// Returns a share in percent.
fn share(part: u64, of: u64) -> f64 {
    100.0 * part as f64 / of.max(1) as f64
}

fn print_served((served, attempted): (u64, u64), beside: &str, text: &mut String) {
    let share = share(served, attempted);
    let _ = writeln!(text, "{share:.2} % of {attempted} connections were served {beside}");
}

fn print_setup(setup: &Setup, text: &mut String) {
    print_times("made", setup, text);
}

fn print_times(what: &str, setup: &Setup, text: &mut String) {
    let Setup { least, mean, most, total } = *setup;
    if total > 0 {
        let _ = writeln!(
            text,
            "{what} in {:.1} µs on average, minimum {:.1}, maximum {:.1}, total {:.3} ms",
            mean / 1e3,
            least as f64 / 1e3,
            most as f64 / 1e3,
            total as f64 / 1e6
        );
    }
}
