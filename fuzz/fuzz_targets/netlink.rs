//! Input: any bytes as replies of rtnetlink about links, addresses and routes. The resulting host
//! has each interface once, and no route by a missing interface.
//!
//! Each of the three replies follows an unused byte and two bytes of length.
#![no_main]

use std::collections::BTreeSet;

use libfuzzer_sys::fuzz_target;
use skipstep_fuzz::frames;
use skipstep_kernel::host;

fuzz_target!(|input: &[u8]| {
    let mut replies = [&[][..]; 3];
    for (place, (_, reply)) in replies.iter_mut().zip(frames(input)) {
        *place = reply;
    }
    let host = host::from_replies(replies);
    let indices: BTreeSet<u32> = host.interfaces.iter().map(|one| one.index).collect();
    assert_eq!(indices.len(), host.interfaces.len());
    let names: BTreeSet<&str> = host.interfaces.iter().map(|one| one.name.as_str()).collect();
    assert!(host.routes.iter().all(|route| names.contains(route.interface.as_str())));
});
