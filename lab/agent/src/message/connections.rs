//! Orders and answers about connections.

use std::net::IpAddr;
use std::ops::RangeInclusive;

use anyhow::{Context, ensure};
use fwlab_load::connections::{Beside, CallSummary, Calls, MOST_AT_ONCE, MOST_BYTES};
use serde::{Deserialize, Serialize};

use super::LONGEST_TRIAL;

/// The most connections and the most pages of a trial.
const MOST_CALLS: u64 = 5_000_000;
const MOST_PAGES: u64 = 50_000_000;

/// The range of connections a second, and the most datagrams or SYNs a second beside them.
const RATES: RangeInclusive<f64> = 0.01..=1e9;
const MOST_BESIDE: f64 = 1e7;

/// The most ports of a server.
pub const MOST_PORTS: u16 = 64;

/// The most source addresses of a client.
pub const MOST_ADDRESSES: usize = 256;

/// The most pages that one connection fetches.
const MOST_REQUESTS: u32 = 10_000;

/// The part of the client that makes connections.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Caller {
    /// The connections to make.
    pub calls: Calls,
    /// The packets to send beside the connections.
    pub beside: Beside,
}

/// The part of the server of pages.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Called {
    /// The address on which the server listens.
    pub address: IpAddr,
    /// The ports on which the server listens.
    pub ports: Vec<u16>,
    /// A further port, to which no connection should get through. The server counts those that do.
    pub forbidden_port: Option<u16>,
    /// The most connections that may be open at once.
    pub at_once: u64,
    /// The packets to count beside the connections.
    pub beside: Beside,
}

/// The results of a trial from the client.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Made {
    /// The results of the connections.
    pub outcome: CallSummary,
    /// Number of datagrams or SYNs that were sent beside the connections.
    pub sent: u64,
}

/// The counts of a trial from the server.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Served {
    /// Number of connections to the forbidden port.
    pub leaked: u64,
    /// The source address of the last connection.
    pub visitor: Option<IpAddr>,
    /// Number of datagrams or SYNs that were received beside the connections.
    pub received: u64,
}

impl Caller {
    pub(super) fn check(&self) -> anyhow::Result<()> {
        let Caller { calls, beside } = self;
        let &Calls { server, ports, count, rate, hold, close, forbidden, pages, .. } = calls;
        ensure!(
            (1..=MOST_CALLS).contains(&count),
            "{count} connections: at most {MOST_CALLS} in a trial"
        );
        for rate in [Some(rate), close].into_iter().flatten() {
            ensure!(RATES.contains(&rate), "{rate} connections a second: between 0.01 and 1e9");
        }
        ensure!(close.is_none() || hold, "only connections that are held are closed at a rate");
        ensure!(
            calls.at_once() <= MOST_AT_ONCE,
            "{count} connections at once: at most {MOST_AT_ONCE}"
        );
        ensure!(forbidden <= 100, "{forbidden} forbidden connections of a hundred");
        ensure!(
            (1..=MOST_REQUESTS).contains(&pages.requests) && pages.bytes <= MOST_BYTES,
            "{} pages of {} bytes: at most {MOST_REQUESTS} of {MOST_BYTES}",
            pages.requests,
            pages.bytes
        );
        let all = count * u64::from(pages.requests);
        ensure!(all <= MOST_PAGES, "{all} pages: at most {MOST_PAGES} in a trial");
        let last = u32::from(server.port()) + u32::from(ports);
        ensure!(
            (1..=MOST_PORTS).contains(&ports)
                && server.port() > 0
                && last <= 1 << 16
                && calls.forbidden_port > 0,
            "{ports} ports beginning with {}: at most {MOST_PORTS} consecutive ports",
            server.port()
        );
        ensure!(
            calls.clients.len() <= MOST_ADDRESSES,
            "{} addresses: at most {MOST_ADDRESSES}",
            calls.clients.len()
        );
        ensure!(
            calls.clients.iter().all(|client| client.is_ipv4() == server.is_ipv4()),
            "some addresses are not of the server's IP version"
        );
        check_beside(*beside)?;
        let length = calls.length().context("the duration of the trial is out of range")?;
        ensure!(length <= LONGEST_TRIAL, "a trial of {length:?}: at most {LONGEST_TRIAL:?}");
        Ok(())
    }
}

impl Called {
    pub(super) fn check(&self) -> anyhow::Result<()> {
        let Called { ports, forbidden_port, at_once, beside, .. } = self;
        ensure!(
            (1..=usize::from(MOST_PORTS)).contains(&ports.len())
                && !ports.contains(&0)
                && *forbidden_port != Some(0),
            "{} ports: at most {MOST_PORTS}, and none of them 0",
            ports.len()
        );
        ensure!(
            (1..=MOST_AT_ONCE).contains(at_once),
            "{at_once} connections at once: at most {MOST_AT_ONCE}"
        );
        check_beside(*beside)
    }
}

