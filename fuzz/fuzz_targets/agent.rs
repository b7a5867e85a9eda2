//! Input: any bytes on the control connection of an agent, in pieces of any size. No message
//! without a valid code is accepted. Sealed messages are opened unchanged. A valid order survives
//! writing and reading.
#![no_main]

use fwlab_agent::{
    Greeting, HELLO, Hello, Key, LONGEST, Malformed, Opener, Order, Sealer, VERDICT, read_verdict,
};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let key = Key::new([7; 32]);

    let mut opener = Opener::new(key.clone());
    let piece = usize::from(bytes.first().copied().unwrap_or(1)).max(1);
    for some in bytes.chunks(piece) {
        opener.take(some);
        match opener.open() {
            Ok(None) => {}
            Ok(Some(_)) => panic!("a message that nobody sealed"),
            Err(Malformed::TooLong(length)) => {
                assert!(length > LONGEST);
                break;
            }
            Err(_) => break,
        }
    }

    let (mut sealer, mut opener) = (Sealer::new(key.clone()), Opener::new(key.clone()));
    let messages: Vec<&[u8]> = bytes.chunks(piece).collect();
    let sealed = messages.iter().flat_map(|message| sealer.seal(message).expect("short"));
    let sealed: Vec<u8> = sealed.collect();
    let mut opened = Vec::new();
    for some in sealed.chunks(1 + piece / 3) {
        opener.take(some);
        while let Some(message) = opener.open().expect("sealed") {
            opened.push(message);
        }
    }
    assert_eq!(opened, messages);

    if let Some((hello, rest)) = bytes.split_first_chunk::<HELLO>()
        && let Ok(hello) = Hello::read(hello)
        && let Some(verdict) = rest.first_chunk::<VERDICT>()
    {
        let greeting = Greeting::new(&key, hello.clone(), hello);
        assert!(read_verdict(verdict, &greeting).is_err(), "a code that nobody made");
    }

    if let Ok(order) = serde_json::from_slice::<Order>(bytes)
        && order.check().is_ok()
    {
        let text = serde_json::to_vec(&order).expect("an order that was read");
        assert_eq!(serde_json::from_slice::<Order>(&text).expect("written"), order);
    }
});
