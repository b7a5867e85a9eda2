//! Input: any packets of control connections of FTP. The filter is opened at most between the two
//! hosts of a connection. Each segment begins with sender, flags, distance from the sender's
//! sequence number, and length. The whole input is tried as a packet, too.
#![no_main]

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use libfuzzer_sys::fuzz_target;
use skipstep_ftp::sesame::connection::Connection;
use skipstep_ftp::sesame::segment::Segment;
use skipstep_ftp::sesame::watch::{Event, Watch};

const ROOM: usize = 3;

fuzz_target!(|bytes: &[u8]| {
    let start = Instant::now();
    let mut watch: Watch<Connection> = Watch::new(ROOM, start);
    let mut now = start;
    let ends: [SocketAddr; 3] =
        [([10, 0, 0, 5], 40_000).into(), ([192, 0, 2, 1], 21).into(), ([192, 0, 2, 9], 21).into()];
    let mut sequences = [1000_u32, 2000, 3000];
    let tell = |_: u32, event: Event| {
        if let Event::Open(expected) = event {
            assert!(expected.port >= 1024);
            let hosts = [expected.client, expected.server];
            assert!(hosts.iter().all(|host| ends.contains(host)));
        }
    };
    if let Some(segment) = Segment::parse(bytes) {
        watch.segment(&segment, now, tell);
    }
    let mut rest = bytes;
    while let [who, flags, offset, length, behind @ ..] = rest {
        let (payload, behind) = behind.split_at(usize::from(*length).min(behind.len()));
        rest = behind;
        let (from, to) = match who & 3 {
            0 => (0, 1),
            1 => (1, 0),
            2 => (0, 2),
            _ => (2, 0),
        };
        let distance = i32::from(offset.cast_signed());
        let sequence = sequences[from].wrapping_add_signed(distance);
        let segment = Segment {
            from: ends[from],
            to: ends[to],
            sequence,
            acknowledgment: sequences[to],
            syn: flags & 3 == 1,
            ack: flags & 4 == 0,
            end: flags & 0xf8 == 0xf8,
            payload,
        };
        watch.segment(&segment, now, tell);
        assert!(watch.len() <= ROOM);
        let taken = payload.len() as u32 + u32::from(segment.syn);
        sequences[from] = sequence.wrapping_add(taken);
        now += Duration::from_secs(u64::from(who >> 2));
        watch.expire(now, tell);
    }
});
