//! The exporter of flow records: it sends ended states to collectors.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use skipstep_abi::FlowRecord;
use skipstep_kernel::clock::wall_time;

use crate::ipfix::{self, Template};

/// Interval of sending the templates, because a collector may start after skipstepd.
const TEMPLATES_EVERY: Duration = Duration::from_secs(30);

/// Opens a UDP socket for each collector, bound to `source` if it is given.
///
/// # Errors
/// Fails if `source` is no address of this host, or has another family than a collector.
pub fn open(
    collectors: &[SocketAddr],
    source: Option<IpAddr>,
) -> io::Result<Vec<(SocketAddr, UdpSocket)>> {
    let open = |collector: &SocketAddr| {
        let any: IpAddr = match collector {
            SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        };
        let socket = UdpSocket::bind((source.unwrap_or(any), 0))?;
        socket.set_nonblocking(true)?;
        Ok((*collector, socket))
    };
    collectors.iter().map(open).collect()
}

/// Sends flow records to collectors.
pub struct Exporter {
    collectors: Vec<(SocketAddr, UdpSocket)>,
    /// Records that wait until a message of their template is full.
    waiting: BTreeMap<Template, Vec<Vec<u8>>>,
    /// Number of records sent so far, by which collectors notice losses.
    sequence: u32,
    templates_sent: Option<Instant>,
    lost: u64,
}

impl Exporter {
    /// Makes an exporter without collectors. The next record has number `sequence`.
    pub fn new(sequence: u32) -> Self {
        let (collectors, waiting) = (Vec::new(), BTreeMap::new());
        Exporter { collectors, waiting, sequence, templates_sent: None, lost: 0 }
    }

    /// Adds a collector with a socket that [`open`] has made, and sends the templates to it.
    pub fn add(&mut self, collector: SocketAddr, socket: UdpSocket) {
        // an error is ignored: templates are sent again, and contain no records
        let _ = socket.send_to(&ipfix::templates(now(), self.sequence), collector);
        self.templates_sent.get_or_insert_with(Instant::now);
        self.collectors.push((collector, socket));
    }

    /// Returns the number of the next record.
    pub fn sequence(&self) -> u32 {
        self.sequence
    }

    /// Returns the number of records that could not be sent; a record counts once for each
    /// collector.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// Queues the records of a flow. Full messages are sent at once.
    // Differs from OpenBSD: linux.md, "Flow records"
    pub fn report(&mut self, flow: &FlowRecord) {
        let template = Template::for_flow(flow);
        let wall = |second: u32| wall_time(u64::from(second) * 1_000_000_000);
        for record in ipfix::records(flow, wall) {
            let waiting = self.waiting.entry(template).or_default();
            waiting.push(record);
            if waiting.len() >= template.capacity() {
                self.send(template);
            }
        }
    }

    /// Sends all queued records, and the templates if their interval is over.
    pub fn flush(&mut self) {
        self.send_templates();
        for template in Template::ALL {
            self.send(template);
        }
    }

    fn send_templates(&mut self) {
        if self.templates_sent.is_none_or(|sent| sent.elapsed() >= TEMPLATES_EVERY) {
            self.templates_sent = Some(Instant::now());
            let message = ipfix::templates(now(), self.sequence);
            for (collector, socket) in &self.collectors {
                // an error is ignored: templates are sent again, and contain no records
                let _ = socket.send_to(&message, collector);
            }
        }
    }

    fn send(&mut self, template: Template) {
        let records = self.waiting.remove(&template).unwrap_or_default();
        if records.is_empty() {
            return;
        }
        // a collector cannot decode records without their template
        self.send_templates();
        let message = ipfix::data(template, &records, now(), self.sequence);
        self.sequence = self.sequence.wrapping_add(records.len() as u32);
        for (collector, socket) in &self.collectors {
            if socket.send_to(&message, collector).is_err() {
                self.lost += records.len() as u64;
            }
        }
    }
}

fn now() -> Duration {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow() -> FlowRecord {
        FlowRecord { family: skipstep_abi::INET, bytes: [1, 1], ..FlowRecord::default() }
    }

    fn exporter(collector: SocketAddr) -> Exporter {
        let mut exporter = Exporter::new(0);
        for (collector, socket) in open(&[collector], None).unwrap() {
            exporter.add(collector, socket);
        }
        exporter
    }

    fn receive(socket: &UdpSocket) -> Vec<u8> {
        let mut message = [0; 2048];
        let length = socket.recv(&mut message).unwrap();
        message[..length].to_vec()
    }

    #[test]
    fn templates_come_first_and_records_are_counted() {
        let collector = UdpSocket::bind("127.0.0.1:0").unwrap();
        collector.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        let mut exporter = exporter(collector.local_addr().unwrap());
        for _ in 0..Template::Inet.capacity() {
            exporter.report(&flow());
        }
        exporter.report(&flow());
        exporter.flush();
        let sequence = |message: &[u8]| u32::from_be_bytes(message[8..12].try_into().unwrap());
        let set = |message: &[u8]| u16::from_be_bytes([message[16], message[17]]);
        let full = Template::Inet.capacity() as u32;
        for (kind, before) in [(2, 0), (256, 0), (256, full), (256, 2 * full)] {
            let message = receive(&collector);
            assert_eq!((set(&message), sequence(&message)), (kind, before));
        }
        assert_eq!(exporter.lost(), 0);
    }

    #[test]
    fn unsent_records_are_counted() {
        let unreachable = "255.255.255.255:4739".parse().unwrap(); // needs SO_BROADCAST
        let mut exporter = exporter(unreachable);
        exporter.report(&flow());
        exporter.flush();
        assert_eq!(exporter.lost(), 2);
    }
}
