//! What a device does for the kernel, or the kernel for a device, packet by packet or for many at
//! once.

use std::io;
use std::net::UdpSocket;
use std::os::fd::AsRawFd;

use nix::libc;

use crate::error::{Context, Result};

/// Something that can be switched on and off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Offload {
    /// checksums of what is received
    RxChecksum,
    /// checksums of what is sent
    TxChecksum,
    /// scatter and gather
    ScatterGather,
    /// TCP is cut into segments by the device
    Tso,
    /// long packets are cut as late as can be
    Gso,
    /// received packets are joined
    Gro,
}

impl Offload {
    /// All of them, in an order in which each can be switched off.
    pub const ALL: [Offload; 6] = [
        Offload::Tso,
        Offload::Gso,
        Offload::Gro,
        Offload::ScatterGather,
        Offload::TxChecksum,
        Offload::RxChecksum,
    ];

    /// What ethtool(8) calls it.
    pub fn name(self) -> &'static str {
        match self {
            Offload::RxChecksum => "rx",
            Offload::TxChecksum => "tx",
            Offload::ScatterGather => "sg",
            Offload::Tso => "tso",
            Offload::Gso => "gso",
            Offload::Gro => "gro",
        }
    }

    /// `ETHTOOL_G*` and `ETHTOOL_S*` of linux/ethtool.h.
    fn commands(self) -> (u32, u32) {
        match self {
            Offload::RxChecksum => (0x14, 0x15),
            Offload::TxChecksum => (0x16, 0x17),
            Offload::ScatterGather => (0x18, 0x19),
            Offload::Tso => (0x1e, 0x1f),
            Offload::Gso => (0x23, 0x24),
            Offload::Gro => (0x2b, 0x2c),
        }
    }
}

/// Whether a device of this thread's network namespace does it.
pub fn get(device: &str, offload: Offload) -> Result<bool> {
    ask(device, offload.commands().0, 0).map(|value| value != 0).context(|| what(device, offload))
}

/// Switches it on or off. A device that cannot be told is left as it is: [`get`] says how that is.
pub fn set(device: &str, offload: Offload, on: bool) -> Result<()> {
    match ask(device, offload.commands().1, on.into()) {
        Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => Ok(()),
        other => other.map(drop).context(|| what(device, offload)),
    }
}

/// `ETHTOOL_GFLAGS` and `ETHTOOL_SFLAGS`: of all that has no command of its own.
const FLAGS: (u32, u32) = (0x25, 0x26);
/// `ETH_FLAG_RXVLAN`.
const TAKES_TAGS_OFF: u32 = 1 << 8;
/// `ETH_FLAG_LRO`.
const JOINS_PACKETS: u32 = 1 << 15;

/// Whether a device takes VLAN tags off the frames it gives to the kernel: `rxvlan`.
pub fn takes_tags_off(device: &str) -> bool {
    ask(device, FLAGS.0, 0).is_ok_and(|flags| flags & TAKES_TAGS_OFF != 0)
}

/// Has a device join the packets of a connection that it receives, so that nobody can tell them
/// apart any more (`lro`), or no more. Whether that has changed anything.
pub fn let_join_packets(device: &str, join: bool) -> bool {
    set_flag(device, JOINS_PACKETS, join)
}

/// Has a device leave VLAN tags on the frames that it gives to the kernel. Whether that has changed
/// anything.
pub fn let_leave_tags_on(device: &str) -> bool {
    set_flag(device, TAKES_TAGS_OFF, false)
}

fn set_flag(device: &str, flag: u32, on: bool) -> bool {
    let Ok(old) = ask(device, FLAGS.0, 0) else { return false };
    let new = if on { old | flag } else { old & !flag };
    old != new && ask(device, FLAGS.1, new).is_ok()
}

/// Bits a second of a device's link, where it has one that is up and says so.
pub fn link_speed(device: &str) -> Option<u64> {
    // ETHTOOL_GSET
    let mut settings = Settings { command: 0x1, ..Settings::default() };
    // SAFETY: the kernel writes a `struct ethtool_cmd` for this command, which is what it is given
    unsafe { call(device, &raw mut settings) }.ok()?;
    let megabits = u32::from(settings.speed) | u32::from(settings.speed_high) << 16;
    // what is not known is all ones, of 16 bits or of 32
    let known = ![0, 0xffff, u32::MAX].contains(&megabits);
    known.then_some(u64::from(megabits) * 1_000_000)
}

fn what(device: &str, offload: Offload) -> String {
    format!("device {device}: offload {}", offload.name())
}

/// `struct ethtool_value` of linux/ethtool.h.
#[repr(C)]
struct Value {
    command: u32,
    data: u32,
}

/// `struct ethtool_cmd`.
#[repr(C)]
#[derive(Default)]
struct Settings {
    command: u32,
    supported: u32,
    advertised: u32,
    speed: u16,
    ports: [u8; 6],
    most_packets: [u32; 2],
    speed_high: u16,
    twisted_pair: [u8; 2],
    partner: u32,
    reserved: [u32; 2],
}

fn ask(device: &str, command: u32, data: u32) -> io::Result<u32> {
    let mut value = Value { command, data };
    // SAFETY: all commands that are asked here read and write a `struct ethtool_value`
    unsafe { call(device, &raw mut value) }.map(|()| value.data)
}

/// Has a device carry out a command of ethtool.
///
/// # Safety
/// `order` is a valid structure of the kind that its command, the first word of it, reads and
/// writes.
unsafe fn call<T>(device: &str, order: *mut T) -> io::Result<()> {
    let socket = UdpSocket::bind("0.0.0.0:0")?;
    // SAFETY: a structure of numbers, arrays and pointers, of which zero is a value
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    if device.len() >= request.ifr_name.len() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "the name is too long"));
    }
    for (to, from) in request.ifr_name.iter_mut().zip(device.bytes()) {
        *to = from as libc::c_char;
    }
    request.ifr_ifru.ifru_data = order.cast();
    // SAFETY: the socket is open; the request lives until the call returns, and so does the order,
    // as the caller says
    let done = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCETHTOOL, &raw mut request) };
    if done < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_structure_of_the_kernel_has_its_size() {
        assert_eq!(size_of::<Settings>(), 44);
        assert_eq!(std::mem::offset_of!(Settings, speed_high), 28);
    }

    #[test]
    fn what_has_no_link_has_no_speed() {
        assert_eq!(link_speed("lo"), None);
        assert_eq!(link_speed("a-name-that-is-too-long"), None);
    }
}
