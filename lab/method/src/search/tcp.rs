//! The tests of RFC 3511 with TCP connections: the most at once (5.2), setup rate (5.3), teardown
//! rate (5.4), and connections beside a flood (5.5). The other tests are of HTTP pages (5.6, 5.7),
//! forbidden connections (5.8), and fragments beside connections (5.9). Clients fetch a page over
//! each connection, because a connection that cannot transfer data does not count.

use fwlab_load::connections::datagrams::Datagrams;
use fwlab_load::connections::flood::Flood;
use fwlab_load::connections::{Pages, Setup};
use serde::Serialize;

use super::{
    Besides, Conformance, Connections, Failure, Order, Phase, Setting, Trial, TrialRunner,
    throughput,
};

/// The resolution of a search, as a share of the highest value.
const RESOLUTION: f64 = 0.005;

/// The forbidden connections of a hundred, trial by trial.
const SHARES: [u32; 4] = [0, 10, 50, 90];

/// Fragmented datagrams for each connection, trial by trial.
const DATAGRAMS: [f64; 4] = [0.0, 0.1, 1.0, 10.0];

/// SYNs of a flood for each connection, trial by trial.
const FLOODS: [f64; 4] = [0.0, 1.0, 10.0, 50.0];

/// Bytes of the pages of the transfer test, search by search.
pub const OBJECTS: [u32; 4] = [64, 1024, 10_240, 102_400];

/// The most connections at once.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Capacity {
    /// The highest number of open connections at which each got its page.
    pub connections: u64,
    /// The lowest number at which not all did. None if the highest tried number is the limit.
    pub refused: Option<u64>,
    /// Attempts a second.
    pub rate: f64,
    /// The setup times of the connections, when all were made.
    pub setup: Setup,
}

/// Searches by bisection for the most connections at once, up to `most`, with `rate` attempts a
/// second. A number that failed is tried a second time.
///
/// # Errors
/// Fails if a trial fails, or if no connection was made at all.
pub fn capacity(runner: &mut TrialRunner, most: u64, rate: f64) -> Result<Capacity, Failure> {
    let step = ((most as f64 * RESOLUTION) as u64).max(1);
    let (mut whole, mut refused, mut setup) = (0, None, Setup::default());
    let mut any = false;
    loop {
        let count = match refused {
            None => most,
            Some(refused) if refused - whole > step => whole + (refused - whole) / 2,
            Some(_) => break,
        };
        let mut trial = hold(runner, count, rate)?;
        if trial.received < count {
            any |= trial.received > 0;
            trial = hold(runner, count, rate)?;
        }
        any |= trial.received > 0;
        if trial.received < count {
            refused = Some(count);
            continue;
        }
        whole = count;
        setup = trial.connections.unwrap_or_default().setup;
        if refused.is_none() {
            break;
        }
    }
    if !any {
        return Err(Failure::NoConnection);
    }
    Ok(Capacity { connections: whole, refused, rate, setup })
}

/// Does a trial with `count` connections at once.
fn hold(runner: &mut TrialRunner, count: u64, rate: f64) -> Result<Trial, Failure> {
    let phases = [Phase { rate, seconds: count as f64 / rate }];
    Ok(runner.run(&Order { phases: &phases, besides: Besides::Hold })?.1)
}

/// The highest rate of connection setup.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SetupRate {
    /// The highest rate at which every attempt got its page.
    #[serde(flatten)]
    pub found: throughput::Throughput,
    /// The setup times at that rate.
    pub setup: Setup,
}

/// Searches for the rate as for a throughput. Makes connections at that rate once more to measure
/// their setup times.
///
/// # Errors
/// Fails if a trial fails, or if no connection was made at all.
pub fn setup_rate(
    runner: &mut TrialRunner,
    setting: &Setting,
    plan: &throughput::Plan,
) -> Result<SetupRate, Failure> {
    let found = throughput::search(runner, setting, plan).map_err(|failure| match failure {
        Failure::Nothing(_) => Failure::NoConnection,
        other => other,
    })?;
    let mut setup = Setup::default();
    if found.rate > 0.0 {
        let (_, trial) = runner.steady(found.rate, plan.last)?;
        setup = trial.connections.unwrap_or_default().setup;
    }
    Ok(SetupRate { found, setup })
}

