//! Devices of skipstepd: where the programs send packets, and where they come back. They last as
//! long as the process that made them, so that the programs see by their absence that nobody is
//! there.

use std::fs;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::sync::{Mutex, PoisonError};

use libbpf_rs::libbpf_sys::{self, BPF_TCX_INGRESS};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::link::{LinkAttribute, LinkFlags, LinkMessage};

use crate::error::{Context, Result};
use crate::netlink::Rtnetlink;
use crate::program::{Program, check};
use crate::tap::Tap;

/// What the names of our devices begin with, a number behind it: they are nobody else's interfaces.
const FRAGMENTS: &str = "pffrag";
const DIVERTED: &str = "pfdivert";
const DELAYED: &str = "pfdelay";

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
    fn prefix(self) -> &'static str {
        match self {
            Purpose::Fragments => FRAGMENTS,
            Purpose::Diverted => DIVERTED,
            Purpose::Delayed => DELAYED,
        }
    }
}

/// Whether an interface is a device of ours.
pub(crate) fn is_ours(interface: &str) -> bool {
    [FRAGMENTS, DIVERTED, DELAYED].iter().any(|prefix| interface.starts_with(prefix))
}

/// A device.
pub(crate) struct OwnDevice {
    tap: Tap,
    /// Attaches the program that takes what comes back.
    _link: OwnedFd,
}

impl OwnDevice {
    /// Makes a device; `program` takes what is written to it.
    pub(crate) fn new(purpose: Purpose, program: &Program) -> Result<Self> {
        let _alone = MAKING.lock().unwrap_or_else(PoisonError::into_inner);
        let tap = Tap::new(&format!("{}%d", purpose.prefix()))?;
        let (name, index) = (tap.name(), tap.index());
        // nothing but what we write there is to come in by it
        let quiet = format!("/proc/sys/net/ipv6/conf/{name}/disable_ipv6");
        if fs::exists(&quiet).unwrap_or(false) {
            fs::write(&quiet, "1").context(|| quiet)?;
        }
        // SAFETY: the program is loaded; no options are given
        let fd = unsafe {
            libbpf_sys::bpf_link_create(
                program.as_fd().as_raw_fd(),
                index as i32,
                BPF_TCX_INGRESS,
                std::ptr::null(),
            )
        };
        check(fd).context(|| format!("{name}: attach"))?;
        // SAFETY: the kernel just gave us this descriptor and nobody else has it
        let link = unsafe { OwnedFd::from_raw_fd(fd) };
        let mut up = LinkMessage::default();
        up.header.index = index;
        up.header.flags = LinkFlags::Up;
        up.header.change_mask = LinkFlags::Up;
        if purpose == Purpose::Delayed {
            up.attributes.push(LinkAttribute::TxQueueLen(BURST));
        }
        Rtnetlink::open()?.order(RouteNetlinkMessage::SetLink(up), 0)?;
        Ok(OwnDevice { tap, _link: link })
    }

    /// The kernel's index.
    pub(crate) fn index(&self) -> u32 {
        self.tap.index()
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
    fn drops_are_those_of_the_device() {
        let table = "Inter-|   Receive\n face |bytes\n    lo: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n\
            pfdivert0:21 22 23 24 25 26 27 28 29 30 31 32 33 34 35 36\n";
        assert_eq!(dropped_in(table, "pfdivert0"), Some(32));
        assert_eq!(dropped_in(table, "pfdivert1"), None);
    }
}
