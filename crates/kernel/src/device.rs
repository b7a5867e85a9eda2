//! skipstepd's device: where the programs send fragments, and where datagrams come back. It is a TAP
//! that lasts as long as this process, so that the programs see by its absence that nobody is there.

use std::fs;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::time::Duration;

use libbpf_rs::libbpf_sys::{self, BPF_TCX_INGRESS};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::link::{LinkFlags, LinkMessage};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use skipstep_abi as abi;
use skipstep_reassembly::Counters;

use crate::error::{Context, Result};
use crate::instance::Instance;
use crate::netlink::Rtnetlink;
use crate::program::check;
use crate::tap::Tap;

/// Devices of ours are called so, with a number behind it; they are nobody else's interfaces.
pub(crate) const PREFIX: &str = "pffrag";

/// The device of an instance.
pub struct Device {
    tap: Tap,
    /// Attaches the program that takes what comes back.
    _link: OwnedFd,
}

impl Device {
    /// Makes the device of `instance` and tells the programs about it.
    pub fn new(instance: &Instance) -> Result<Self> {
        let tap = Tap::new(&format!("{PREFIX}%d"))?;
        let (name, index) = (tap.name(), tap.index());
        // nothing but what we write there is to come in by it
        let quiet = format!("/proc/sys/net/ipv6/conf/{name}/disable_ipv6");
        if fs::exists(&quiet).unwrap_or(false) {
            fs::write(&quiet, "1").context(|| quiet)?;
        }
        // SAFETY: the program is loaded; no options are given
        let fd = unsafe {
            libbpf_sys::bpf_link_create(
                instance.programs.come_back.as_fd().as_raw_fd(),
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
        Rtnetlink::open()?.order(RouteNetlinkMessage::SetLink(up), 0)?;
        let device = Device { tap, _link: link };
        device.publish(instance, 0, Counters::default())?;
        Ok(device)
    }

    /// Tells the programs where the device is, and pfctl what was done.
    pub fn publish(&self, instance: &Instance, pieces: usize, counters: Counters) -> Result<()> {
        let Counters { searches, inserts, removals } = counters;
        let pieces = pieces as u32;
        let ifindex = self.tap.index();
        let value = abi::Reassembler { ifindex, pieces, searches, inserts, removals };
        instance.maps.reassembler.set(&0, &value)
    }

    /// Waits for a frame at most `timeout`. Whether there is one.
    pub fn wait(&self, timeout: Duration) -> Result<bool> {
        let timeout = PollTimeout::try_from(timeout).unwrap_or(PollTimeout::MAX);
        match poll(&mut [PollFd::new(self.tap.as_fd(), PollFlags::POLLIN)], timeout) {
            Ok(ready) => Ok(ready > 0),
            Err(nix::errno::Errno::EINTR) => Ok(false),
            Err(error) => {
                Err(std::io::Error::from(error)).context(|| "device for fragments: wait".to_owned())
            }
        }
    }

    /// Takes the next frame, `None` if there is none.
    pub fn take<'b>(&mut self, buffer: &'b mut [u8]) -> Result<Option<&'b [u8]>> {
        self.tap.take(buffer).context(|| "device for fragments: read".to_owned())
    }

    /// Gives a frame back.
    pub fn give(&mut self, frame: &[u8]) -> Result<()> {
        self.tap.give(frame).context(|| "device for fragments: write".to_owned())
    }
}
