//! Workloads from captures: each conversation becomes a command that transfers as many bytes, at
//! the same time.

use std::collections::{BTreeSet, HashMap};
use std::fmt::Write;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use fwlab_net::transport::Transport;

use super::capture::{CaptureError, Packet, packets};

/// Time without packets after which datagrams between the same ends begin another conversation, as
/// in a filter's states.
const SILENCE: Duration = Duration::from_secs(60);

/// Longest capture. Each of its seconds becomes a job.
const LONGEST: Duration = Duration::from_secs(86_400);

/// A conversation between a client and a server.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Conversation {
    transport: Transport,
    server: SocketAddr,
    begin: Duration,
    end: Duration,
    /// Payload of the client, and of the server.
    sends: Payload,
    gets: Payload,
    /// Number of packets of the client.
    datagrams: u64,
    is_over: bool,
}

/// The payload of one end.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Payload {
    /// Sum of the payload bytes of all packets.
    sent: u64,
    /// The part of a TCP stream that the packets cover, relative to the first byte.
    seen: Option<Seen>,
}

/// A part of a TCP stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Seen {
    /// Sequence number of the byte at offset 0.
    first: u32,
    begin: i64,
    end: i64,
}

impl Payload {
    /// Counts the payload of a packet.
    fn add(&mut self, packet: &Packet) {
        self.sent = self.sent.saturating_add(packet.bytes);
        let (Some(sequence), 1..) = (packet.sequence, packet.bytes) else { return };
        let seen = self.seen.get_or_insert(Seen { first: sequence, begin: 0, end: 0 });
        // sequence numbers wrap: use the offset nearest to the end
        let last = seen.first.wrapping_add(seen.end as u32);
        let begin = seen.end + i64::from(sequence.wrapping_sub(last).cast_signed());
        seen.begin = seen.begin.min(begin);
        seen.end = seen.end.max(begin.saturating_add_unsigned(packet.bytes));
    }

    /// Returns the number of bytes. A retransmitted byte counts once, and a byte that no packet
    /// held does not count.
    fn bytes(&self) -> u64 {
        let stream = self.seen.map(|seen| seen.end.abs_diff(seen.begin));
        stream.map_or(self.sent, |stream| stream.min(self.sent))
    }
}

/// The reason why no workload can be made from a file.
#[derive(Debug, thiserror::Error)]
pub enum DeriveError {
    /// The file is no capture.
    #[error(transparent)]
    Capture(#[from] CaptureError),
    /// The capture has no TCP or UDP packets, only this many others.
    #[error("no packet of TCP or UDP, only {0} others")]
    Nothing(u64),
    /// The capture lasts this many hours, which is too long.
    #[error(
        "the capture lasts {0} hours, and the limit is a day: cut it with `editcap -A START -B \
         STOP`"
    )]
    Long(u64),
}

/// Makes the workload of a capture. Its commands use the capture's servers, or `server` if one is
/// given.
///
/// # Errors
/// Fails if the file is no capture, has no TCP or UDP packets, or lasts more than a day.
pub fn derive(file: &[u8], server: Option<IpAddr>) -> Result<String, DeriveError> {
    let (packets, others) = packets(file)?;
    let mut all = conversations(&packets);
    if let Some(server) = server {
        all.iter_mut().for_each(|one| one.server.set_ip(server));
    }
    let first = all.iter().map(|one| one.begin).min().ok_or(DeriveError::Nothing(others))?;
    let last = all.iter().map(|one| one.begin).max().unwrap_or(first);
    if last - first > LONGEST {
        return Err(DeriveError::Long((last - first).as_secs() / 3600));
    }
    let ports: BTreeSet<u16> = all.iter().map(|one| one.server.port()).collect();
    let ports: Vec<String> = ports.iter().map(u16::to_string).collect();
    let mut text = format!(
        "# {} conversations; {others} packets are left out: other protocols, fragments, or \
         truncated.\n\
         # Their server is: fwlab answer {}\n",
        all.len(),
        ports.join(" ")
    );
    let seconds = (last - first).as_secs() as usize + 1;
    let mut jobs = vec![String::new(); seconds];
    for one in &all {
        let at = one.begin - first;
        let _ = writeln!(jobs[at.as_secs() as usize], "\t\t{}", one.job(at.subsec_micros()));
    }
    // the gap is always one second, and a late start does not delay the next
    text += "random 1 1 1 1 {\n";
    for jobs in jobs {
        text += &match jobs.is_empty() {
            true => "\tcommand \"true\"\n".to_owned(),
            false => format!("\tparallel {{\n{jobs}\t}}\n"),
        };
    }
    text += "}\n";
    Ok(text)
}