fn check_beside(beside: Beside) -> anyhow::Result<()> {
    let rate = match beside {
        Beside::Nothing => return Ok(()),
        Beside::Datagrams(rate) | Beside::Syns(rate) => rate,
    };
    ensure!(
        rate > 0.0 && rate <= MOST_BESIDE,
        "{rate} a second beside connections: at most {MOST_BESIDE}"
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use fwlab_load::connections::{Answers, Pages};

    use super::super::{Order, Part};
    use super::*;
    use crate::LONGEST;

    fn caller() -> Caller {
        let calls = Calls {
            server: "192.0.2.1:80".parse().unwrap(),
            ports: 3,
            clients: vec![[192, 0, 2, 9].into()],
            count: 1000,
            rate: 500.0,
            hold: true,
            close: Some(250.0),
            forbidden: 10,
            forbidden_port: 22,
            pages: Pages::ONE,
        };
        Caller { calls, beside: Beside::Syns(1000.0) }
    }

    fn called() -> Called {
        Called {
            address: [192, 0, 2, 1].into(),
            ports: vec![80, 81, 82],
            forbidden_port: Some(22),
            at_once: 5000,
            beside: Beside::Nothing,
        }
    }

    #[test]
    fn orders_are_read_as_they_were_written() {
        for part in [Part::Caller(Box::new(caller())), Part::Called(called())] {
            let order = Order::Prepare(part);
            order.check().unwrap();
            let text = serde_json::to_vec(&order).unwrap();
            assert_eq!(serde_json::from_slice::<Order>(&text).unwrap(), order);
        }
    }

    #[test]
    fn calls_beyond_limits_are_refused() {
        let refused = |why: &str, change: fn(&mut Calls)| {
            let mut caller = caller();
            change(&mut caller.calls);
            let order = Order::Prepare(Part::Caller(Box::new(caller)));
            let said = order.check().unwrap_err().to_string();
            assert!(said.contains(why), "{said}");
        };
        refused("0 connections", |calls| calls.count = 0);
        refused("at most 5000000", |calls| calls.count = u64::MAX);
        refused("at once", |calls| calls.count = MOST_AT_ONCE + 1);
        refused("a second", |calls| calls.rate = 0.0);
        refused("a second", |calls| calls.rate = f64::NAN);
        refused("a second", |calls| calls.close = Some(f64::INFINITY));
        refused("are held", |calls| calls.hold = false);
        refused("of a hundred", |calls| calls.forbidden = 101);
        refused("0 pages", |calls| calls.pages.requests = 0);
        refused("pages of", |calls| calls.pages.bytes = u32::MAX);
        refused("10000000000 pages", |calls| {
            (calls.count, calls.close, calls.hold) = (1_000_000, None, false);
            calls.pages.requests = 10_000;
        });
        refused("0 ports", |calls| calls.ports = 0);
        refused("65 ports", |calls| calls.ports = 65);
        refused("beginning with 65535", |calls| calls.server.set_port(65_535));
        refused("beginning with 0", |calls| calls.server.set_port(0));
        refused("ports", |calls| calls.forbidden_port = 0);
        refused("257 addresses", |calls| calls.clients = vec![calls.clients[0]; 257]);
        refused("server's IP", |calls| calls.clients.push("::1".parse().unwrap()));
        refused("3600s", |calls| calls.rate = 0.1);
    }

    #[test]
    fn floods_and_servers_beyond_limits_are_refused() {
        for rate in [0.0, -1.0, f64::NAN, 1e8] {
            for beside in [Beside::Syns(rate), Beside::Datagrams(rate)] {
                assert!(Caller { beside, ..caller() }.check().is_err());
                assert!(Called { beside, ..called() }.check().is_err());
            }
        }
        assert!(Called { ports: Vec::new(), ..called() }.check().is_err());
        assert!(Called { ports: vec![80, 0], ..called() }.check().is_err());
        assert!(Called { ports: vec![80; 65], ..called() }.check().is_err());
        assert!(Called { forbidden_port: Some(0), ..called() }.check().is_err());
        assert!(Called { at_once: MOST_AT_ONCE + 1, ..called() }.check().is_err());
    }

    #[test]
    fn the_summary_of_a_million_connections_fits_a_message() {
        let mut random = fastrand::Rng::with_seed(1);
        // random times, and one time in each bucket of the histogram
        let mut all: Vec<u64> = (0..1_000_000).map(|_| random.u64(1..900_000_000)).collect();
        all.extend((0..42).flat_map(|octave| (0..2048).map(move |part| (1 << octave) + part)));
        let answers =
            Answers { setup: all.clone(), fetched: all.clone(), closed: all, ..Answers::default() };
        let outcome = CallSummary::from(&answers);
        let text = serde_json::to_vec(&outcome).unwrap();
        assert!(text.len() < LONGEST, "{} bytes", text.len());
        assert_eq!(serde_json::from_slice::<CallSummary>(&text).unwrap().setup.count, 1_086_016);
    }
}
