//! Frames through skipstepd's devices. The data plane accepts a frame only from the device whose
//! index and nonce skipstepd has published. A frame leaves by a device only if the data plane has
//! signed it.

use skipstep_abi::delayed::delayed_order;
use skipstep_abi::handoff::handoff_order;
use skipstep_abi::verdict::direction;
use skipstep_abi::{Delayed, Delayer, Diverted, Diverter, Handoff, Reassembler};
use skipstep_kernel::object::Sizes;
use skipstep_kernel::object::{self, Maps, Programs};
use skipstep_kernel::program::{Program, SkBuff};
use skipstep_ruleset::Reason;
use zerocopy::IntoBytes;

/// Loopback: a test run is on this interface, which stands for the device.
const DEVICE: u32 = 1;

const NONCE: u64 = 0x0706_0504_0302_0100;

/// Return values of the programs: TCX_DROP and TCX_REDIRECT.
const DROP: u32 = 2;
const REDIRECT: u32 = 7;

const LINK: [u8; 14] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 8, 0];

const PACKET: [u8; 28] = [
    0x45, 0, 0, 28, 0, 7, 0, 0, 64, 17, 0x66, 0xc8, 10, 0, 0, 1, 10, 0, 0, 2, 0, 7, 0, 9, 0, 8,
    0xeb, 0xcb,
];

/// A device: its program, its registration by skipstepd, and the frames that return through it.
struct Device<'a> {
    name: &'static str,
    program: &'a Program,
    register: fn(&Maps, u32, u64),
    frame: fn(u64) -> Vec<u8>,
}

fn devices(programs: &Programs) -> [Device<'_>; 3] {
    let fragments = Device {
        name: "fragments",
        program: &programs.return_fragments,
        register: |maps, ifindex, nonce| {
            let value = Reassembler { ifindex, nonce, ..Reassembler::default() };
            maps.reassembler.set(&0, &value).unwrap();
        },
        frame: |nonce| {
            let (order, direction) = (handoff_order::WHOLE, direction::OUT);
            let handoff = Handoff { nonce, ifindex: DEVICE, order, ..Handoff::default() };
            let handoff = Handoff { direction, ..handoff };
            [&LINK[..], &PACKET, handoff.as_bytes()].concat()
        },
    };
    let diverted = Device {
        name: "diverted packets",
        program: &programs.return_diverted,
        register: |maps, ifindex, nonce| {
            let value = Diverter { ifindex, nonce, ..Diverter::default() };
            maps.diverter.set(&0, &value).unwrap();
        },
        frame: |nonce| {
            let direction = direction::OUT;
            let label = Diverted { nonce, ifindex: DEVICE, direction, ..Diverted::default() };
            [&LINK[..], label.as_bytes(), &PACKET].concat()
        },
    };
    let delayed = Device {
        name: "delayed packets",
        program: &programs.return_delayed,
        register: |maps, ifindex, nonce| {
            let value = Delayer { ifindex, nonce, ..Delayer::default() };
            maps.delayer.set(&0, &value).unwrap();
        },
        frame: |nonce| {
            let order = delayed_order::SEND;
            let label = Delayed { nonce, ifindex: DEVICE, order, ..Delayed::default() };
            [&LINK[..], label.as_bytes(), &PACKET].concat()
        },
    };
    [fragments, diverted, delayed]
}

/// Runs a program on a frame at the device. Returns the program's return value, and the number of
/// frames that it counted as foreign.
fn run(maps: &Maps, program: &Program, frame: &[u8]) -> (u32, u64) {
    let before = unattached(maps);
    let mut context = SkBuff::new();
    context.ifindex = DEVICE;
    let returned = program.run_packet(frame, &context, 1).unwrap().returned;
    (returned, unattached(maps) - before)
}

fn unattached(maps: &Maps) -> u64 {
    let cpus = maps.counters.get(&0).unwrap();
    cpus.iter().map(|counters| counters.reason[Reason::Unattached as usize]).sum()
}

#[test]
#[ignore = "needs root"]
fn frames_need_the_nonce_and_the_index_of_their_device() {
    let (maps, programs) = object::load(&Sizes::test()).unwrap();
    for Device { name, program, register, frame } in devices(&programs) {
        assert_eq!(run(&maps, program, &frame(0)), (DROP, 1), "{name}: no device yet");
        register(&maps, DEVICE, NONCE);
        assert_eq!(run(&maps, program, &frame(NONCE)), (REDIRECT, 0), "{name}");
        for bit in 0..u64::BITS {
            let other = frame(NONCE ^ (1 << bit));
            assert_eq!(run(&maps, program, &other), (DROP, 1), "{name}: bit {bit}");
        }
        register(&maps, DEVICE + 1, NONCE);
        assert_eq!(run(&maps, program, &frame(NONCE)), (DROP, 1), "{name}: another device");
        register(&maps, DEVICE, NONCE);
        // a test run cannot sign a frame
        assert_eq!(run(&maps, &programs.hand_over, &frame(NONCE)), (DROP, 1), "{name}: tcx");
        assert_eq!(run(&maps, &programs.hand_out, &frame(NONCE)), (0, 1), "{name}: driver");
    }
}
