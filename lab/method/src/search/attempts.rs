//! Trials of connections: conversion of an order to calls, and of their outcome to a trial,
//! wherever the connections are made.

use anyhow::bail;
use fwlab_load::connections::datagrams::Datagrams;
use fwlab_load::connections::flood::Flood;
use fwlab_load::connections::{Beside, CallSummary, Calls};

use super::{Besides, Connections, Order, Trial};

/// Number of connections, at most and at least, that measure the client's highest rate. The last
/// constant is the number of connections that check the filter.
pub(super) const CEILING: u64 = 5000;
pub(super) const CEILING_AT_LEAST: u64 = 100;
pub(super) const PROBE: u64 = 10;

/// A rate above that of any client: the calls go out without pauses.
pub(super) const FAST: f64 = 1e6;

/// A rate at which every system manages a few connections, in connections a second.
pub(super) const SLOW: f64 = 1000.0;

/// The tolerated delay of a client: a share of the trial's length plus a time in seconds. Attempts
/// beyond it count as not made.
const LATE: (f64, f64) = (0.02, 0.02);

/// The connections of a trial.
pub(super) struct Attempts {
    pub calls: Calls,
    pub beside: Beside,
    /// The planned time to make the connections, or to close them in a tear-down trial; in seconds.
    seconds: f64,
}

/// Counts of a trial beside the outcome of its connections.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct BesideCounts {
    /// Number of datagrams or SYNs that were sent.
    pub sent: u64,
    /// Number of these datagrams or SYNs that the server received.
    pub received: u64,
    /// Number of forbidden connections that reached the server.
    pub leaked: u64,
}

impl Attempts {
    /// Makes the attempts of an order, with the fields of `like` that an order does not set.
    ///
    /// # Errors
    /// Fails if the order has several rates, or asks for a reset.
    pub fn from_order(order: &Order, like: &Calls) -> anyhow::Result<Attempts> {
        let &[phase] = order.phases else { bail!("a trial of connections has one rate") };
        let count = (phase.rate * phase.seconds).round().max(1.0) as u64;
        let calls = Calls { count, rate: phase.rate, ..like.clone() };
        let calls = match order.besides {
            Besides::Nothing | Besides::Fragments(_) => calls,
            Besides::Hold => Calls { hold: true, ..calls },
            Besides::TearDown(rate) => Calls { hold: true, rate, close: Some(phase.rate), ..calls },
            Besides::Forbidden(forbidden) => Calls { forbidden, ..calls },
            Besides::Pages(pages) | Besides::Flood(_, pages) => Calls { pages, ..calls },
            Besides::Reset(_) => bail!("a trial of connections has no reset"),
        };
        let beside = match order.besides {
            Besides::Fragments(rate) if rate > 0.0 => Beside::Datagrams(rate),
            Besides::Flood(rate, _) if rate > 0.0 => Beside::Syns(rate),
            _ => Beside::Nothing,
        };
        Ok(Attempts { calls, beside, seconds: phase.seconds })
    }

    /// Returns the share of the work that was done within the planned time, assuming a steady rate.
    /// Attempts of a late client were not made at the rate of the order.
    pub fn in_time(&self, outcome: &CallSummary) -> f64 {
        let took = match self.calls.close {
            Some(_) => outcome.closing,
            // held connections may take any time to be established
            None if self.calls.hold => return 1.0,
            None => outcome.took,
        };
        let (took, (share, time)) = (took.as_secs_f64(), LATE);
        if took > self.seconds * (1.0 + share) + time { self.seconds / took } else { 1.0 }
    }

