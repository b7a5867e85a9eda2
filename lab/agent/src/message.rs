//! The messages of controller and agent, sent as JSON.

mod connections;

use std::net::IpAddr;
use std::time::Duration;

use anyhow::ensure;
use fwlab_load::connections::Ports;
use fwlab_load::raw::load::Load;
use fwlab_load::raw::missing::Holes;
use fwlab_load::raw::sender::Pace;
use fwlab_load::sockets::{Talk, TalkResult};
use fwlab_net::family::Family;
use fwlab_net::link::Link;
use fwlab_net::placement::Disturbance;
use fwlab_results::{Counts, Environment};
use serde::{Deserialize, Serialize};

pub use connections::{Called, Caller, MOST_ADDRESSES, MOST_PORTS, Made, Served};

/// The longest delay before a trial begins.
const LONGEST_DELAY: Duration = Duration::from_secs(10);

/// The longest trial.
pub const LONGEST_TRIAL: Duration = Duration::from_secs(3600);

/// The most frames of a trial, and the range of rates in frames a second.
const MOST_FRAMES: u64 = i32::MAX as u64;
const RATES: std::ops::RangeInclusive<f64> = 1.0..=1e9;

/// The most clients at once.
const MOST_CLIENTS: usize = 1000;

/// The range of payload sizes in bytes: from the size of a serial number to that of a jumbo frame.
const SIZES: std::ops::RangeInclusive<usize> = 8..=9018;

/// An order to an agent. The agent answers each.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Order {
    /// An order to describe the machine, and the interface that leads to the other end.
    Describe(Reach),
    /// An order to prepare for a part, which replaces the current one.
    Prepare(Part),
    /// An order to send frames at this pace from the next trial on.
    Pace(Pace),
    /// An order to do the part in a trial. An agent with an active part answers a second time when
    /// the trial is over. No message is sent in between.
    Begin(Start),
    /// An order to report the observations of a part that is not active.
    Collect,
}

/// The number and the times of a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Start {
    /// The number of the trial, from 1.
    pub trial: u32,
    /// The time from the order until the trial begins.
    pub delay: Duration,
    /// The planned length of the trial.
    pub length: Duration,
}

/// The path of packets to the other end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reach {
    /// The route to an address.
    Towards(IpAddr),
    /// An interface.
    By(String),
}

/// The part of an agent in a trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Part {
    /// The client of a talk; active.
    Client(Talk),
    /// The server of a talk.
    Server {
        /// The talk of its clients.
        talk: Talk,
        /// The address on which the server listens.
        address: IpAddr,
    },
    /// The sender of frames; active.
    Source(Box<Frames>),
    /// The receiver that counts frames.
    Sink {
        /// The interface at which the frames come in.
        interface: String,
    },
    /// The client that makes connections; active.
    Caller(Box<Caller>),
    /// The server that serves pages over connections.
    Called(Called),
}

/// The frames to send.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Frames {
    /// The headers, sizes and contents.
    pub load: Load,
    /// The interface at which the frames go out.
    pub interface: String,
    /// The link addresses of sender and receiver.
    pub links: [[u8; 6]; 2],
    /// The addresses of both ends; the first address of each range if addresses vary.
    pub addresses: [IpAddr; 2],
    /// The number of frames and their rate.
    pub pace: Pace,
}

/// The frames of a trial as one end counted them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tally {
    /// The counts that this end knows: the sender does not know the received frames, nor the sink
    /// the sent ones.
    pub counts: Counts,
    /// The time from the first frame to the last, by this end's clock.
    pub time: Duration,
    /// The time at which the first frame was due, in nanoseconds of the sender's clock. 0 in the
    /// tally of a sink.
    pub start: u64,
    /// The missing frames. Empty in the tally of a sender.
    pub holes: Holes,
    /// The CPU time that the measurement lost to others.
    pub disturbance: Disturbance,
}

impl Tally {
    /// Returns the rate at which frames were sent, in frames a second.
    pub fn rate(&self) -> f64 {
        self.counts.sent.saturating_sub(1) as f64 / self.time.as_secs_f64().max(1e-9)
    }
}

/// The machine of an agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Machine {
    /// The hardware, kernel and programs.
    pub environment: Environment,
    /// The interface that leads to the other end.
    pub link: Link,
    /// The local ports that the machine uses for outgoing connections.
    pub ports: Ports,
}

