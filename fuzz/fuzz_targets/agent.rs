//! Input: any bytes on the control connection of an agent, in pieces of any size. Only messages
//! that the peer sealed are accepted, and they are opened unchanged. A valid order survives writing
//! and reading.
#![no_main]

use fwlab_agent::{
    Envelopes, Greeting, HELLO, Hello, Key, Malformed, Order, VERDICT, read_verdict,
};
use libfuzzer_sys::fuzz_target;

/// Returns the envelopes of a controller and of an agent that have greeted each other.
fn pair(key: &Key) -> (Envelopes, Envelopes) {
    let hello = Hello::new([1; 32]);
    let mut controller = Greeting::for_controller(key, &hello, &hello);
    let mut agent = Greeting::for_agent(key, &hello, &hello);
    agent.check(&controller.proof()).expect("the same key");
    controller.check(&agent.proof()).expect("the same key");
    (Envelopes::new(controller.encryption()), Envelopes::new(agent.encryption()))
}

fuzz_target!(|bytes: &[u8]| {
    let key = Key::new([7; 32]);
    let (mut sealer, mut opener) = pair(&key);

    let piece = usize::from(bytes.first().copied().unwrap_or(1)).max(1);
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

    for some in bytes.chunks(piece) {
        opener.take(some);
        match opener.open() {
            Ok(None) => {}
            Ok(Some(_)) => panic!("a message that nobody sealed"),
            Err(Malformed::Forged) => break,
            Err(other) => panic!("{other}, in bytes that nobody sealed"),
        }
    }

    if let Some((hello, rest)) = bytes.split_first_chunk::<HELLO>()
        && let Ok(hello) = Hello::read(hello)
        && let Some(verdict) = rest.first_chunk::<VERDICT>()
    {
        let mut greeting = Greeting::for_controller(&key, &hello, &hello);
        greeting.proof();
        assert!(read_verdict(verdict, &mut greeting).is_err(), "a proof that nobody made");
    }

    if let Ok(order) = serde_json::from_slice::<Order>(bytes)
        && order.check().is_ok()
    {
        let text = serde_json::to_vec(&order).expect("an order that was read");
        assert_eq!(serde_json::from_slice::<Order>(&text).expect("written"), order);
    }
});
