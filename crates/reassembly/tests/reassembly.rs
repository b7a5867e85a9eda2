//! Reassembly: order, overlaps, contradictions, limits and timeouts.

use skipstep_reassembly::{
    FragmentFate, Piece, Reassembled, Reassembler, refragment, refragment_ipv4,
};
use skipstep_ruleset::Reason;
use skipstep_wire::build::{ipv4, ipv6};
use skipstep_wire::checksum;

const TIMEOUT: u32 = 60;

fn piece4(id: u16, offset: u16, more: bool, data: &[u8]) -> Piece {
    let packet = ipv4([10, 0, 0, 1], [10, 0, 0, 2]).id(id).fragment(offset, more).raw(17, data);
    Piece::parse(&packet, 0).unwrap()
}

fn piece6(id: u32, offset: u16, more: bool, data: &[u8]) -> Piece {
    let (a, b) = ([0xfd00, 0, 0, 0, 0, 0, 0, 1], [0xfd00, 0, 0, 0, 0, 0, 0, 2]);
    let mut behind = vec![17, 0];
    behind.extend((offset | u16::from(more)).to_be_bytes());
    behind.extend(id.to_be_bytes());
    behind.extend(data);
    Piece::parse(&ipv6(a, b).raw(44, &behind), 0).unwrap()
}

/// Returns the data of a complete datagram behind `header` bytes.
fn whole(outcome: FragmentFate, header: usize) -> Vec<u8> {
    match outcome {
        FragmentFate::Complete(whole) => whole.bytes[header..].to_vec(),
        other => panic!("not whole: {other:?}"),
    }
}

#[test]
fn fragments_may_come_in_any_order() {
    let data: Vec<u8> = (0..44).collect();
    let piece = |at: usize, end: usize| piece4(1, at as u16, end < data.len(), &data[at..end]);
    for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        let mut fragments = Reassembler::new(100, TIMEOUT);
        let pieces = [piece(0, 16), piece(16, 32), piece(32, 44)];
        for place in &order[..2] {
            assert_eq!(fragments.add(pieces[*place].clone(), 0), FragmentFate::Queued);
        }
        let FragmentFate::Complete(Reassembled { mut bytes, longest: 36, fragmentation: None }) =
            fragments.add(pieces[order[2]].clone(), 0)
        else {
            panic!("{order:?}")
        };
        checksum::fix_ipv4_header(&mut bytes);
        assert_eq!(bytes, ipv4([10, 0, 0, 1], [10, 0, 0, 2]).id(1).raw(17, &data), "{order:?}");
        assert_eq!(fragments.pieces(), 0);
        let counters = fragments.counters();
        assert_eq!((counters.searches, counters.inserts, counters.removals), (3, 3, 3));
    }
}

#[test]
fn ipv4_keeps_the_data_that_came_first() {
    let mut fragments = Reassembler::new(100, TIMEOUT);
    assert_eq!(fragments.add(piece4(1, 8, true, &[1; 16]), 0), FragmentFate::Queued);
    assert_eq!(
        fragments.add(piece4(1, 8, true, &[9; 8]), 0),
        FragmentFate::Dropped(None),
        "covered"
    );
    assert_eq!(
        fragments.add(piece4(1, 16, true, &[2; 24]), 0),
        FragmentFate::Queued,
        "its head is cut"
    );
    assert_eq!(fragments.add(piece4(1, 40, false, &[3; 4]), 0), FragmentFate::Queued);
    // the new fragment overwrites the head of the later one
    let data = whole(fragments.add(piece4(1, 0, true, &[4; 16]), 0), 20);
    assert_eq!(data, [vec![4; 16], vec![1; 8], vec![2; 16], vec![3; 4]].concat());
}

