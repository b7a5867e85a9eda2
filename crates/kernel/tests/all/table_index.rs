//! Tables with so many entries that they have an index, looked up by real packets.
//! ```text
//! private network namespace of the test's thread
//!   em0 10.0.1.1/24, em1 10.0.2.1/24, lo0 127.0.0.1/8   packets go over lo0
//! ```

use std::net::{Ipv4Addr, UdpSocket};

use crate::common::fixture::{Fixture, all_arrive, arrives, isolated, receiver};
use skipstep_abi::table::TABLE_INDEXED;
use skipstep_abi::table::table_op::PASS;
use skipstep_kernel::Instance;
use skipstep_ruleset::TableEntry;

/// Number of entries well above the least number for an index.
const MANY: u32 = 300;

fn entry(net: &str) -> TableEntry {
    TableEntry { negated: false, net: net.parse().unwrap(), weight: 0 }
}

/// Returns entries that match no packet of the test; a third of them are networks.
fn others(first: u32, count: u32) -> Vec<TableEntry> {
    let of = |number: u32| {
        let address = Ipv4Addr::from(0x0a64_0000 + 256 * number);
        entry(&format!("{address}/{}", if number.is_multiple_of(3) { 24 } else { 32 }))
    };
    (first..first + count).map(of).collect()
}

fn has_index(instance: &Instance) -> bool {
    instance.table_versions().unwrap().iter().any(|version| version & TABLE_INDEXED != 0)
}

#[test]
#[ignore = "needs root"]
fn entries_come_and_go() {
    isolated(|| {
        let mut fixture = Fixture::new("index");
        let (to, from) = (receiver(), UdpSocket::bind("127.0.0.1:0").unwrap());
        fixture.load("table <t> persist counters\nblock in quick on lo0 from <t>\npass no state\n");
        let instance = fixture.instance();
        instance.enable().unwrap();
        let name = "t".into();
        instance.table_add(&name, &others(0, 10)).unwrap();
        assert!(!has_index(instance), "for so few");
        assert_eq!(instance.table_add(&name, &others(0, MANY)).unwrap(), MANY - 10);
        assert!(has_index(instance));
        assert!(arrives(&from, &to));
        assert_eq!(instance.table_list().unwrap()[0].entries, MANY);

        instance.table_add(&name, &[entry("127.0.0.0/8")]).unwrap();
        assert!(!arrives(&from, &to));
        let negated = TableEntry { negated: true, ..entry("127.0.0.1/32") };
        instance.table_add(&name, &[negated]).unwrap();
        assert!(arrives(&from, &to), "the longest match says no");
        instance.table_delete(&name, &[negated]).unwrap();
        instance.table_add(&name, &[entry("127.0.0.1/32")]).unwrap();
        assert!(!arrives(&from, &to));

        let mut all = others(0, MANY);
        all.extend([entry("127.0.0.0/8"), entry("127.0.0.1/32")]);
        all.sort_by_key(|entry| entry.net);
        assert_eq!(instance.table_entries(&name).unwrap(), all);
        let counted = |instance: &Instance| {
            let entries = instance.table_entry_list(&"t".into()).unwrap();
            let of = |entry: &skipstep_kernel::contents::EntryInfo| {
                Some((entry.entry.net, entry.traffic?))
            };
            entries.iter().filter_map(of).collect::<Vec<_>>()
        };
        assert_eq!(counted(instance).len(), 2, "both had packets of their own");
        instance.table_zero_entries(&name, &[entry("127.0.0.1/32")]).unwrap();
        assert_eq!(counted(instance)[0].0, "127.0.0.0/8".parse().unwrap());
        assert_eq!(counted(instance).len(), 1);

        assert_eq!(instance.table_delete(&name, &others(0, MANY)).unwrap(), MANY);
        assert!(!has_index(instance), "two are left");
        assert!(!arrives(&from, &to));
    });
}

#[test]
#[ignore = "needs root"]
fn no_packet_misses_a_table_that_is_replaced() {
    isolated(|| {
        let mut fixture = Fixture::new("index-replaced");
        let (to, from) = (receiver(), UdpSocket::bind("127.0.0.1:0").unwrap());
        let rules = format!("pass in proto udp from <t> to port {} no state\n", to.1.port());
        fixture.load(&format!("table <t> persist counters {{ 127.0.0.1 }}\n{rules}"));
        fixture.instance().enable().unwrap();
        let sent = all_arrive(&from, &to, || {
            for round in 0..12 {
                // with an index, without one, and from one index to the next
                let mut entries = others(round, [MANY, MANY + 7, 1][round as usize % 3]);
                entries.push(entry("127.0.0.1/32"));
                fixture.instance().table_replace(&"t".into(), &entries).unwrap();
            }
        });
        let entries = fixture.instance().table_entry_list(&"t".into()).unwrap();
        let own = entries.iter().find(|known| known.entry == entry("127.0.0.1/32")).unwrap();
        assert_eq!(own.traffic.unwrap().packets[0][PASS], sent);
        assert_eq!(fixture.instance().table_list().unwrap()[0].stats.r#match, sent);
    });
}

/// A table that the data plane adds to has no index, and it keeps the entries that it had.
#[test]
#[ignore = "needs root"]
fn a_table_that_rules_begin_to_fill_keeps_what_it_has() {
    isolated(|| {
        let mut fixture = Fixture::new("index-filled");
        let (to, from) = (receiver(), UdpSocket::bind("127.0.0.1:0").unwrap());
        let plain = "table <t> persist\nblock in quick on lo0 from <t>\npass no state\n";
        fixture.load(plain);
        let mut all = others(0, MANY);
        all.push(entry("127.0.0.1/32"));
        all.sort_by_key(|entry| entry.net);
        fixture.instance().enable().unwrap();
        fixture.instance().table_replace(&"t".into(), &all).unwrap();
        assert!(has_index(fixture.instance()));
        assert!(!arrives(&from, &to));
        let filling = "pass in proto tcp to port 7 keep state (max-src-conn 3, overload <t>)\n";
        fixture.load(&format!("{plain}{filling}"));
        assert!(!has_index(fixture.instance()));
        assert_eq!(fixture.instance().table_entries(&"t".into()).unwrap(), all);
        assert!(!arrives(&from, &to));
        fixture.instance().table_replace(&"t".into(), &all[1..]).unwrap();
        assert!(!has_index(fixture.instance()));
        assert_eq!(fixture.instance().table_entries(&"t".into()).unwrap(), all[1..]);
    });
}
