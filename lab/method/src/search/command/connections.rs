//! The searches of RFC 3511: runs the search of a test, and prints its result.

use std::fmt::Write as _;

use fwlab_load::connections::datagrams::Datagrams;
use fwlab_load::connections::flood::Flood;
use fwlab_load::connections::{Pages, Setup};
use serde_json::{Value, json};

use super::Arguments;
use crate::search::tcp::Transfer;
use crate::search::test::Test;
use crate::search::{Conformance, Failure, Setting, TrialRunner, tcp, throughput};

/// The rate for trials whose limit is still unknown, as a share of the client's rate over a cable.
const CAREFUL: f64 = 0.25;

/// The default of `--object` for pages beside a flood.
const LARGE: u32 = 10_240;

/// Runs the search of the test, and appends its result to `text`.
pub(super) fn search(
    runner: &mut TrialRunner,
    setting: &Setting,
    arguments: &Arguments,
    text: &mut String,
) -> Result<(Value, Conformance), Failure> {
    let seconds = arguments.seconds;
    let careful = arguments.throughput.unwrap_or(setting.most * CAREFUL);
    if arguments.test == Test::TcpTearDown {
        let found = tcp::tear_down(runner, setting, arguments.connections(), careful)?;
        let _ = writeln!(
            text,
            "{:.0} connections a second torn down, of at most {:.0} a second; {} connections",
            found.rate, setting.most, found.connections
        );
        print_times("closed by both sides", &found.times, text);
        return Ok((json!(found), tcp::conformance(setting, &[])));
    }
    if arguments.test == Test::TcpCapacity {
        let rate = careful;
        let found = tcp::capacity(runner, arguments.connections(), rate)?;
        let limit = match found.refused {
            None => "limit of the search (--connections)".to_owned(),
            Some(refused) => format!("of {refused} connections, some failed"),
        };
        let _ = writeln!(
            text,
            "{} simultaneous connections, attempted at {rate:.0} a second; {limit}",
            found.connections
        );
        print_setup(&found.setup, text);
        let limited =
            found.refused.is_none().then_some("the search ended before the device's limit");
        let conformance = tcp::conformance(setting, &[limited]);
        return Ok((json!(found), conformance));
    }
    let plan = throughput::Plan { last: seconds, search: seconds.min(10.0), ..Default::default() };
    if matches!(arguments.test, Test::HttpTransfer | Test::HttpRate) {
        return pages(runner, setting, arguments, &plan, text);
    }
    let rate = match (arguments.test, arguments.throughput) {
        (Test::TcpIllegal | Test::TcpFragments | Test::TcpFlood, Some(rate)) => rate,
        _ => {
            let found = tcp::setup_rate(runner, setting, &plan)?;
            let _ = writeln!(
                text,
                "{:.0} connections a second, of at most {:.0} attempts a second",
                found.found.rate, setting.most
            );
            print_setup(&found.setup, text);
            if arguments.test == Test::TcpRate {
                return Ok((json!(found), tcp::conformance(setting, &[])));
            }
            found.found.rate
        }
    };
    if rate == 0.0 {
        return Err(Failure::NoThroughput);
    }
    let given =
        arguments.throughput.map(|_| "the rate of the test was given, and not searched for");
    if arguments.test == Test::TcpFragments {
        let found = tcp::fragments(runner, rate, seconds)?;
        for one in &found {
            let Datagrams { sent, received } = one.datagrams;
            let beside = match sent {
                0 => "without fragments".to_owned(),
                _ => format!(
                    "beside {sent} datagrams in fragments, of which {:.2} % arrived",
                    share(received, sent)
                ),
            };
            print_served((one.served, one.attempted), &beside, text);
        }
        let fragments = Some(
            "the load of fragments is no share of the link's speed, and there is one MTU (section \
             5.9)",
        );
        return Ok((json!(found), tcp::conformance(setting, &[given, fragments])));
    }
    if arguments.test == Test::TcpFlood {
        let pages = Pages { bytes: arguments.object.unwrap_or(LARGE), ..arguments.pages() };
        let transfers = match arguments.throughput {
            // the given rate, unless client and server cannot manage it
            Some(rate) => rate.min(runner.most(pages, rate)?),
            None => tcp::transactions(runner, setting, &plan, pages)?.connections.rate,
        };
        let rates = tcp::Rates { single: rate, transfers: (transfers, pages) };
        let found = tcp::flood(runner, &rates, seconds)?;
        for one in &found {
            let Flood { sent, received } = one.flood;
            let beside = match sent {
                0 => "without a flood".to_owned(),
                _ => format!(
                    "beside {sent} SYNs from unused addresses, of which {:.2} % reached the server",
                    share(received, sent)
                ),
            };
            print_served((one.served, one.attempted), &beside, text);
            let Transfer { attempted, served, bits, .. } = one.transfer;
            let _ = writeln!(
                text,
                "  and {:.3} Mbit/s in pages of {} bytes; {:.2} % of {attempted} connections got \
                 all their {}",
                bits / 1e6,
                pages.bytes,
                share(served, attempted),
                pages.requests
            );
        }
        let flood = Some("the flood comes from the clients' host, over its link (section 5.5)");
        return Ok((json!(found), tcp::conformance(setting, &[given, flood])));
    }
    let found = tcp::illegal(runner, rate, seconds)?;
    for one in &found {
        let _ = writeln!(
            text,
            "{:>3} % forbidden: {:.2} % of {} allowed connections were served, {:.2} % of {} \
             forbidden ones got through",
            one.share,
            share(one.served, one.attempted),
            one.attempted,
            share(one.leaked, one.forbidden),
            one.forbidden
        );
    }
    Ok((json!(found), tcp::conformance(setting, &[given])))
}

/// Searches for the highest rate of pages, of one size or of several.
fn pages(
    runner: &mut TrialRunner,
    setting: &Setting,
    arguments: &Arguments,
    plan: &throughput::Plan,
    text: &mut String,
) -> Result<(Value, Conformance), Failure> {
    let one = arguments.pages();
    let sizes = match arguments.test {
        Test::HttpTransfer => tcp::OBJECTS.to_vec(),
        _ => vec![one.bytes],
    };
    let mut all = Vec::new();
    for bytes in sizes {
        let found = tcp::transactions(runner, setting, plan, Pages { bytes, ..one })?;
        let _ = writeln!(
            text,
            "pages of {bytes} bytes: {:.0} a second, {:.3} Mbit/s, {} over each connection; {:.0} \
             connections a second, of at most {:.0} attempts a second",
            found.rate,
            found.bits / 1e6,
            one.requests,
            found.connections.rate,
            found.connections.most
        );
        print_times("fetched", &found.times, text);
        all.push(found);
    }
    let found = match arguments.test {
        Test::HttpTransfer => json!(all),
        _ => json!(all.first()),
    };
    Ok((found, tcp::conformance(setting, &[])))
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
