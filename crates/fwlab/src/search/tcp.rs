//! What a firewall makes of TCP connections, by RFC 3511: how many it can have at once (5.2), how
//! many a second can be made (5.3) or torn down (5.4), what becomes of them beside a flood (5.5),
//! how many pages they fetch (5.6, 5.7), what it does with those that a rule forbids (5.8), and
//! with fragments beside them (5.9). Clients fetch a page over each, so that a connection which
//! cannot transfer data is none.

use serde::Serialize;

use super::{
    Bench, Besides, Conformance, Connections, Failure, Order, Phase, Setting, Trial, throughput,
};
use crate::connections::datagrams::Datagrams;
use crate::connections::flood::Flood;
use crate::connections::{Pages, Setup};

/// A capacity is found as exactly as this share of the most.
const RESOLUTION: f64 = 0.005;

/// Of a hundred connections those that a rule forbids, one trial after the other.
const SHARES: [u32; 4] = [0, 10, 50, 90];

/// Datagrams in fragments for each connection, one trial after the other.
const DATAGRAMS: [f64; 4] = [0.0, 0.1, 1.0, 10.0];

/// SYNs of a flood for each connection, one trial after the other.
const FLOODS: [f64; 4] = [0.0, 1.0, 10.0, 50.0];

/// Bytes of the pages whose transfer is measured, one after the other.
pub const OBJECTS: [u32; 4] = [64, 1024, 10_240, 102_400];

/// How many connections there can be at once.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Capacity {
    /// So many were open at once, and each got its page.
    pub connections: u64,
    /// The least number of which not all did; none if the most that was tried is the limit.
    pub refused: Option<u64>,
    /// Attempts a second.
    pub rate: f64,
    /// How long connections took to be made, when all were.
    pub setup: Setup,
}

/// Searches for the most connections at once up to `most`, attempted at a rate, by halves; a number
/// that failed is tried once more before it is believed.
///
/// # Errors
/// A trial failed, or no connection was made at all.
pub fn capacity(bench: &mut Bench, most: u64, rate: f64) -> Result<Capacity, Failure> {
    let step = ((most as f64 * RESOLUTION) as u64).max(1);
    let (mut whole, mut refused, mut setup) = (0, None, Setup::default());
    let mut any = false;
    loop {
        let count = match refused {
            None => most,
            Some(refused) if refused - whole > step => whole + (refused - whole) / 2,
            Some(_) => break,
        };
        let mut trial = hold(bench, count, rate)?;
        if trial.received < count {
            any |= trial.received > 0;
            trial = hold(bench, count, rate)?;
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

/// So many connections at once.
fn hold(bench: &mut Bench, count: u64, rate: f64) -> Result<Trial, Failure> {
    let phases = [Phase { rate, seconds: count as f64 / rate }];
    Ok(bench.run(&Order { phases: &phases, besides: Besides::Hold })?.1)
}

/// How many connections a second can be made.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SetupRate {
    /// The highest rate at which every attempt got its page.
    #[serde(flatten)]
    pub found: throughput::Throughput,
    /// How long connections take to be made at that rate.
    pub setup: Setup,
}

/// Searches for the rate as for a throughput, and makes connections at it once more to see how long
/// they take.
///
/// # Errors
/// A trial failed, or no connection was made at all.
pub fn setup_rate(
    bench: &mut Bench,
    setting: &Setting,
    plan: &throughput::Plan,
) -> Result<SetupRate, Failure> {
    let found = throughput::search(bench, setting, plan).map_err(|failure| match failure {
        Failure::Nothing(_) => Failure::NoConnection,
        other => other,
    })?;
    let mut setup = Setup::default();
    if found.rate > 0.0 {
        let (_, trial) = bench.steady(found.rate, plan.last)?;
        setup = trial.connections.unwrap_or_default().setup;
    }
    Ok(SetupRate { found, setup })
}

/// How many connections a second can be torn down.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TearDown {
    /// Closed by both sides, each of them, at this rate.
    pub rate: f64,
    /// The lowest rate at which not all were; none if the most that was tried is the limit.
    pub too_fast: Option<f64>,
    /// Connections of a trial.
    pub connections: u64,
    /// How long they took to be closed at the rate.
    pub times: Setup,
}

/// Searches by halves for the highest rate at which a number of connections, made at `careful` a
/// second, can be closed by their clients; a rate that failed is tried once more before it is
/// believed.
///
/// # Errors
/// A trial failed, or no connection was closed at any rate.
pub fn tear_down(
    bench: &mut Bench,
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
        let mut trial = bench.run(&order)?.1;
        if trial.received < connections {
            trial = bench.run(&order)?.1;
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
    if bench.records.iter().all(|record| record.received == 0) {
        return Err(Failure::NoConnection);
    }
    Ok(TearDown { rate: whole, too_fast, connections, times })
}

/// What became of connections when some of them were such as a rule forbids.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Illegal {
    /// Of a hundred attempts so many are forbidden.
    pub share: u32,
    /// Attempts that are allowed.
    pub attempted: u64,
    /// Those of them that got their page.
    pub served: u64,
    /// Attempts that are forbidden.
    pub forbidden: u64,
    /// Those of them that became connections.
    pub leaked: u64,
}

/// Attempts connections at a rate, more and more of them forbidden.
///
/// # Errors
/// A trial failed.
pub fn illegal(bench: &mut Bench, rate: f64, seconds: f64) -> Result<Vec<Illegal>, Failure> {
    let with = |share: u32| {
        let phases = [Phase { rate, seconds }];
        let (_, trial) =
            bench.run(&Order { phases: &phases, besides: Besides::Forbidden(share) })?;
        let Connections { forbidden, leaked, .. } = trial.connections.unwrap_or_default();
        let (attempted, served) = (trial.sent, trial.received);
        Ok(Illegal { share, attempted, served, forbidden, leaked })
    };
    SHARES.into_iter().map(with).collect()
}

/// What became of connections and of datagrams in fragments beside them.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Fragmented {
    /// Attempts to connect.
    pub attempted: u64,
    /// Those of them that got their page.
    pub served: u64,
    /// The datagrams.
    #[serde(flatten)]
    pub datagrams: Datagrams,
    /// How long connections took to be made.
    pub setup: Setup,
}

