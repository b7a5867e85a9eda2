//! Offloads of devices: work on packets that the device does for the kernel, and the joining and
//! splitting of packets.

use std::ffi::CStr;
use std::io;
use std::net::UdpSocket;
use std::os::fd::AsRawFd;

use nix::libc;

use crate::error::{Context, Result};

/// An offload that can be switched on and off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Offload {
    /// checksums of received packets
    RxChecksum,
    /// checksums of sent packets
    TxChecksum,
    /// scatter and gather
    ScatterGather,
    /// TCP segmentation by the device
    Tso,
    /// segmentation as late as possible, in software
    Gso,
    /// joining of received packets
    Gro,
}

impl Offload {
    /// All offloads, in an order in which each can be switched off.
    pub const ALL: [Offload; 6] = [
        Offload::Tso,
        Offload::Gso,
        Offload::Gro,
        Offload::ScatterGather,
        Offload::TxChecksum,
        Offload::RxChecksum,
    ];

    /// Returns the offload's name in ethtool(8).
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

    /// Returns the commands to get and to set it: `ETHTOOL_G*` and `ETHTOOL_S*` of linux/ethtool.h.
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

/// Returns true if a device of this thread's network namespace has the offload switched on.
///
/// # Errors
/// Fails if there is no such device, or if the device does not know the command.
pub fn get(device: &str, offload: Offload) -> Result<bool> {
    ethtool_value(device, offload.commands().0, 0)
        .map(|value| value != 0)
        .context(|| operation(device, offload))
}

/// Switches an offload on or off. Leaves a device that cannot change the offload as it is; [`get`]
/// returns the result.
///
/// # Errors
/// Fails if there is no such device, or if the process lacks CAP_NET_ADMIN.
pub fn set(device: &str, offload: Offload, on: bool) -> Result<()> {
    match ethtool_value(device, offload.commands().1, on.into()) {
        Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => Ok(()),
        other => other.map(drop).context(|| operation(device, offload)),
    }
}

/// `ETHTOOL_GFLAGS` and `ETHTOOL_SFLAGS`, for the offloads without commands of their own.
const FLAGS: (u32, u32) = (0x25, 0x26);
/// `ETH_FLAG_RXVLAN`.
const TAKES_TAGS_OFF: u32 = 1 << 8;
/// `ETH_FLAG_LRO`.
const JOINS_PACKETS: u32 = 1 << 15;

/// True if a device removes VLAN tags from received frames (`rxvlan`).
pub fn strips_vlan_tags(device: &str) -> bool {
    ethtool_value(device, FLAGS.0, 0).is_ok_and(|flags| flags & TAKES_TAGS_OFF != 0)
}

/// Lets a device join the packets that it receives (`lro`), or forbids it. Joined packets lose
/// their boundaries. Returns true if the setting changed.
pub fn set_lro(device: &str, join: bool) -> bool {
    set_flag(device, JOINS_PACKETS, join)
}

/// True if a device joins the packets that it receives (`lro`).
pub fn joins_packets(device: &str) -> bool {
    ethtool_value(device, FLAGS.0, 0).is_ok_and(|flags| flags & JOINS_PACKETS != 0)
}

/// Returns the name of a device's driver; `None` if the driver does not say.
pub fn driver(device: &str) -> Option<String> {
    // ETHTOOL_GDRVINFO
    let mut info = Driver { command: 0x3, ..Driver::default() };
    // SAFETY: the kernel reads and writes a `struct ethtool_drvinfo` for this command, and `Driver`
    // has this layout
    unsafe { call(device, &raw mut info) }.ok()?;
    let name = CStr::from_bytes_until_nul(&info.name).ok()?.to_str().ok()?;
    (!name.is_empty()).then(|| name.to_owned())
}

/// Lets a device keep the VLAN tags of received frames. Returns true if the setting changed.
pub fn keep_vlan_tags(device: &str) -> bool {
    set_flag(device, TAKES_TAGS_OFF, false)
}

fn set_flag(device: &str, flag: u32, on: bool) -> bool {
    let Ok(old) = ethtool_value(device, FLAGS.0, 0) else { return false };
    let new = if on { old | flag } else { old & !flag };
    old != new && ethtool_value(device, FLAGS.1, new).is_ok()
}

/// Returns the link speed of a device in bits a second; `None` if the link is down or its speed is
/// unknown.
pub fn link_speed(device: &str) -> Option<u64> {
    // ETHTOOL_GSET
    let mut settings = Settings { command: 0x1, ..Settings::default() };
    // SAFETY: the kernel reads and writes a `struct ethtool_cmd` for this command, and `Settings`
    // has this layout
    unsafe { call(device, &raw mut settings) }.ok()?;
    let megabits = u32::from(settings.speed) | u32::from(settings.speed_high) << 16;
    // an unknown speed is all ones, of 16 bits or of 32
    let known = ![0, 0xffff, u32::MAX].contains(&megabits);
    known.then_some(u64::from(megabits) * 1_000_000)
}

fn operation(device: &str, offload: Offload) -> String {
    format!("device {device}: offload {}", offload.name())
}

/// `struct ethtool_value` of linux/ethtool.h.
#[repr(C)]
struct Value {
    command: u32,
    data: u32,
}

/// `struct ethtool_cmd` of linux/ethtool.h.
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

/// `struct ethtool_drvinfo` of linux/ethtool.h.
#[repr(C)]
#[derive(Default)]
struct Driver {
    command: u32,
    name: [u8; 32],
    /// Version of driver and firmware, place on the bus, version of the ROM.
    versions: [[u8; 32]; 4],
    reserved: [u8; 12],
    lengths: [u32; 5],
}

fn ethtool_value(device: &str, command: u32, data: u32) -> io::Result<u32> {
    let mut value = Value { command, data };
    // SAFETY: all commands of the callers read and write a `struct ethtool_value`
    unsafe { call(device, &raw mut value) }.map(|()| value.data)
}

/// Carries out an ethtool command on a device.
///
/// # Safety
/// `order` points to a valid structure of the kind that its command, its first word, reads and
/// writes.
unsafe fn call<T>(device: &str, order: *mut T) -> io::Result<()> {
    let socket = UdpSocket::bind("0.0.0.0:0")?;
    // SAFETY: a structure of numbers, arrays and pointers, for which zero is valid
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    if device.len() >= request.ifr_name.len() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "the name is too long"));
    }
    for (to, from) in request.ifr_name.iter_mut().zip(device.bytes()) {
        *to = from as libc::c_char;
    }
    request.ifr_ifru.ifru_data = order.cast();
    // SAFETY: the socket is open; the request lives until the call returns; so does `order`, as the
    // caller guarantees
    let done = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCETHTOOL, &raw mut request) };
    if done < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_structure_of_the_kernel_has_its_size() {
        assert_eq!(size_of::<Driver>(), 196);
        assert_eq!(size_of::<Settings>(), 44);
        assert_eq!(std::mem::offset_of!(Settings, speed_high), 28);
    }

    #[test]
    fn a_device_without_a_link_has_no_speed() {
        assert_eq!(link_speed("lo"), None);
        assert_eq!(link_speed("a-name-that-is-too-long"), None);
    }
}
