//! skipstepd's devices: the programs send packets to them, and packets come back through them. A
//! device lives as long as the process that made it, so the programs see its absence when the
//! process ends. Programs on both sides of a device drop foreign frames (bpf/handoff.h).

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

/// Upper half of the indices of skipstepd's devices, by which the filter exempts them. The kernel
/// counts indices from 1 and does not reach this range. A name would prove nothing, because any
/// interface may have any name.
// Differs from OpenBSD: linux.md, "Devices of skipstepd"
const INDICES: u32 = 0x7066;

/// Number of indices that are tried for a device.
const TRIES: usize = 100;

/// Packets that may wait in front of the device for delayed packets: a burst that comes while the
/// daemon sleeps until the next packet is due.
const BURST: u32 = 4096;

/// Held while a device is made. If another thread holds the kernel's RTNL lock, writing
/// `disable_ipv6` spins. Making a device holds that lock longest, so skipstepd makes one device at
/// a time.
static MAKING: Mutex<()> = Mutex::new(());

/// Purpose of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Fragments, and the datagrams reassembled from them.
    Fragments,
    /// Packets for programs.
    Diverted,
    /// Delayed packets.
    Delayed,
}

impl Purpose {
    /// Returns the name of devices for this purpose; the kernel replaces `%d` by a number.
    fn name(self) -> &'static str {
        match self {
            Purpose::Fragments => "pffrag%d",
            Purpose::Diverted => "pfdivert%d",
            Purpose::Delayed => "pfdelay%d",
        }
    }

    /// Returns the program that takes the frames which skipstepd writes.
    fn taker(self, programs: &Programs) -> &Program {
        match self {
            Purpose::Fragments => &programs.return_fragments,
            Purpose::Diverted => &programs.return_diverted,
            Purpose::Delayed => &programs.return_delayed,
        }
    }
}

/// True for the index of a device of skipstepd.
pub(crate) fn is_ours(index: u32) -> bool {
    index >> 16 == INDICES
}

/// True if skipstepd runs for the filter of the current network namespace: its devices exist.
///
/// # Errors
/// Fails if rtnetlink cannot be opened or refuses the request.
pub fn daemon_runs() -> Result<bool> {
    let get = RouteNetlinkMessage::GetLink(LinkMessage::default());
    let is_own = |object: &RouteNetlinkMessage| match object {
        RouteNetlinkMessage::NewLink(link) => is_ours(link.header.index),
        _ => false,
    };
    Ok(Rtnetlink::open()?.dump(get)?.iter().any(is_own))
}

/// A device of skipstepd.
pub(crate) struct OwnDevice {
    tap: Tap,
    nonce: u64,
    /// Links of the programs that check frames in both directions.
    _links: [OwnedFd; 2],
}

impl OwnDevice {
    /// Makes a device that accepts frames only from `programs` and from the owner of the device.
    pub(crate) fn new(purpose: Purpose, programs: &Programs) -> Result<Self> {
        let _alone = MAKING.lock().unwrap_or_else(PoisonError::into_inner);
        let tap = make(purpose.name())?;
        let (name, index) = (tap.name(), tap.index());
        // nothing but frames that skipstepd writes may come in by it
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

    /// Returns the kernel's index of the device.
    pub(crate) fn index(&self) -> u32 {
        self.tap.index()
    }

    /// Returns the number that each frame through the device must have.
    pub(crate) fn nonce(&self) -> u64 {
        self.nonce
    }

    /// Returns the number of packets for the device that the kernel has dropped for lack of room.
    pub(crate) fn dropped(&self) -> Result<u64> {
        let operation = || "/proc/thread-self/net/dev".to_owned();
        let table = fs::read_to_string("/proc/thread-self/net/dev").context(operation)?;
        Ok(dropped_in(&table, self.tap.name()).unwrap_or(0))
    }
}

impl AsFd for OwnDevice {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.tap.as_fd()
    }
}

/// Makes a device with an index of skipstepd's range.
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

/// Returns the number of dropped packets: the fourth number about sending, after the eight about
/// receiving.
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
    fn own_devices_are_recognized_by_index() {
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