/// Attempts connections at a rate, with more and more datagrams in fragments beside them.
///
/// # Errors
/// A trial failed.
pub fn fragments(bench: &mut Bench, rate: f64, seconds: f64) -> Result<Vec<Fragmented>, Failure> {
    let beside = |share: f64| {
        let phases = [Phase { rate, seconds }];
        let besides = Besides::Fragments(rate * share);
        let (_, trial) = bench.run(&Order { phases: &phases, besides })?;
        let Connections { datagrams, setup, .. } = trial.connections.unwrap_or_default();
        Ok(Fragmented { attempted: trial.sent, served: trial.received, datagrams, setup })
    };
    DATAGRAMS.into_iter().map(beside).collect()
}

/// What became of connections beside a flood of SYNs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Flooded {
    /// Attempts to connect.
    pub attempted: u64,
    /// Those of them that got their page.
    pub served: u64,
    /// The flood.
    #[serde(flatten)]
    pub flood: Flood,
    /// How long connections took to be made.
    pub setup: Setup,
    /// What they fetch of pages beside as great a flood.
    pub transfer: Transfer,
}

/// What was fetched over HTTP beside a flood.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Transfer {
    /// What each connection is to fetch.
    #[serde(flatten)]
    pub pages: Pages,
    /// Attempts to connect.
    pub attempted: u64,
    /// Those of them that got all of their pages.
    pub served: u64,
    /// Bits of pages a second, whoever got them.
    pub bits: f64,
    /// The flood.
    #[serde(flatten)]
    pub flood: Flood,
}

/// Connections a second beside a flood: such that fetch one page, and such that fetch these.
pub struct Rates {
    /// The first.
    pub single: f64,
    /// The others.
    pub transfers: (f64, Pages),
}

/// Attempts connections at a rate, beside a flood that grows; then such that fetch more.
///
/// # Errors
/// A trial failed.
pub fn flood(bench: &mut Bench, rates: &Rates, seconds: f64) -> Result<Vec<Flooded>, Failure> {
    let mut beside = |syns: f64, rate: f64, pages: Pages| {
        let besides = Besides::Flood(syns, pages);
        let (_, trial) = bench.run(&Order { phases: &[Phase { rate, seconds }], besides })?;
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

/// How many pages a second can be fetched.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Transactions {
    /// What each connection fetched.
    #[serde(flatten)]
    pub pages: Pages,
    /// Pages a second: at the highest rate of connections at which all got all of theirs.
    pub rate: f64,
    /// Bits of pages a second.
    pub bits: f64,
    /// Those connections a second, and what was tried besides.
    pub connections: throughput::Throughput,
    /// How long a page took to come at that rate.
    pub times: Setup,
}

/// Searches for the rate of connections as for a throughput, each of which fetches these pages.
///
/// # Errors
/// A trial failed, or no connection was made at all.
pub fn transactions(
    bench: &mut Bench,
    setting: &Setting,
    plan: &throughput::Plan,
    pages: Pages,
) -> Result<Transactions, Failure> {
    let setting = Setting { most: bench.most(pages, setting.most)?, ..*setting };
    bench.besides = Besides::Pages(pages);
    let found = throughput::search(bench, &setting, plan).map_err(|failure| match failure {
        Failure::Nothing(_) => Failure::NoConnection,
        other => other,
    });
    let mut times = Setup::default();
    let found = found.and_then(|found| {
        if found.rate > 0.0 {
            let (_, trial) = bench.steady(found.rate, plan.last)?;
            times = trial.connections.unwrap_or_default().fetched;
        }
        Ok(found)
    });
    bench.besides = Besides::Nothing;
    let connections = found?;
    let rate = connections.rate * f64::from(pages.requests);
    let bits = rate * f64::from(pages.bytes) * 8.0;
    Ok(Transactions { pages, rate, bits, connections, times })
}

/// What is missing to claim the RFC; some points are those of one test only.
pub fn conformance(setting: &Setting, own: &[Option<&str>]) -> Conformance {
    let rules = if setting.foreign {
        "the device has the rules that somebody else gave it: whether they are as section 4 asks for, and the same is done \
         with several numbers of them, with addresses translated and as they are, is not known"
    } else {
        "the rules block ports and pass the rest; section 4 asks for rules that pass the traffic, at the end of those that \
         deny"
    };
    let variety = match (setting.variety.rules, setting.variety.nat) {
        (true, true) => None,
        (true, false) => {
            Some("addresses not both translated and as they are (section 4, --nat both)")
        }
        (false, true) => Some("one number of rules (section 4, --rules with several)"),
        (false, false) => Some(
            "one number of rules (section 4, --rules with several), and addresses not both translated and as they are (--nat both)",
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