impl Conversation {
    /// Returns the command that replays the conversation, `after` microseconds after its job
    /// starts.
    fn job(&self, after: u32) -> String {
        let Conversation { transport, server, sends, gets, .. } = self;
        let after = f64::from(after) / 1e6;
        let stays = (self.end - self.begin).as_micros() as f64 / 1e6;
        let mut text = format!("command \"fwlab converse {transport} {server}");
        for (flag, value) in [("after", after), ("stays", stays)] {
            if value > 0.0 {
                let _ = write!(text, " --{flag} {value}");
            }
        }
        let datagrams = if self.transport == Transport::Udp { self.datagrams } else { 0 };
        for (flag, value) in
            [("sends", sends.bytes()), ("gets", gets.bytes()), ("datagrams", datagrams)]
        {
            if value > 0 {
                let _ = write!(text, " --{flag} {value}");
            }
        }
        text + "\""
    }
}

/// Returns the conversations of packets, in the order in which they begin.
fn conversations(packets: &[Packet]) -> Vec<Conversation> {
    let mut all: Vec<Conversation> = Vec::new();
    // the index of the current conversation by protocol, client and server
    let mut current: HashMap<(bool, SocketAddr, SocketAddr), usize> = HashMap::new();
    for packet in packets {
        let is_tcp = packet.transport == Transport::Tcp;
        let (there, back) = ((is_tcp, packet.from, packet.to), (is_tcp, packet.to, packet.from));
        let known = [(there, true), (back, false)].into_iter().find_map(|(key, is_client)| {
            let index = *current.get(&key)?;
            let is_it = match packet.transport {
                Transport::Tcp => !(packet.begins && all[index].is_over),
                Transport::Udp => packet.time.saturating_sub(all[index].end) < SILENCE,
            };
            is_it.then_some((index, is_client))
        });
        let (index, is_client) = known.unwrap_or_else(|| {
            // the first sender is the client, unless only the other one can be
            let is_client = packet.begins || packet.from.port() >= 1024 || packet.to.port() < 1024;
            let (key, server) = if is_client { (there, packet.to) } else { (back, packet.from) };
            current.remove(if is_client { &back } else { &there });
            current.insert(key, all.len());
            all.push(Conversation {
                transport: packet.transport,
                server,
                begin: packet.time,
                end: packet.time,
                sends: Payload::default(),
                gets: Payload::default(),
                datagrams: 0,
                is_over: false,
            });
            (all.len() - 1, is_client)
        });
        let one = &mut all[index];
        // clocks may be set back
        one.end = one.end.max(packet.time);
        one.begin = one.begin.min(packet.time);
        one.is_over |= packet.ends;
        let said = if is_client { &mut one.sends } else { &mut one.gets };
        said.add(packet);
        one.datagrams += u64::from(is_client);
    }
    all.sort_by_key(|one| one.begin);
    all
}

#[cfg(test)]
mod tests {
    use etherparse::PacketBuilder;
    use proptest::prelude::*;

    use super::*;

    /// Makes a capture of a link type from packets with their times in milliseconds.
    fn file(link: u32, packets: &[(u32, Vec<u8>)]) -> Vec<u8> {
        let mut file = Vec::new();
        for number in [0xa1b2_c3d4, 0x0004_0002, 0, 0, 262_144, link] {
            file.extend(u32::to_le_bytes(number));
        }
        for (time, packet) in packets {
            let length = packet.len() as u32;
            for number in [1_700_000_000 + time / 1000, time % 1000 * 1000, length, length] {
                file.extend(u32::to_le_bytes(number));
            }
            file.extend(packet);
        }
        file
    }

