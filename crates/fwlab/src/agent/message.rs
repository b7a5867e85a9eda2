//! What controller and agent say to each other, as JSON in envelopes.

use std::net::IpAddr;
use std::time::Duration;

use anyhow::ensure;
use serde::{Deserialize, Serialize};

use crate::link::Link;
use crate::placement::Disturbance;
use crate::results::Environment;
use crate::sockets::{Heard, Talk};

/// The longest time until a trial begins.
const LONGEST_DELAY: Duration = Duration::from_secs(10);

/// The longest trial.
const LONGEST_TRIAL: Duration = Duration::from_secs(3600);

/// Clients at once.
const MOST_CLIENTS: usize = 1000;

/// Bytes of payload: what a serial number needs, and what a jumbo frame holds.
const SIZES: std::ops::RangeInclusive<usize> = 8..=9018;

/// What an agent is told. It answers each.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Order {
    /// To say what machine it is on, and which interface leads to the other end.
    Describe {
        /// An address there.
        towards: IpAddr,
    },
    /// To make ready for a part, instead of the one before.
    Prepare(Part),
    /// To do its part in a trial. An active part answers a second time when it is over; meanwhile nobody says anything.
    Begin {
        /// Number of the trial.
        trial: u32,
        /// How long after this order it begins.
        delay: Duration,
    },
    /// To say what a part that is not active saw of the trial.
    Collect,
}

/// What an agent is in a trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Part {
    /// The client of a talk, which is active.
    Client(Talk),
    /// The server of a talk.
    Server {
        /// What its clients do.
        talk: Talk,
        /// Where it listens.
        address: IpAddr,
    },
}

/// The machine of an agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Machine {
    /// What it is like.
    pub environment: Environment,
    /// The interface that leads to the other end.
    pub link: Link,
}

/// What an agent says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Answer {
    /// It is so.
    Done,
    /// What machine it is on.
    Machine(Box<Machine>),
    /// What clients heard.
    Heard(Heard),
    /// What came between a part that is not active and its CPU.
    Seen(Disturbance),
    /// It could not be done, and why.
    Failed(String),
}

impl Order {
    /// What holds of any order, whoever gives it: an agent does not do what costs more than its machine has.
    ///
    /// # Errors
    /// It does not hold.
    pub fn check(&self) -> anyhow::Result<()> {
        match self {
            Order::Describe { .. } | Order::Collect => Ok(()),
            Order::Begin { delay, .. } => {
                ensure!(*delay <= LONGEST_DELAY, "a delay of {delay:?}: at most {LONGEST_DELAY:?}");
                Ok(())
            }
            Order::Prepare(Part::Client(talk) | Part::Server { talk, .. }) => check_talk(talk),
        }
    }
}

fn check_talk(talk: &Talk) -> anyhow::Result<()> {
    let Talk { kind, transport, size, duration, clients, .. } = talk;
    let name = kind.name();
    ensure!(kind.programs().is_empty(), "{name}: agents have no other programs make a load");
    ensure!(kind.takes(*transport), "{name}: not over this protocol");
    ensure!(SIZES.contains(size), "{size} bytes: between {} and {}", SIZES.start(), SIZES.end());
    ensure!(
        !duration.is_zero() && *duration <= LONGEST_TRIAL,
        "a trial of {duration:?}: at most {LONGEST_TRIAL:?}"
    );
    ensure!((1..=MOST_CLIENTS).contains(clients), "{clients} clients: at most {MOST_CLIENTS}");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::raw::frame::Transport;
    use crate::sockets::{Kind, Way};
    use crate::topology::{End, Family};

    fn talk() -> Talk {
        Talk {
            kind: Kind::Rr,
            transport: Transport::Tcp,
            family: Family::V4,
            size: 64,
            duration: Duration::from_secs(1),
            clients: 1,
            active: false,
            to: End::Server,
            way: Way::At([192, 0, 2, 1].into()),
        }
    }

    #[test]
    fn orders_are_read_as_they_were_written() {
        for order in [
            Order::Describe { towards: [192, 0, 2, 1].into() },
            Order::Prepare(Part::Client(talk())),
            Order::Prepare(Part::Server { talk: talk(), address: [192, 0, 2, 1].into() }),
            Order::Begin { trial: 7, delay: Duration::from_millis(300) },
            Order::Collect,
        ] {
            order.check().unwrap();
            let text = serde_json::to_vec(&order).unwrap();
            assert_eq!(serde_json::from_slice::<Order>(&text).unwrap(), order);
        }
    }

    #[test]
    fn what_nobody_should_do_is_refused() {
        let refused = |change: fn(&mut Talk)| {
            let mut talk = talk();
            change(&mut talk);
            Order::Prepare(Part::Client(talk)).check().unwrap_err().to_string()
        };
        assert!(refused(|talk| talk.clients = 0).contains("0 clients"));
        assert!(refused(|talk| talk.clients = 1001).contains("at most 1000"));
        assert!(refused(|talk| talk.size = 7).contains("7 bytes"));
        assert!(refused(|talk| talk.duration = Duration::ZERO).contains("trial"));
        assert!(refused(|talk| talk.duration = Duration::MAX).contains("at most 3600s"));
        assert!(refused(|talk| talk.kind = Kind::Iperf3).contains("iperf3"));
        assert!(refused(|talk| talk.kind = Kind::Ping).contains("protocol"));
        assert!(Order::Begin { trial: 1, delay: Duration::MAX }.check().is_err());
    }

    #[test]
    fn what_is_no_order_is_not_read() {
        for text in [
            "",
            "7",
            "\"dance\"",
            "{\"begin\":{\"trial\":1}}",
            "{\"begin\":{\"trial\":-1,\"delay\":{\"secs\":0,\"nanos\":0}}}",
            "{\"begin\":{\"trial\":1,\"delay\":{\"secs\":0,\"nanos\":0},\"more\":1}}",
            &"[".repeat(100_000),
        ] {
            assert!(serde_json::from_str::<Order>(text).is_err(), "{text:.40}");
        }
    }
}