/// An agent's answer to an order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Answer {
    /// The order was carried out.
    Done,
    /// The description of the machine.
    Machine(Box<Machine>),
    /// The results of the clients of a talk.
    Heard(TalkResult),
    /// The CPU time that a server lost to others.
    Seen(Disturbance),
    /// The frames that were sent or received.
    Frames(Tally),
    /// The results of connections, from the client.
    Made(Box<Made>),
    /// The counts of the server that served pages.
    Served(Served),
    /// The order could not be carried out, for this reason.
    Failed(String),
}

impl Order {
    /// Checks the limits that hold for each order, so that a controller cannot overload the agent's
    /// machine.
    ///
    /// # Errors
    /// Fails if the order is beyond a limit.
    pub fn check(&self) -> anyhow::Result<()> {
        match self {
            Order::Describe(Reach::Towards(_)) | Order::Collect => Ok(()),
            Order::Describe(Reach::By(name)) | Order::Prepare(Part::Sink { interface: name }) => {
                check_interface(name)
            }
            Order::Begin(Start { delay, length, .. }) => {
                ensure!(*delay <= LONGEST_DELAY, "a delay of {delay:?}: at most {LONGEST_DELAY:?}");
                check_length(*length)
            }
            Order::Prepare(Part::Client(talk) | Part::Server { talk, .. }) => check_talk(talk),
            Order::Prepare(Part::Source(frames)) => check_frames(frames),
            Order::Prepare(Part::Caller(caller)) => caller.check(),
            Order::Prepare(Part::Called(called)) => called.check(),
            Order::Pace(pace) => check_pace(pace),
        }
    }
}

/// Checks that the name is one that the kernel accepts, and that `ip` cannot take it for an option.
fn check_interface(name: &str) -> anyhow::Result<()> {
    let usual = |byte: u8| byte.is_ascii_graphic() && byte != b'/';
    ensure!(
        (1..16).contains(&name.len()) && name.bytes().all(usual) && !name.starts_with('-'),
        "invalid name of an interface"
    );
    Ok(())
}

fn check_length(length: Duration) -> anyhow::Result<()> {
    ensure!(
        !length.is_zero() && length <= LONGEST_TRIAL,
        "a trial of {length:?}: at most {LONGEST_TRIAL:?}"
    );
    Ok(())
}

fn check_talk(talk: &Talk) -> anyhow::Result<()> {
    let Talk { kind, transport, size, duration, clients, .. } = talk;
    let name = kind.name();
    ensure!(kind.takes(*transport), "{name} does not support {transport}");
    ensure!(SIZES.contains(size), "{size} bytes: between {} and {}", SIZES.start(), SIZES.end());
    check_length(*duration)?;
    ensure!((1..=MOST_CLIENTS).contains(clients), "{clients} clients: at most {MOST_CLIENTS}");
    Ok(())
}

fn check_frames(frames: &Frames) -> anyhow::Result<()> {
    let Frames { load, interface, addresses, pace, .. } = frames;
    check_interface(interface)?;
    ensure!(!load.has_lists(), "an agent reads no files, so it supports no list: and random-list:");
    ensure!(
        addresses.iter().all(|address| address.is_ipv4() == (load.ip == Family::V4)),
        "some addresses are not of {}",
        load.ip
    );
    check_pace(pace)
}

