//! The common part of the tests: a host, and conversations across it that read like ladder
//! diagrams.
//!
//!     client 10.0.1.5 ---- em0 [firewall] em1 ---- server 192.0.2.1
//!            2001:db8:1::5                         2001:db8:2::1
#![allow(dead_code, reason = "each test file uses its part")]

use std::net::IpAddr;

use skipstep_model::side::tcp_state;
use skipstep_model::{Carried, Fate, Firewall, LinkHeader, Packet, State, Verdict};
use skipstep_ruleset::Direction;
use skipstep_ruleset::interface::{Host, Interface, InterfaceAddress, Route};
use skipstep_wire::build::{self, Icmp, Ip, Tcp, Udp};

/// Returns a host with em0, em1 and lo0.
pub fn host() -> Host {
    let interface = |name: &str, groups: &[&str], addresses: &[&str]| Interface {
        name: name.into(),
        loopback: name == "lo0",
        groups: ["all"].iter().chain(groups).map(ToString::to_string).collect(),
        addresses: addresses.iter().map(|net| address(net)).collect(),
        ..Interface::default()
    };
    Host {
        interfaces: vec![
            interface("em0", &[], &["10.0.1.1/24", "fe80::1/64", "2001:db8:1::1/64"]),
            interface("em1", &["egress"], &["10.0.2.1/24", "fe80::2/64"]),
            interface("lo0", &["lo"], &["127.0.0.1/8"]),
        ],
        routes: vec![
            route("10.0.1.0/24", "em0"),
            route("2001:db8:1::/64", "em0"),
            route("192.0.2.0/24", "em1"),
        ],
    }
}

fn address(net: &str) -> InterfaceAddress {
    InterfaceAddress { net: net.parse().unwrap(), broadcast: None, peer: None }
}

fn route(destination: &str, interface: &str) -> Route {
    let destination = destination.parse().unwrap();
    Route { destination, interface: interface.into(), gateway: None, label: None, table: 0 }
}

/// Creates a firewall with these rules.
pub fn firewall(rules: &str) -> Firewall {
    let host = host();
    match skipstep_pfconf::load(rules, &skipstep_pfconf::Context::new(&host)) {
        Ok(loaded) => Firewall::new(loaded.ruleset, host),
        Err(rejected) => panic!("{}\n{rules}", rejected.diagnostics[0]),
    }
}

/// Returns a packet without metadata.
pub fn packet(direction: Direction, interface: &str, bytes: Vec<u8>) -> Packet {
    Packet {
        direction,
        interface: interface.into(),
        bytes,
        link: LinkHeader::default(),
        received_on: None,
        carried: Carried::default(),
        owner: None,
    }
}

/// A conversation between client and server, seen on em0.
pub struct Conversation {
    pub firewall: Firewall,
    client: (IpAddr, u16),
    server: (IpAddr, u16),
    /// Answers of the firewall to the last packet, one line each.
    pub replies: Vec<String>,
}

impl Conversation {
    pub fn new(rules: &str) -> Self {
        Conversation {
            firewall: firewall(rules),
            client: ("10.0.1.5".parse().unwrap(), 4000),
            server: ("192.0.2.1".parse().unwrap(), 22),
            replies: Vec::new(),
        }
    }

    pub fn ipv6(rules: &str) -> Self {
        Conversation {
            client: ("2001:db8:1::5".parse().unwrap(), 4000),
            server: ("2001:db8:2::1".parse().unwrap(), 22),
            ..Conversation::new(rules)
        }
    }

    /// Sets the clock in seconds; returns the states that expired.
    pub fn at(&mut self, seconds: u32) -> Vec<u64> {
        self.firewall.set_time(seconds)
    }

    /// Sends a segment of the client, as `"S seq 100 win 1000 wscale 2 len 5"`.
    #[track_caller]
    pub fn client(&mut self, segment: &str, expected: &str) {
        let bytes =
            self.towards_server().tcp(&parse_segment(segment, self.client.1, self.server.1));
        self.step(Direction::In, bytes, segment, expected);
    }