/// The highest rate of connection teardown.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TearDown {
    /// The highest rate a second at which both sides closed each connection.
    pub rate: f64,
    /// The lowest rate at which some were not closed. None if the highest tried rate is the limit.
    pub too_fast: Option<f64>,
    /// Number of connections of a trial.
    pub connections: u64,
    /// The teardown times at `rate`.
    pub times: Setup,
}

/// Searches by bisection for the highest rate at which clients can close connections. Each trial
/// makes `connections` at `careful` a second first. A rate that failed is tried a second time.
///
/// # Errors
/// Fails if a trial fails, or if no connection was closed at any rate.
pub fn tear_down(
    runner: &mut TrialRunner,
    setting: &Setting,
    connections: u64,
    careful: f64,
) -> Result<TearDown, Failure> {
    let step = setting.most * RESOLUTION;
    let (mut whole, mut too_fast, mut times) = (0.0, None, Setup::default());
    loop {
        let rate = match too_fast {
            None => setting.most,
            Some(fast) if fast - whole > step => whole + (fast - whole) / 2.0,
            Some(_) => break,
        };
        let phases = [Phase { rate, seconds: connections as f64 / rate }];
        let order = Order { phases: &phases, besides: Besides::TearDown(careful) };
        let mut trial = runner.run(&order)?.1;
        if trial.received < connections {
            trial = runner.run(&order)?.1;
        }
        if trial.received < connections {
            too_fast = Some(rate);
            continue;
        }
        (whole, times) = (rate, trial.connections.unwrap_or_default().setup);
        if too_fast.is_none() {
            break;
        }
    }
    if runner.records.iter().all(|record| record.received == 0) {
        return Err(Failure::NoConnection);
    }
    Ok(TearDown { rate: whole, too_fast, connections, times })
}

/// The result of a trial with forbidden connections.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Illegal {
    /// The forbidden attempts of a hundred.
    pub share: u32,
    /// Number of allowed attempts.
    pub attempted: u64,
    /// Number of allowed attempts that got their page.
    pub served: u64,
    /// Number of forbidden attempts.
    pub forbidden: u64,
    /// Number of forbidden attempts that became connections.
    pub leaked: u64,
}

/// Attempts connections at a rate, with a growing share of forbidden ones.
///
/// # Errors
/// Fails if a trial fails.
pub fn illegal(runner: &mut TrialRunner, rate: f64, seconds: f64) -> Result<Vec<Illegal>, Failure> {
    let with = |share: u32| {
        let phases = [Phase { rate, seconds }];
        let (_, trial) =
            runner.run(&Order { phases: &phases, besides: Besides::Forbidden(share) })?;
        let Connections { forbidden, leaked, .. } = trial.connections.unwrap_or_default();
        let (attempted, served) = (trial.sent, trial.received);
        Ok(Illegal { share, attempted, served, forbidden, leaked })
    };
    SHARES.into_iter().map(with).collect()
}

/// The result of a trial with fragmented datagrams beside connections.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Fragmented {
    /// Attempts to connect.
    pub attempted: u64,
    /// Attempts that got their page.
    pub served: u64,
    /// The datagrams.
    #[serde(flatten)]
    pub datagrams: Datagrams,
    /// The setup times of the connections.
    pub setup: Setup,
}

/// Attempts connections at a rate, with a growing number of fragmented datagrams beside them.
///
/// # Errors
/// Fails if a trial fails.
pub fn fragments(
    runner: &mut TrialRunner,
    rate: f64,
    seconds: f64,
) -> Result<Vec<Fragmented>, Failure> {
    let beside = |share: f64| {
        let phases = [Phase { rate, seconds }];
        let besides = Besides::Fragments(rate * share);
        let (_, trial) = runner.run(&Order { phases: &phases, besides })?;
        let Connections { datagrams, setup, .. } = trial.connections.unwrap_or_default();
        Ok(Fragmented { attempted: trial.sent, served: trial.received, datagrams, setup })
    };
    DATAGRAMS.into_iter().map(beside).collect()
}

/// The result of a trial with a flood of SYNs beside connections.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Flooded {
    /// Attempts to connect.
    pub attempted: u64,
    /// Attempts that got their page.
    pub served: u64,
    /// The flood.
    #[serde(flatten)]
    pub flood: Flood,
    /// The setup times of the connections.
    pub setup: Setup,
    /// The pages that connections fetch beside a flood of the same rate.
    pub transfer: Transfer,
}