    const CLIENT: [u8; 4] = [192, 0, 2, 1];
    const SERVER: [u8; 4] = [192, 0, 2, 2];

    fn tcp(there: bool, port: u16, flags: &str, payload: usize) -> Vec<u8> {
        segment(there, port, flags, 7, payload)
    }

    fn segment(there: bool, port: u16, flags: &str, sequence: u32, payload: usize) -> Vec<u8> {
        let ends = if there { (CLIENT, SERVER) } else { (SERVER, CLIENT) };
        let ports = if there { (port, 80) } else { (80, port) };
        let mut packet =
            PacketBuilder::ipv4(ends.0, ends.1, 64).tcp(ports.0, ports.1, sequence, 1000);
        for flag in flags.chars() {
            packet = match flag {
                'S' => packet.syn(),
                'F' => packet.fin(),
                _ => packet.ack(7),
            };
        }
        let mut bytes = Vec::new();
        packet.write(&mut bytes, &vec![b'x'; payload]).unwrap();
        bytes
    }

    fn udp(there: bool, payload: usize) -> Vec<u8> {
        let ends = if there { (CLIENT, SERVER) } else { (SERVER, CLIENT) };
        let ports = if there { (4000, 53) } else { (53, 4000) };
        let mut bytes = Vec::new();
        let packet = PacketBuilder::ipv4(ends.0, ends.1, 64).udp(ports.0, ports.1);
        packet.write(&mut bytes, &vec![b'x'; payload]).unwrap();
        bytes
    }

    fn page() -> Vec<(u32, Vec<u8>)> {
        vec![
            (0, tcp(true, 4001, "S", 0)),
            (1, tcp(false, 4001, "SA", 0)),
            (2, tcp(true, 4001, "A", 100)),
            (5, tcp(false, 4001, "A", 1400)),
            (6, segment(false, 4001, "AF", 1407, 600)),
            (7, tcp(true, 4001, "AF", 0)),
        ]
    }

    #[test]
    fn a_page_and_a_question_become_commands_at_their_times() {
        let mut packets = page();
        packets.push((2250, udp(true, 40)));
        packets.push((2251, udp(false, 200)));
        packets.push((2300, tcp(true, 4001, "S", 0)));
        let text = derive(&file(101, &packets), None).unwrap();
        let expected = "# 3 conversations; 0 packets are left out: other protocols, fragments, or truncated.\n\
            # Their server is: fwlab answer 53 80\n\
            random 1 1 1 1 {\n\
            \tparallel {\n\
            \t\tcommand \"fwlab converse tcp 192.0.2.2:80 --stays 0.007 --sends 100 --gets 2000\"\n\
            \t}\n\
            \tcommand \"true\"\n\
            \tparallel {\n\
            \t\tcommand \"fwlab converse udp 192.0.2.2:53 --after 0.25 --stays 0.001 --sends 40 --gets 200 --datagrams 1\"\n\
            \t\tcommand \"fwlab converse tcp 192.0.2.2:80 --after 0.3\"\n\
            \t}\n\
            }\n";
        assert_eq!(text, expected);
        assert_eq!(super::super::parse(&text).unwrap().commands(), 4);
        let elsewhere = derive(&file(101, &packets), Some([198, 51, 100, 1].into())).unwrap();
        assert!(elsewhere.contains("tcp 198.51.100.1:80 ") && !elsewhere.contains("192.0.2.2"));
    }