#[test]
fn ipv6_overlaps_drop_the_datagram() {
    let condemned = FragmentFate::Dropped(Some(Reason::Fragment));
    for overlap in [(0, 8), (8, 8), (4088, 8), (0, 4096)] {
        let mut fragments = Reassembler::new(100, TIMEOUT);
        assert_eq!(fragments.add(piece6(1, 0, true, &[1; 4096]), 0), FragmentFate::Queued);
        let (offset, length) = overlap;
        assert_eq!(fragments.add(piece6(1, offset, true, &vec![2; length]), 0), condemned);
        assert_eq!(fragments.pieces(), 0);
    }
}

#[test]
fn impossible_fragments_and_contradicting_ends_are_dropped() {
    let refused = FragmentFate::Dropped(Some(Reason::Fragment));
    let mut fragments = Reassembler::new(100, TIMEOUT);
    assert_eq!(fragments.add(piece4(1, 8, false, &[]), 0), refused, "empty");
    assert_eq!(fragments.add(piece4(1, 8, true, &[0; 7]), 0), refused, "no multiple of 8");
    assert_eq!(fragments.add(piece4(1, 65528, false, &[0; 8]), 0), refused, "beyond 65535");
    assert_eq!(fragments.add(piece4(1, 16, false, &[0; 8]), 0), FragmentFate::Queued, "ends at 24");
    assert_eq!(fragments.add(piece4(1, 24, false, &[0; 8]), 0), refused, "ends at 32");
    assert_eq!(fragments.add(piece4(1, 8, false, &[0; 8]), 0), refused, "ends at 16");
    assert_eq!(fragments.add(piece4(1, 8, true, &[0; 16]), 0), refused, "24 is the end");
    assert_eq!(fragments.pieces(), 1, "in IPv4 the datagram stays");
    assert_eq!(fragments.add(piece6(1, 16, false, &[0; 8]), 0), FragmentFate::Queued);
    assert_eq!(fragments.add(piece6(1, 24, false, &[0; 8]), 0), refused);
    assert_eq!(fragments.pieces(), 1, "in IPv6 it goes");
}

#[test]
fn a_datagram_of_more_than_65535_bytes_is_dropped() {
    let mut fragments = Reassembler::new(100, TIMEOUT);
    let mut add = |id, last: usize| {
        assert_eq!(fragments.add(piece4(id, 0, true, &vec![0; 32768]), 0), FragmentFate::Queued);
        fragments.add(piece4(id, 32768, false, &vec![0; last]), 0)
    };
    let FragmentFate::Complete(longest) = add(1, 65535 - 20 - 32768) else { panic!("not whole") };
    assert_eq!(longest.bytes.len(), 65535);
    assert_eq!(add(2, 65535 - 19 - 32768), FragmentFate::Dropped(Some(Reason::Short)));
}

#[test]
fn a_section_has_at_most_64_fragments() {
    let mut fragments = Reassembler::new(1000, TIMEOUT);
    for n in 0..64 {
        assert_eq!(fragments.add(piece4(1, 8 + n * 16, true, &[0; 8]), 0), FragmentFate::Queued);
    }
    let next = piece4(1, 4096, true, &[0; 8]);
    assert_eq!(fragments.add(next, 0), FragmentFate::Queued, "another stretch");
    let one_more = piece4(1, 2000, true, &[0; 8]);
    assert_eq!(fragments.add(one_more, 0), FragmentFate::Dropped(Some(Reason::Fragment)));
    assert_eq!(fragments.pieces(), 0, "the whole datagram is gone");
}

#[test]
fn a_full_queue_drops_the_oldest_tenth() {
    let mut fragments = Reassembler::new(20, TIMEOUT);
    for id in 0..20 {
        assert_eq!(fragments.add(piece4(id, 8, true, &[0; 8]), 0), FragmentFate::Queued);
    }
    assert_eq!(fragments.add(piece4(0, 24, true, &[0; 8]), 0), FragmentFate::Queued, "used lately");
    assert_eq!(fragments.pieces(), 19, "two are gone");
    for id in [1, 2] {
        fragments.add(piece4(id, 0, true, &[0; 8]), 0);
        assert_eq!(
            fragments.add(piece4(id, 16, false, &[0; 8]), 0),
            FragmentFate::Queued,
            "{id} is gone"
        );
    }
    let mut none = Reassembler::new(0, TIMEOUT);
    let refused = FragmentFate::Dropped(Some(Reason::Memory));
    assert_eq!(none.add(piece4(1, 8, true, &[0; 8]), 0), refused);
}