    /// Returns the trial of these attempts.
    pub fn trial(&self, outcome: &CallSummary, seen: BesideCounts) -> Trial {
        let in_time = |count: u64| (count as f64 * self.in_time(outcome)) as u64;
        if self.calls.close.is_some() {
            // a tear-down trial reports how connections were closed
            return Trial {
                sent: outcome.attempted,
                received: in_time(outcome.closed.count),
                latency: outcome.closed.latency.clone(),
                connections: Some(Connections {
                    established: outcome.established,
                    setup: outcome.closed.summary,
                    ..Connections::default()
                }),
                ..Trial::default()
            };
        }
        let BesideCounts { sent, received, leaked } = seen;
        let (mut datagrams, mut flood) = (Datagrams::default(), Flood::default());
        match self.beside {
            Beside::Nothing => {}
            Beside::Datagrams(_) => datagrams = Datagrams { sent, received },
            Beside::Syns(_) => flood = Flood { sent, received },
        }
        Trial {
            sent: outcome.attempted,
            received: in_time(outcome.served),
            latency: outcome.setup.latency.clone(),
            connections: Some(Connections {
                established: outcome.established,
                forbidden: outcome.forbidden,
                leaked,
                setup: outcome.setup.summary,
                datagrams,
                flood,
                pages: in_time(outcome.fetched.count),
                fetched: outcome.fetched.summary,
            }),
            ..Trial::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use fwlab_load::connections::{Answers, Pages, Setup};

    use super::*;
    use crate::search::Phase;

    fn attempts(besides: Besides, seconds: f64) -> Attempts {
        let like = Calls {
            server: "192.0.2.1:80".parse().unwrap(),
            ports: 1,
            clients: Vec::new(),
            count: 1,
            rate: 1.0,
            hold: false,
            close: None,
            forbidden: 0,
            forbidden_port: 81,
            pages: Pages::ONE,
        };
        let phases = [Phase { rate: 100.0 / seconds, seconds }];
        Attempts::from_order(&Order { phases: &phases, besides }, &like).unwrap()
    }

    fn answers(took: u64) -> Answers {
        Answers {
            attempted: 100,
            established: 100,
            served: 100,
            setup: vec![10, 20, 60],
            took: Duration::from_millis(took),
            ..Answers::default()
        }
    }

    #[test]
    fn attempts_that_were_late_do_not_count_as_served() {
        let steady = attempts(Besides::Nothing, 1.0);
        let of = |took| steady.trial(&CallSummary::from(&answers(took)), BesideCounts::default());
        assert_eq!([990, 1030, 2000].map(|took| of(took).received), [100, 100, 50]);
        let setup = of(990).connections.unwrap().setup;
        assert_eq!(setup, Setup { least: 10, mean: 30.0, most: 60, total: 90 });
        let held = attempts(Besides::Hold, 1.0);
        assert_eq!(
            held.trial(&CallSummary::from(&answers(2000)), BesideCounts::default()).received,
            100
        );
        let torn_down = |closing| {
            let (closed, closing) = (vec![5; 80], Duration::from_millis(closing));
            let answers = Answers { closed, closing, ..answers(10) };
            let down = attempts(Besides::TearDown(10.0), 1.0);
            down.trial(&CallSummary::from(&answers), BesideCounts::default()).received
        };
        assert_eq!([torn_down(1000), torn_down(4000)], [80, 20]);
    }

    #[test]
    fn an_order_is_calls_and_what_goes_on_beside_them() {
        let down = attempts(Besides::TearDown(50.0), 0.5).calls;
        assert_eq!((down.count, down.hold, down.rate, down.close), (100, true, 50.0, Some(200.0)));
        assert_eq!(attempts(Besides::Forbidden(10), 1.0).calls.forbidden, 10);
        let pages = Pages { requests: 3, bytes: 9 };
        let flood = attempts(Besides::Flood(70.0, pages), 1.0);
        assert_eq!((flood.calls.pages, flood.beside), (pages, Beside::Syns(70.0)));
        assert_eq!(attempts(Besides::Flood(0.0, pages), 1.0).beside, Beside::Nothing);
        let fragments = attempts(Besides::Fragments(7.0), 1.0);
        assert_eq!(fragments.beside, Beside::Datagrams(7.0));
        let seen = BesideCounts { sent: 9, received: 8, leaked: 1 };
        let known = fragments.trial(&CallSummary::default(), seen).connections.unwrap();
        assert_eq!((known.datagrams.sent, known.datagrams.received, known.leaked), (9, 8, 1));
        assert_eq!(known.flood, Flood::default());
        let phases = [Phase { rate: 1.0, seconds: 1.0 }; 2];
        let calls = &flood.calls;
        for order in [
            Order { phases: &phases, besides: Besides::Nothing },
            Order { phases: &phases[..1], besides: Besides::Reset(0.1) },
        ] {
            assert!(Attempts::from_order(&order, calls).is_err());
        }
    }
}
