//! Random rules and packets for tests and measurements, drawn from a seed. Some resemble rule sets
//! that people write, others those of an adversary.

use fastrand::Rng;
use skipstep_classifier::tree::{Covering, INET6, Rect};

/// The shape of a list of rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListShape {
    /// An access list: which clients reach which ports of our hosts.
    Access,
    /// A firewall: many rules have one address `any`, and ports are ranges.
    Firewall,
    /// The chains of a host that forwards: both addresses are given, ports often not.
    Chain,
    /// Ranges of both ports, overlapping at random.
    Ports,
    /// Short prefixes on both sides, and a range of ports.
    Wide,
    /// Two of four fields are given; successive rules use different pairs.
    Pairs,
    /// One field is given.
    Single,
}

impl ListShape {
    /// All shapes.
    pub const ALL: [ListShape; 7] = [
        ListShape::Access,
        ListShape::Firewall,
        ListShape::Chain,
        ListShape::Ports,
        ListShape::Wide,
        ListShape::Pairs,
        ListShape::Single,
    ];

    /// True if only an adversary would write such rules.
    pub fn is_adversarial(self) -> bool {
        matches!(self, ListShape::Ports | ListShape::Wide | ListShape::Pairs | ListShape::Single)
    }

    /// Returns the name in printed results.
    pub fn name(self) -> &'static str {
        match self {
            ListShape::Access => "access",
            ListShape::Firewall => "firewall",
            ListShape::Chain => "chain",
            ListShape::Ports => "ports",
            ListShape::Wide => "wide",
            ListShape::Pairs => "pairs",
            ListShape::Single => "single",
        }
    }
}

const ANY: (u32, u32) = (0, u32::MAX);
const ANY_PORT: (u32, u32) = (0, 0xffff);
const TCP: u32 = 6;
const UDP: u32 = 17;

/// Draws `count` rules for IPv4, in order. One in eight has a criterion besides its rectangle.
pub fn rules(kind: ListShape, count: usize, seed: u64) -> Vec<Covering<6>> {
    let mut draw = Draw::new(count, seed);
    (0..count).map(|number| draw.rule(kind, number)).collect()
}

/// Draws the same rules for IPv6: prefixes are 32 bits longer, and hosts are whole addresses.
pub fn rules6(kind: ListShape, count: usize, seed: u64) -> Vec<Covering<12>> {
    let of = |Covering { rect: Rect { low, high }, whole, hides, order }| {
        let mut rect = INET6.whole;
        for (address, at) in [(0, 0), (1, 4)] {
            let (first, last) = (lengthen(low[address], false), lengthen(high[address], true));
            if (low[address], high[address]) != ANY {
                rect.low[at..at + 4].copy_from_slice(&first);
                rect.high[at..at + 4].copy_from_slice(&last);
            }
            if low[address] == high[address] {
                rect.high[at..at + 4].copy_from_slice(&first);
            }
        }
        rect.low[8..].copy_from_slice(&low[2..]);
        rect.high[8..].copy_from_slice(&high[2..]);
        Covering { rect, whole, hides, order }
    };
    rules(kind, count, seed).into_iter().map(of).collect()
}

fn lengthen(word: u32, last: bool) -> [u32; 4] {
    [0x2001_0db8, word, if last { u32::MAX } else { 0 }, if last { u32::MAX } else { 0 }]
}

/// Draws `count` packets, each in the rectangle of a random rule.
pub fn packets<const N: usize>(rules: &[Covering<N>], count: usize, seed: u64) -> Vec<[u32; N]> {
    let mut random = Rng::with_seed(seed);
    let mut one = || {
        let rect = &rules[random.usize(..rules.len())].rect;
        std::array::from_fn(|axis| random.u32(rect.low[axis]..=rect.high[axis]))
    };
    (0..count).map(|_| one()).collect()
}

struct Draw {
    random: Rng,
    /// Address and prefix length (16, 20 or 24) of the networks that the rules use.
    networks: Vec<(u32, u32)>,
}

impl Draw {
    fn new(rules: usize, seed: u64) -> Self {
        let mut random = Rng::with_seed(seed);
        let mut network = || {
            let bits = [16, 20, 24, 24][random.usize(..4)];
            (mask(random.u32(..), bits), bits)
        };
        let networks = (0..rules / 40 + 8).map(|_| network()).collect();
        Self { random, networks }
    }

