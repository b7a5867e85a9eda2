//! An instance that filters the packets of a test's own sockets.

use std::io::ErrorKind;
use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use skipstep_kernel::Instance;
use skipstep_ruleset::interface::Host;
use skipstep_testing::TestNetwork;
use skipstep_views::StateView;

use super::{host, ruleset};

/// An instance in a network namespace of its own, removed even if the test fails.
pub struct Fixture {
    pub instance: Option<Instance>,
    pub host: Host,
}

impl Fixture {
    pub fn new(name: &str) -> Self {
        TestNetwork::enter(&host()).unwrap();
        let name = format!("test-{}-{name}", std::process::id());
        let instance = Instance::open_or_create(&name, 100).unwrap();
        Fixture { instance: Some(instance), host: skipstep_kernel::host::read().unwrap() }
    }

    pub fn instance(&mut self) -> &mut Instance {
        self.instance.as_mut().unwrap()
    }

    pub fn load(&mut self, text: &str) {
        let host = self.host.clone();
        self.instance().load(ruleset(text, &host), &host).unwrap();
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        if let Some(instance) = self.instance.take() {
            let removed = instance.remove();
            // a second panic would hide the message of the first
            if !std::thread::panicking() {
                removed.unwrap();
            }
        }
    }
}

/// Runs a test in a thread of its own, because a thread cannot leave a network namespace.
pub fn isolated(test: impl FnOnce() + Send + 'static) {
    std::thread::spawn(test).join().unwrap();
}

pub fn receiver() -> (UdpSocket, SocketAddr) {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    let address = socket.local_addr().unwrap();
    (socket, address)
}

pub fn arrives(from: &UdpSocket, (receiver, address): &(UdpSocket, SocketAddr)) -> bool {
    // the kernel returns an error to a local sender whose packet was dropped on the way out
    let _ = from.send_to(b"hello", address);
    match receiver.recv(&mut [0; 16]) {
        Ok(_) => true,
        Err(error) if error.kind() == ErrorKind::WouldBlock => false,
        Err(error) => panic!("{error}"),
    }
}

/// Sends packets one after the other while `work` runs, and asserts that each arrives. Returns
/// their number.
pub fn all_arrive(from: &UdpSocket, to: &(UdpSocket, SocketAddr), work: impl FnOnce()) -> u64 {
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let sender = scope.spawn(|| {
            let mut sent = 0;
            while !stop.load(Ordering::Relaxed) {
                assert!(arrives(from, to));
                sent += 1;
            }
            sent
        });
        work();
        stop.store(true, Ordering::Relaxed);
        sender.join().unwrap()
    })
}

/// Returns the states of UDP, without those of the kernel's neighbour discovery.
pub fn udp_states(instance: &Instance) -> Vec<StateView> {
    let mut states = instance.states().unwrap();
    states.retain(|state| state.protocol == 17);
    states
}