    /// Sends a segment of the server.
    #[track_caller]
    pub fn server(&mut self, segment: &str, expected: &str) {
        let bytes =
            self.towards_client().tcp(&parse_segment(segment, self.server.1, self.client.1));
        self.step(Direction::Out, bytes, segment, expected);
    }

    #[track_caller]
    pub fn client_udp(&mut self, expected: &str) {
        let bytes = self.towards_server().udp(&Udp::new(self.client.1, self.server.1));
        self.step(Direction::In, bytes, "udp", expected);
    }

    #[track_caller]
    pub fn server_udp(&mut self, expected: &str) {
        let bytes = self.towards_client().udp(&Udp::new(self.server.1, self.client.1));
        self.step(Direction::Out, bytes, "udp", expected);
    }

    #[track_caller]
    pub fn client_icmp(&mut self, message: Icmp, expected: &str) {
        let bytes = self.towards_server().icmp(&message);
        self.step(Direction::In, bytes, "icmp", expected);
    }

    #[track_caller]
    pub fn server_icmp(&mut self, message: Icmp, expected: &str) {
        let bytes = self.towards_client().icmp(&message);
        self.step(Direction::Out, bytes, "icmp", expected);
    }

    pub fn towards_server(&self) -> Ip {
        build::ip(self.client.0, self.server.0)
    }

    pub fn towards_client(&self) -> Ip {
        build::ip(self.server.0, self.client.0)
    }

    #[track_caller]
    fn step(&mut self, direction: Direction, bytes: Vec<u8>, what: &str, expected: &str) {
        let (fate, trace) = self.firewall.explain(&packet(direction, "em0", bytes));
        self.replies = fate.replies.iter().map(|reply| skipstep_wire::print::line(reply)).collect();
        assert_eq!(self.describe(&fate), expected, "{what}\n{trace}");
    }

    /// Returns the verdict, the reasons besides `match`, and the state's sides and timeout.
    fn describe(&self, fate: &Fate) -> String {
        let mut words = vec![match fate.verdict {
            Verdict::Pass => "pass".to_owned(),
            Verdict::Drop => "drop".to_owned(),
            Verdict::Consumed => "consumed".to_owned(),
        }];
        words.extend(
            fate.counted
                .iter()
                .map(|reason| reason.name())
                .filter(|name| *name != "match")
                .map(String::from),
        );
        if let Some(state) = self.firewall.states().find(|state| Some(state.id) == fate.state) {
            words.push(sides(state));
            words.push(state.timeout.name().into());
        }
        words.join(" ")
    }

    /// Returns the only state.
    #[track_caller]
    pub fn state(&self) -> &State {
        let mut states = self.firewall.states();
        let state = states.next().expect("there is a state");
        assert_eq!(states.next(), None, "there is one state");
        state
    }
}

fn sides(state: &State) -> String {
    let name = |side: u8| match (state.protocol(), side) {
        (6, tcp_state::CLOSED) => "CLOSED",
        (6, tcp_state::SYN_SENT) => "SYN_SENT",
        (6, tcp_state::ESTABLISHED) => "ESTABLISHED",
        (6, tcp_state::CLOSING) => "CLOSING",
        (6, tcp_state::FIN_WAIT_2) => "FIN_WAIT_2",
        (6, tcp_state::TIME_WAIT) => "TIME_WAIT",
        (_, 0) => "NO_TRAFFIC",
        (_, 1) => "SINGLE",
        (_, 2) => "MULTIPLE",
        _ => "?",
    };
    format!("{}:{}", name(state.src.state), name(state.dst.state))
}

fn parse_segment(text: &str, source_port: u16, destination_port: u16) -> Tcp {
    let mut words = text.split(' ');
    let mut segment = Tcp::new(source_port, destination_port).flags(words.next().unwrap());
    while let (Some(name), Some(value)) = (words.next(), words.next()) {
        let number: u32 = value.parse().unwrap();
        segment = match name {
            "seq" => segment.seq(number),
            "ack" => segment.ack(number),
            "win" => segment.window(number as u16),
            "wscale" => segment.window_scale(number as u8),
            "mss" => segment.mss(number as u16),
            "len" => segment.payload(&vec![0; number as usize]),
            _ => panic!("{name}?"),
        };
    }
    segment
}