fn check_pace(pace: &Pace) -> anyhow::Result<()> {
    ensure!(
        (1..=MOST_FRAMES).contains(&pace.frames),
        "{} frames: at most {MOST_FRAMES}",
        pace.frames
    );
    ensure!(pace.patience <= LONGEST_DELAY, "a time limit of {:?} is too long", pace.patience);
    let Some(rate) = pace.rate else {
        ensure!(pace.turn.is_none(), "frames at full speed cannot have a second rate");
        return Ok(());
    };
    if let Some((at, _)) = pace.turn {
        ensure!(at <= pace.frames, "a second rate after {at} of {} frames", pace.frames);
    }
    for rate in [Some(rate), pace.turn.map(|(_, rate)| rate)].into_iter().flatten() {
        ensure!(RATES.contains(&rate), "{rate} frames a second: between 1 and 1000000000");
    }
    let most = LONGEST_TRIAL + Duration::from_secs(1);
    ensure!(
        pace.length().is_some_and(|length| length <= most),
        "a trial is longer than {LONGEST_TRIAL:?}"
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use fwlab_load::raw::extension::Extension;
    use fwlab_load::raw::load::{Engine, Sizes, Vary};
    use fwlab_net::family::Family;
    use fwlab_net::topology::End;
    use fwlab_net::traffic::{ServerAddress, TrafficKind};
    use fwlab_net::transport::Transport;

    use super::*;

    fn talk() -> Talk {
        Talk {
            kind: TrafficKind::Rr,
            transport: Transport::Tcp,
            family: Family::V4,
            size: 64,
            duration: Duration::from_secs(1),
            clients: 1,
            active: false,
            to: End::Server,
            way: ServerAddress::At([192, 0, 2, 1].into()),
        }
    }

    fn start() -> Start {
        Start { trial: 7, delay: Duration::from_millis(300), length: Duration::from_secs(1) }
    }

    fn frames() -> Frames {
        Frames {
            load: Load {
                engine: Engine::Packet,
                transport: Transport::Udp,
                ip: Family::V4,
                extension: Extension::None,
                size: "imix".parse::<Sizes>().unwrap(),
                sources: Vary::Fixed,
                destinations: Vary::Random(7),
                source_ports: Vary::Count(256),
                destination_ports: Vary::Fixed,
                seed: 1,
            },
            interface: "eth0".to_owned(),
            links: [[2; 6], [4; 6]],
            addresses: [[198, 18, 0, 2].into(), [198, 19, 0, 2].into()],
            pace: Pace::steady(1e6, Duration::from_secs(10)),
        }
    }

    #[test]
    fn orders_are_read_as_they_were_written() {
        for order in [
            Order::Describe(Reach::Towards([192, 0, 2, 1].into())),
            Order::Describe(Reach::By("eth0".to_owned())),
            Order::Prepare(Part::Source(Box::new(frames()))),
            Order::Pace(Pace::steady(1e6, start().length).then(5e5, start().length)),
            Order::Prepare(Part::Sink { interface: "eth0".to_owned() }),
            Order::Prepare(Part::Client(talk())),
            Order::Prepare(Part::Server { talk: talk(), address: [192, 0, 2, 1].into() }),
            Order::Begin(start()),
            Order::Collect,
        ] {
            order.check().unwrap();
            let text = serde_json::to_vec(&order).unwrap();
            assert_eq!(serde_json::from_slice::<Order>(&text).unwrap(), order);
        }
    }

    #[test]
    fn orders_beyond_limits_are_refused() {
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
        assert!(
            refused(|talk| talk.kind = TrafficKind::Ping).contains("ping does not support tcp")
        );
        assert!(Order::Begin(Start { delay: Duration::MAX, ..start() }).check().is_err());
        assert!(Order::Begin(Start { length: Duration::ZERO, ..start() }).check().is_err());
        for name in ["", "-h", "a b", "../eth0", "a-name-that-is-too-long"] {
            assert!(Order::Describe(Reach::By(name.to_owned())).check().is_err(), "{name}");
        }
    }

    #[test]
    fn frames_beyond_limits_are_refused() {
        let refused = |change: fn(&mut Frames)| {
            let mut frames = frames();
            change(&mut frames);
            Order::Prepare(Part::Source(Box::new(frames))).check().unwrap_err().to_string()
        };
        let secret =
            |frames: &mut Frames| frames.load.sources = "list:/etc/shadow".parse().unwrap();
        assert!(refused(secret).contains("reads no files"));
        assert!(refused(|frames| frames.load.ip = Family::V6).contains("IPv6"));
        assert!(refused(|frames| frames.pace.frames = 0).contains("0 frames"));
        assert!(refused(|frames| frames.pace.frames = 1 << 40).contains("at most"));
        assert!(refused(|frames| frames.pace.rate = Some(0.0)).contains("a second"));
        assert!(refused(|frames| frames.pace.rate = Some(f64::NAN)).contains("a second"));
        assert!(refused(|frames| frames.pace.rate = Some(1.0)).contains("3600s"));
        assert!(refused(|frames| frames.pace.turn = Some((1, 0.0))).contains("a second"));
        assert!(refused(|frames| frames.pace.turn = Some((1, 1.0))).contains("3600s"));
        assert!(refused(|frames| frames.pace.turn = Some((1 << 40, 1e6))).contains("second rate"));
        assert!(Order::Pace(Pace { frames: 0, ..frames().pace }).check().is_err());
        let unpaced = Pace { turn: Some((1, 1e6)), ..Pace::fast(10) };
        assert!(Order::Pace(unpaced).check().is_err());
    }

    #[test]
    fn malformed_orders_are_refused() {
        let begin = serde_json::to_string(&Order::Begin(Start { trial: 1, ..start() })).unwrap();
        for text in [
            "",
            "7",
            "\"dance\"",
            "{\"begin\":{\"trial\":1}}",
            &begin.replace(":1,", ":-1,"),
            &begin.replace("\"trial\"", "\"more\":1,\"trial\""),
            &"[".repeat(100_000),
        ] {
            assert!(serde_json::from_str::<Order>(text).is_err(), "{text:.40}");
        }
    }
}
