//! The address/port pairs that are available to a client's connections: each port of each client
//! address to each port of the server. Their number bounds the open connections. The side that
//! closes first keeps its pair in TIME-WAIT.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use anyhow::ensure;
use fwlab_load::connections::{Calls, Ports};

/// The available address/port pairs of a client.
pub(super) struct PortPairs {
    ports: Ports,
    addresses: u64,
    doors: u64,
    /// The times at which connections were closed, with their numbers.
    closed: VecDeque<(Instant, u64)>,
}

impl PortPairs {
    /// Makes the room of a client with these ports, for calls like these.
    pub fn new(ports: Ports, calls: &Calls) -> PortPairs {
        let (addresses, doors) = (calls.clients.len().max(1) as u64, u64::from(calls.ports));
        PortPairs { ports, addresses, doors, closed: VecDeque::new() }
    }

    /// Returns the number of pairs, which is the highest number of connections at once.
    pub fn total(&self) -> u64 {
        self.ports.count() * self.addresses * self.doors
    }

    /// Returns the highest rate in connections a second, if each is closed as soon as it has its
    /// pages, for `seconds`.
    pub fn most(&self, seconds: f64) -> f64 {
        self.total() as f64 / seconds.min(self.ports.kept().as_secs_f64())
    }

    /// Returns the number of pairs that calls occupy at once, with those in TIME-WAIT.
    fn taken_by(&self, calls: &Calls) -> u64 {
        if calls.hold {
            return calls.count;
        }
        let kept = calls.rate * self.ports.kept().as_secs_f64();
        calls.count.min(kept.ceil() as u64)
    }

    /// Checks that there are enough pairs for the calls.
    ///
    /// # Errors
    /// Fails if there are not.
    pub fn check(&self, calls: &Calls) -> anyhow::Result<()> {
        let (taken, total) = (self.taken_by(calls), self.total());
        ensure!(
            taken <= total,
            "{taken} connections need as many pairs of ports to the server, and the client has \
             {total}: {}",
            self.reasons()
        );
        Ok(())
    }

    /// Returns the limits that determine the number of pairs, and the flags and settings that raise
    /// them.
    pub fn reasons(&self) -> String {
        let PortPairs { ports, addresses, doors, .. } = self;
        let several = |count: u64, one: &str, more: &str| match count {
            1 => format!("one {one}"),
            _ => format!("{count} {more}"),
        };
        let kept = match ports.are_reused {
            true => String::new(),
            false => format!(
                ", each taken for {} s after its connection is closed (net.ipv4.tcp_tw_reuse=1 there: for {} s)",
                ports.kept().as_secs(),
                Ports { are_reused: true, ..*ports }.kept().as_secs()
            ),
        };
        format!(
            "its {} ports (net.ipv4.ip_local_port_range), from {} (--client-addresses), to {} of the server \
             (--server-ports){kept}",
            ports.count(),
            several(*addresses, "address", "addresses"),
            several(*doors, "port", "ports"),
        )
    }

    /// Returns the time to wait until enough pairs are free for the calls.
    pub fn wait(&mut self, calls: &Calls, now: Instant) -> Duration {
        let kept = self.ports.kept();
        let is_over = |&mut (closed, _): &mut (Instant, u64)| closed + kept <= now;
        while self.closed.pop_front_if(is_over).is_some() {}
        let mut taken =
            self.taken_by(calls) + self.closed.iter().map(|(_, count)| count).sum::<u64>();
        for &(closed, count) in &self.closed {
            if taken <= self.total() {
                break;
            }
            taken -= count;
            if taken <= self.total() {
                return (closed + kept).saturating_duration_since(now);
            }
        }
        Duration::ZERO
    }

    /// Records that calls were made. Held connections that are not closed end by RST, and free
    /// their pairs at once.
    pub fn record(&mut self, calls: &Calls, now: Instant) {
        if !calls.hold || calls.close.is_some() {
            self.closed.push_back((now, self.taken_by(calls)));
        }
    }
}

#[cfg(test)]
mod tests {
    use fwlab_load::connections::Pages;

    use super::*;

    fn calls(count: u64, rate: f64) -> Calls {
        Calls {
            server: "192.0.2.1:80".parse().unwrap(),
            ports: 2,
            clients: Vec::new(),
            count,
            rate,
            hold: false,
            close: None,
            forbidden: 0,
            forbidden_port: 81,
            pages: Pages::ONE,
        }
    }

    fn room(are_reused: bool) -> PortPairs {
        let ports = Ports { first: 1001, last: 2000, are_reused };
        PortPairs::new(ports, &calls(1, 1.0))
    }

    #[test]
    fn port_pairs_are_counted() {
        let two = vec![[192, 0, 2, 2].into(), [192, 0, 2, 3].into()];
        let ports = Ports { first: 1001, last: 2000, are_reused: false };
        assert_eq!(PortPairs::new(ports, &Calls { clients: two, ..calls(1, 1.0) }).total(), 4000);
        let room = room(false);
        let held = |count| room.check(&Calls { hold: true, ..calls(count, 1.0) });
        held(2000).unwrap();
        let why = held(2001).unwrap_err().to_string();
        assert!(why.contains("the client has 2000") && why.contains("its 1000 ports"), "{why}");
        assert!(why.contains("one address") && why.contains("2 ports of the server"), "{why}");
        assert_eq!([room.most(1.0), room.most(600.0)], [2000.0, 2000.0 / 60.0]);
        // in a long trial the first pairs are free again before the last are taken
        room.check(&calls(1_000_000, 33.0)).unwrap();
        assert!(room.check(&calls(1_000_000, 34.0)).is_err());
    }

    #[test]
    fn calls_wait_for_free_port_pairs() {
        let (mut room, start) = (room(false), Instant::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        room.record(&calls(800, 1e6), at(0));
        room.record(&calls(800, 1e6), at(10));
        room.record(&Calls { hold: true, ..calls(2000, 1e6) }, at(11));
        assert_eq!(room.wait(&calls(400, 1e6), at(20)), Duration::ZERO);
        assert_eq!(room.wait(&calls(1200, 1e6), at(20)), Duration::from_secs(40));
        assert_eq!(room.wait(&calls(2000, 1e6), at(20)), Duration::from_secs(50));
        assert_eq!(room.wait(&calls(1200, 1e6), at(61)), Duration::ZERO);
        let mut soon = super::tests::room(true);
        soon.record(&Calls { hold: true, close: Some(1.0), ..calls(2000, 1e6) }, at(0));
        assert_eq!(soon.wait(&calls(1, 1e6), at(0)), Duration::from_secs(2));
    }
}
