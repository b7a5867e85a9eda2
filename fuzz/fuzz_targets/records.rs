//! Input: any bytes as the two files of `pfctl` about a rule set, which are read or refused. A rule
//! set that was read survives writing and reading.
//!
//! The input is the length of the first file in two bytes, the first file, and the second file.
#![no_main]

use libfuzzer_sys::fuzz_target;
use skipstep_kernel::record::Record;

/// First line of the file of a rule set, which random bytes hardly produce.
const RULES_HEAD: &[u8] = b"rules 3\n";

/// First line of the file of table addresses.
const LISTS_HEAD: &[u8] = b"lists 1\n";

fn headed(head: &[u8], bytes: &[u8]) -> Vec<u8> {
    [head, bytes].concat()
}

fuzz_target!(|input: &[u8]| {
    let Some((length, files)) = input.split_first_chunk() else { return };
    let length = usize::from(u16::from_le_bytes(*length)).min(files.len());
    let (rules, lists) = files.split_at(length);
    Record::from_bytes(rules);
    let Some(mut record) = Record::from_bytes(&headed(RULES_HEAD, rules)) else { return };
    record.put_lists(lists);
    record.put_lists(&headed(LISTS_HEAD, lists));
    let lists = record.take_lists();
    let bytes = record.to_bytes().expect("it was read");
    let mut again = Record::from_bytes(&bytes).expect("it was written");
    assert_eq!(again.to_bytes().expect("it was read"), bytes);
    assert!(again.put_lists(&lists));
    assert_eq!(again.take_lists(), lists);
});