    #[test]
    fn bytes_that_are_sent_again_count_once() {
        let of = |sequences: &[(u32, usize)]| {
            let packets = sequences.iter().enumerate().map(|(time, (sequence, payload))| {
                (time as u32, segment(false, 4001, "A", *sequence, *payload))
            });
            let packets: Vec<_> =
                [(0, tcp(true, 4001, "S", 0))].into_iter().chain(packets).collect();
            let text = derive(&file(101, &packets), None).unwrap();
            let bytes = text.split("--gets ").nth(1).and_then(|rest| rest.split('"').next());
            bytes.map_or(0, |bytes| bytes.parse::<u64>().unwrap())
        };
        assert_eq!(of(&[(1000, 1400), (2400, 600), (2400, 600), (1000, 1400)]), 2000);
        assert_eq!(of(&[(2400, 600), (1000, 1400)]), 2000, "the first one came late");
        assert_eq!(of(&[(u32::MAX - 99, 200), (100, 300), (u32::MAX - 99, 200)]), 500);
        assert_eq!(of(&[(1000, 100), (1099, 1), (1100, 0)]), 100, "it is asked for a sign of life");
        assert_eq!(of(&[(1000, 100), (1200, 100)]), 200, "the one between was not seen");
    }

    #[test]
    fn the_client_is_recognized_in_the_middle_of_a_connection() {
        let packets = [(0, tcp(false, 4001, "A", 500)), (9, tcp(true, 4001, "A", 20))];
        let text = derive(&file(101, &packets), None).unwrap();
        assert!(text.contains("tcp 192.0.2.2:80 --stays 0.009 --sends 20 --gets 500"), "{text}");
    }

    #[test]
    fn all_link_types_are_read_and_cut_off_payload_counts() {
        let plain = derive(&file(101, &page()), None).unwrap();
        for (link, before) in [(117, 100), (113, 16), (276, 20)] {
            let packets = page().into_iter().map(|(time, packet)| {
                let mut bytes = vec![0; before];
                bytes.extend(&packet[..40]);
                (time, bytes)
            });
            assert_eq!(derive(&file(link, &packets.collect::<Vec<_>>()), None).unwrap(), plain);
        }
        let ethernet = page().into_iter().map(|(time, packet)| {
            let mut bytes = vec![0; 12];
            bytes.extend([8, 0]);
            bytes.extend(packet);
            (time, bytes)
        });
        assert_eq!(derive(&file(1, &ethernet.collect::<Vec<_>>()), None).unwrap(), plain);
        let whole = file(101, &page());
        assert!(derive(&whole[..whole.len() - 3], None).unwrap().contains("--gets 2000"));
    }

    proptest! {
        #[test]
        fn damaged_packets_make_a_workload_or_none(
            link in prop::sample::select(vec![1, 12, 101, 113, 117, 276]),
            damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..40),
            times in prop::collection::vec(0..100_000_u32, 9),
        ) {
            let mut packets = page();
            packets.extend([(0, udp(true, 9)), (0, udp(false, 9)), (0, vec![0; 150])]);
            for (packet, time) in packets.iter_mut().zip(times) {
                packet.0 = time;
            }
            let mut bytes = file(link, &packets);
            for (place, byte) in damage {
                let all = bytes.len() - 24;
                bytes[24 + place.index(all)] = byte;
            }
            if let Ok(text) = derive(&bytes, None) {
                prop_assert!(crate::workload::parse(&text).is_ok(), "{}", text);
            }
        }
    }

    #[test]
    fn unusable_captures_have_a_reason() {
        let why = |bytes: &[u8]| derive(bytes, None).unwrap_err().to_string();
        assert!(why(b"").contains("not a pcap file"));
        assert!(why(b"a letter to a friend").contains("not a pcap file"));
        assert!(why(&[0x0a, 0x0d, 0x0d, 0x0a]).contains("editcap -F pcap"));
        assert!(why(&file(105, &[])).contains("link type 105"));
        assert!(why(&file(101, &[(0, vec![0; 30])])).contains("only 1 others"));
        let day = [(0, udp(true, 1)), (90_000_000, udp(true, 1))];
        assert!(why(&file(101, &day)).contains("25 hours"));
        let mut damaged = file(101, &[(0, udp(true, 1))]);
        damaged[32..36].fill(0xff);
        assert!(why(&damaged).contains("record at byte 24"));
    }
}