#[test]
fn the_timeout_starts_at_the_first_fragment() {
    let mut fragments = Reassembler::new(100, TIMEOUT);
    fragments.add(piece4(1, 8, true, &[0; 8]), 5);
    fragments.add(piece4(1, 24, true, &[0; 8]), 40);
    fragments.expire(64);
    assert_eq!(fragments.pieces(), 2);
    fragments.expire(65);
    assert_eq!(fragments.pieces(), 0);
}

#[test]
fn a_stale_datagram_is_dropped() {
    let mut fragments = Reassembler::new(1000, 1); // stale after 199 newer datagrams
    fragments.add(piece4(0, 0, true, &[7; 8]), 0);
    for id in 1..199 {
        fragments.add(piece4(id, 0, true, &[0; 8]), 0);
    }
    let mut young = fragments.clone();
    assert!(matches!(young.add(piece4(0, 8, false, &[0; 8]), 0), FragmentFate::Complete(_)));
    fragments.add(piece4(199, 0, true, &[0; 8]), 0);
    assert_eq!(fragments.add(piece4(0, 8, false, &[0; 8]), 0), FragmentFate::Queued);
}

#[test]
fn refragmentation_restores_the_fragments() {
    let mut fragments = Reassembler::new(100, TIMEOUT);
    let data: Vec<u8> = (0..40).collect();
    assert_eq!(fragments.add(piece6(7, 16, true, &data[16..32]), 0), FragmentFate::Queued);
    assert_eq!(fragments.add(piece6(7, 32, false, &data[32..]), 0), FragmentFate::Queued);
    let FragmentFate::Complete(whole) = fragments.add(piece6(7, 0, true, &data[..16]), 0) else {
        panic!("not whole")
    };
    let how = whole.fragmentation.unwrap();
    let again = refragment(&whole.bytes, &how, 9).unwrap();
    let pieces: Vec<Piece> = again.iter().map(|packet| Piece::parse(packet, 0).unwrap()).collect();
    let expected = [(0, true), (16, true), (32, false)].map(|(offset, more)| {
        let end = (usize::from(offset) + 16).min(40);
        piece6(9, offset, more, &data[usize::from(offset)..end])
    });
    assert_eq!(pieces, expected);
    let found = skipstep_reassembly::Fragmentation::for_packet(&whole.bytes, whole.longest);
    assert_eq!(found, Some(how));
    let tiny = skipstep_reassembly::Fragmentation { largest: 7, ..how };
    assert_eq!(refragment(&whole.bytes, &tiny, 9), None);
}

#[test]
fn later_ipv4_fragments_have_only_copied_options() {
    // record route (7) is for the first fragment only, loose source routing (131) for all
    let options = [7, 3, 4, 131, 3, 4, 0, 0];
    let ip = ipv4([10, 0, 0, 1], [10, 0, 0, 2]).id(7).options(&options);
    let data: Vec<u8> = (0..20).collect();
    let fragments = refragment_ipv4(&ip.raw(17, &data), 28 + 15).unwrap();
    let later = ipv4([10, 0, 0, 1], [10, 0, 0, 2]).id(7).options(&[131, 3, 4, 0]);
    let expected = [
        ip.clone().fragment(0, true).raw(17, &data[..8]),
        later.clone().fragment(8, true).raw(17, &data[8..16]),
        later.fragment(16, false).raw(17, &data[16..]),
    ];
    assert_eq!(fragments, expected);
    assert_eq!(refragment_ipv4(&ip.raw(17, &data), 28 + 7), None);
}
