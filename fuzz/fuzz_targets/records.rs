//! Any bytes are the files of a rule set that `pfctl` keeps, or are refused; a rule set that is
//! read is written and read again as the same.
//!
//! The input is the length of the first file in two bytes, the first file, and the second one.
#![no_main]

use libfuzzer_sys::fuzz_target;
use skipstep_kernel::record::Record;

/// What the file of a rule set begins with, which random bytes hardly do.
const RULES_HEAD: &[u8] = b"rules 3\n";

/// The same for the addresses of tables.
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