/// Pages fetched over HTTP beside a flood.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Transfer {
    /// The pages of each connection.
    #[serde(flatten)]
    pub pages: Pages,
    /// Attempts to connect.
    pub attempted: u64,
    /// Attempts that got all their pages.
    pub served: u64,
    /// Bits of pages a second, over all connections.
    pub bits: f64,
    /// The flood.
    #[serde(flatten)]
    pub flood: Flood,
}

/// Rates of connections beside a flood, in connections a second.
pub struct Rates {
    /// Connections that fetch one page.
    pub single: f64,
    /// Connections that fetch these pages.
    pub transfers: (f64, Pages),
}

/// Attempts connections beside a growing flood: first with one page each, then with more.
///
/// # Errors
/// Fails if a trial fails.
pub fn flood(
    runner: &mut TrialRunner,
    rates: &Rates,
    seconds: f64,
) -> Result<Vec<Flooded>, Failure> {
    let mut beside = |syns: f64, rate: f64, pages: Pages| {
        let besides = Besides::Flood(syns, pages);
        let (_, trial) = runner.run(&Order { phases: &[Phase { rate, seconds }], besides })?;
        let known = trial.connections.unwrap_or_default();
        Ok((trial.sent, trial.received, known))
    };
    let mut all = Vec::new();
    for share in FLOODS {
        let syns = rates.single * share;
        let (attempted, served, known) = beside(syns, rates.single, Pages::ONE)?;
        let (rate, pages) = rates.transfers;
        let (begun, whole, fetched) = beside(syns, rate, pages)?;
        let transfer = Transfer {
            pages,
            attempted: begun,
            served: whole,
            bits: (fetched.pages * u64::from(pages.bytes) * 8) as f64 / seconds,
            flood: fetched.flood,
        };
        let Connections { flood, setup, .. } = known;
        all.push(Flooded { attempted, served, flood, setup, transfer });
    }
    Ok(all)
}

/// The highest rate of pages.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Transactions {
    /// The pages of each connection.
    #[serde(flatten)]
    pub pages: Pages,
    /// Pages a second, at the highest rate of connections at which all got all their pages.
    pub rate: f64,
    /// Bits of pages a second.
    pub bits: f64,
    /// The highest such rate of connections, and the limits of the search.
    pub connections: throughput::Throughput,
    /// The transfer times of pages at that rate.
    pub times: Setup,
}

/// Searches for the rate of connections that each fetch these pages, as for a throughput.
///
/// # Errors
/// Fails if a trial fails, or if no connection was made at all.
pub fn transactions(
    runner: &mut TrialRunner,
    setting: &Setting,
    plan: &throughput::Plan,
    pages: Pages,
) -> Result<Transactions, Failure> {
    let setting = Setting { most: runner.most(pages, setting.most)?, ..*setting };
    runner.besides = Besides::Pages(pages);
    let found = throughput::search(runner, &setting, plan).map_err(|failure| match failure {
        Failure::Nothing(_) => Failure::NoConnection,
        other => other,
    });
    let mut times = Setup::default();
    let found = found.and_then(|found| {
        if found.rate > 0.0 {
            let (_, trial) = runner.steady(found.rate, plan.last)?;
            times = trial.connections.unwrap_or_default().fetched;
        }
        Ok(found)
    });
    runner.besides = Besides::Nothing;
    let connections = found?;
    let rate = connections.rate * f64::from(pages.requests);
    let bits = rate * f64::from(pages.bytes) * 8.0;
    Ok(Transactions { pages, rate, bits, connections, times })
}

/// Returns the deviations from the RFC. `own` has those of one test.
pub fn conformance(setting: &Setting, own: &[Option<&str>]) -> Conformance {
    let rules = if setting.foreign {
        "the rules of the device are unknown; section 4 asks for several numbers of rules, with \
         and without address translation"
    } else {
        "the rules block ports and pass all other packets; section 4 asks for rules that pass the \
         traffic, behind the rules that deny"
    };
    let variety = match (setting.variety.rules, setting.variety.nat) {
        (true, true) => None,
        (true, false) => {
            Some("not both with and without address translation (section 4, --nat both)")
        }
        (false, true) => Some("one number of rules (section 4, --rules with several)"),
        (false, false) => Some(
            "one number of rules (section 4, --rules with several), and not both with and without \
             address translation (--nat both)",
        ),
    };
    let common = [
        setting.missing_wire(),
        Some(rules),
        setting.missing_waits(),
        variety.filter(|_| !setting.foreign),
    ];
    Conformance::but_for(common.into_iter().chain(own.iter().copied()).collect())
}