    fn rule(&mut self, kind: ListShape, number: usize) -> Covering<6> {
        let fields = self.addresses_and_ports(kind, number);
        let protocol = match kind {
            ListShape::Pairs | ListShape::Single | ListShape::Wide => (0, 0xff),
            _ => [(TCP, TCP), (TCP, TCP), (UDP, UDP)][self.random.usize(..3)],
        };
        let interface = if self.random.u32(..4) == 0 { self.random.u32(1..4) } else { 0 };
        let interface = if interface == 0 { (0, 0xff) } else { (interface, interface) };
        let [source, destination, from, to] = fields;
        let fields = [source, destination, from, to, protocol, interface];
        let rect = Rect { low: fields.map(|(low, _)| low), high: fields.map(|(_, high)| high) };
        let whole = self.random.u32(..8) != 0;
        Covering { rect, whole, hides: whole, order: number as u32 }
    }

    /// Draws source and destination, then their ports.
    fn addresses_and_ports(&mut self, kind: ListShape, number: usize) -> [(u32, u32); 4] {
        match kind {
            ListShape::Access => [
                self.address([6, 2, 2]),
                self.address([0, 1, 9]),
                ANY_PORT,
                self.service([8, 1, 1]),
            ],
            ListShape::Firewall => self.of_hosts(|draw| {
                [
                    draw.address([5, 3, 2]),
                    draw.address([3, 2, 5]),
                    draw.service([1, 2, 7]),
                    draw.service([4, 4, 2]),
                ]
            }),
            ListShape::Chain => self.of_hosts(|draw| {
                [
                    draw.address([1, 3, 6]),
                    draw.address([1, 3, 6]),
                    draw.service([1, 1, 8]),
                    draw.service([3, 1, 6]),
                ]
            }),
            ListShape::Ports => [ANY, ANY, self.ports(), self.ports()],
            ListShape::Wide => [self.prefix(0..=10), self.prefix(0..=10), ANY_PORT, self.ports()],
            ListShape::Pairs => {
                let pairs = [[0, 1], [0, 2], [0, 3], [1, 2], [1, 3], [2, 3]];
                self.some(&pairs[number % pairs.len()])
            }
            ListShape::Single => self.some(&[number % 4]),
        }
    }

    /// Draws until at least one address is given. Otherwise the first few of 100,000 rules would
    /// match every packet.
    fn of_hosts(&mut self, draw: impl Fn(&mut Self) -> [(u32, u32); 4]) -> [(u32, u32); 4] {
        loop {
            let fields = draw(self);
            if fields[..2] != [ANY, ANY] {
                return fields;
            }
        }
    }

    /// Draws any address, a network or a host, with these relative frequencies.
    fn address(&mut self, often: [u32; 3]) -> (u32, u32) {
        let (network, bits) = self.networks[self.random.usize(..self.networks.len())];
        match self.one_of(often) {
            0 => ANY,
            1 => between(network, bits),
            _ => {
                let host = network | self.random.u32(..) & !mask(u32::MAX, bits);
                (host, host)
            }
        }
    }

    /// Draws one port, a range or any port, with these relative frequencies.
    fn service(&mut self, often: [u32; 3]) -> (u32, u32) {
        match self.one_of(often) {
            0 => {
                let known = [22, 25, 53, 80, 110, 123, 143, 443, 993, 8080];
                let port = match self.random.bool() {
                    true => known[self.random.usize(..known.len())],
                    false => self.random.u32(1..=0xffff),
                };
                (port, port)
            }
            1 => [(0, 1023), (1024, 0xffff), (6000, 6063), (33434, 33523)][self.random.usize(..4)],
            _ => ANY_PORT,
        }
    }

    fn ports(&mut self) -> (u32, u32) {
        let (one, other) = (self.random.u32(..=0xffff), self.random.u32(..=0xffff));
        (one.min(other), one.max(other))
    }

    fn prefix(&mut self, bits: std::ops::RangeInclusive<u32>) -> (u32, u32) {
        let bits = self.random.u32(bits);
        between(self.random.u32(..), bits)
    }

    /// Draws values for these of the four fields; the others are any.
    fn some(&mut self, fields: &[usize]) -> [(u32, u32); 4] {
        let mut all = [ANY, ANY, ANY_PORT, ANY_PORT];
        for field in fields {
            all[*field] = match field {
                0 | 1 => self.prefix(16..=32),
                _ => {
                    let low = self.random.u32(..=0xffff);
                    (low, (low + self.random.u32(..50)).min(0xffff))
                }
            };
        }
        all
    }

    fn one_of(&mut self, often: [u32; 3]) -> usize {
        let drawn = self.random.u32(..often.iter().sum::<u32>());
        usize::from(drawn >= often[0]) + usize::from(drawn >= often[0] + often[1])
    }
}

fn mask(address: u32, bits: u32) -> u32 {
    address & (u64::from(u32::MAX) << (32 - bits)) as u32
}

fn between(address: u32, bits: u32) -> (u32, u32) {
    let low = mask(address, bits);
    (low, low | !mask(u32::MAX, bits))
}
