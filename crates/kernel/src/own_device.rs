//! Devices of skipstepd: where the programs send packets, and where they come back. They last as
//! long as the process that made them, so that the programs see by their absence that nobody is
//! there. Programs on both sides of a device drop frames of others (bpf/handoff.h).

use std::fs;
use std::io::{Error as IoError, ErrorKind};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Mutex, PoisonError};

use libbpf_rs::libbpf_sys::{BPF_TCX_EGRESS, BPF_TCX_INGRESS};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::link::{LinkAttribute, LinkFlags, LinkMessage};

use crate::error::{Context, Result};
use crate::netlink::Rtnetlink;
use crate::object::{Programs, random};
use crate::program::Program;
use crate::tap::Tap;

/// The upper half of the indices of skipstepd's devices, by which the filter leaves them alone: a
/// number that the kernel, which counts from 1, does not come to. Names say nothing, since any
/// interface may have such a name.
const INDICES: u32 = 0x7066;

/// Indices that are tried for a device.
const TRIES: usize = 100;

/// Packets that may wait in front of the device of those that are delayed: a burst that comes while
/// the daemon sleeps until the next is due.
const BURST: u32 = 4096;

/// Held while a device is made. Where something else has the kernel's lock of networks, writing
/// `disable_ipv6` does not wait but spins; our other devices, whose making takes that lock for
/// longest, are not to be the cause.
static MAKING: Mutex<()> = Mutex::new(());

/// What a device is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Fragments, and datagrams that they become.
    Fragments,
    /// Packets for programs.
    Diverted,
    /// Packets that wait.
    Delayed,
}

impl Purpose {
    /// The name of devices for this; the kernel puts a number where it has `%d`.
    fn name(self) -> &'static str {
        match self {
            Purpose::Fragments => "pffrag%d",
            Purpose::Diverted => "pfdivert%d",
            Purpose::Delayed => "pfdelay%d",
        }
    }

    /// The program that takes the frames which skipstepd writes.
    fn taker(self, programs: &Programs) -> &Program {
        match self {
            Purpose::Fragments => &programs.come_back,
            Purpose::Diverted => &programs.give_back,
            Purpose::Delayed => &programs.let_go,
        }
    }
}

/// True if this is the index of a device of skipstepd.
pub(crate) fn is_ours(index: u32) -> bool {
    index >> 16 == INDICES
}

/// A device.
pub(crate) struct OwnDevice {
    tap: Tap,
    nonce: u64,
    /// Attach the programs that look at frames in both directions.
    _links: [OwnedFd; 2],
}

impl OwnDevice {
    /// Makes a device that takes frames of `programs` and of who holds the device, and no others.
    pub(crate) fn new(purpose: Purpose, programs: &Programs) -> Result<Self> {
        let _alone = MAKING.lock().unwrap_or_else(PoisonError::into_inner);
        let tap = make(purpose.name())?;
        let (name, index) = (tap.name(), tap.index());
        // nothing but what we write there is to come in by it
        let quiet = format!("/proc/sys/net/ipv6/conf/{name}/disable_ipv6");
        if fs::exists(&quiet).unwrap_or(false) {
            fs::write(&quiet, "1").context(|| quiet)?;
        }
        tap.set_filter(&programs.hand_out)?;
        let attach = |program: &Program, hook| {
            program.link(index, hook, Default::default()).context(|| format!("{name}: attach"))
        };
        let links = [
            attach(&programs.hand_over, BPF_TCX_EGRESS)?,
            attach(purpose.taker(programs), BPF_TCX_INGRESS)?,
        ];
        let mut up = LinkMessage::default();
        up.header.index = index;
        up.header.flags = LinkFlags::Up;
        up.header.change_mask = LinkFlags::Up;
        if purpose == Purpose::Delayed {
            up.attributes.push(LinkAttribute::TxQueueLen(BURST));
        }
        Rtnetlink::open()?.order(RouteNetlinkMessage::SetLink(up), 0)?;
        Ok(OwnDevice { tap, nonce: random()?, _links: links })
    }

    /// The kernel's index.
    pub(crate) fn index(&self) -> u32 {
        self.tap.index()
    }

    /// The number that each frame by the device must have.
    pub(crate) fn nonce(&self) -> u64 {
        self.nonce
    }

    /// Packets for it that the kernel had no room for, so far.
    pub(crate) fn dropped(&self) -> Result<u64> {
        let what = || "/proc/thread-self/net/dev".to_owned();
        let table = fs::read_to_string("/proc/thread-self/net/dev").context(what)?;
        Ok(dropped_in(&table, self.tap.name()).unwrap_or(0))
    }
}

impl AsFd for OwnDevice {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.tap.as_fd()
    }
}

/// Makes a device with one of skipstepd's indices.
fn make(name: &str) -> Result<Tap> {
    for _ in 0..TRIES {
        let index = (INDICES << 16) | u32::from(random::<u16>()?);
        if let Some(tap) = Tap::with_index(name, index)? {
            return Ok(tap);
        }
    }
    let busy = IoError::new(ErrorKind::AddrInUse, "other interfaces have its indices");
    Err(busy).context(|| format!("device {name}"))
}

/// The fourth number about what is sent, behind the eight about what is received.
fn dropped_in(table: &str, name: &str) -> Option<u64> {
    let (_, numbers) = table
        .lines()
        .find_map(|line| line.split_once(':').filter(|(interface, _)| interface.trim() == name))?;
    numbers.split_whitespace().nth(11)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_index_says_whose_a_device_is() {
        for index in [0x7066_0000, 0x7066_ffff] {
            assert!(is_ours(index));
        }
        for index in [0, 1, 0x7065_ffff, 0x7067_0000] {
            assert!(!is_ours(index), "{index}");
        }
    }

    #[test]
    fn drops_are_those_of_the_device() {
        let table = "Inter-|   Receive\n face |bytes\n    lo: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n\
            pfdivert0:21 22 23 24 25 26 27 28 29 30 31 32 33 34 35 36\n";
        assert_eq!(dropped_in(table, "pfdivert0"), Some(32));
        assert_eq!(dropped_in(table, "pfdivert1"), None);
    }
}
