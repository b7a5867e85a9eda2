//! Ethernet devices with a program at their other end (TAP). The kernel hands over frames that are
//! complete: no checksum is left to do, and none is longer than the device's MTU says.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;

use nix::errno::Errno;
use nix::libc;

use crate::error::{Context, Result};
use crate::program::Program;

/// Where such devices are made.
const MAKER: &str = "/dev/net/tun";

/// A device that is there as long as this value. It may be moved to another network namespace.
pub struct Tap {
    frames: Frames,
    name: String,
    index: u32,
}

/// The other end of a device: any process that holds it takes frames and gives frames.
pub struct Frames(File);

impl Frames {
    /// Takes the next frame that the kernel sends by the device, `None` if there is none.
    ///
    /// # Errors
    /// Those of read(2).
    pub fn take<'b>(&mut self, buffer: &'b mut [u8]) -> io::Result<Option<&'b [u8]>> {
        match self.0.read(buffer) {
            Ok(length) => Ok(Some(&buffer[..length])),
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Gives the kernel a frame that comes in by the device.
    ///
    /// # Errors
    /// Those of write(2).
    pub fn give(&mut self, frame: &[u8]) -> io::Result<()> {
        self.0.write(frame).map(drop)
    }
}

impl From<OwnedFd> for Frames {
    fn from(descriptor: OwnedFd) -> Frames {
        Frames(File::from(descriptor))
    }
}

impl AsFd for Frames {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Tap {
    /// Makes a device in this network namespace. The kernel puts a number where `name` has `%d`.
    pub fn new(name: &str) -> Result<Tap> {
        let file = open_maker()?;
        let (name, index) = make(&file, name).context(|| format!("device {name}"))?;
        Ok(Tap { frames: Frames(file), name, index })
    }

    /// Makes a device that has this index; `None` if another interface has the index.
    pub(crate) fn with_index(name: &str, index: u32) -> Result<Option<Tap>> {
        let file = open_maker()?;
        let wanted = index as libc::c_int;
        // SAFETY: the descriptor is open, the index lives until the call returns
        let taken =
            unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETIFINDEX, &raw const wanted) };
        let made = Errno::result(taken).map_err(io::Error::from).and_then(|_| make(&file, name));
        match made {
            Ok((name, index)) => Ok(Some(Tap { frames: Frames(file), name, index })),
            Err(error) if error.raw_os_error() == Some(libc::EBUSY) => Ok(None),
            Err(error) => Err(error).context(|| format!("device {name}")),
        }
    }

    /// Has a socket filter decide which frames the driver hands to the program at the other end,
    /// whatever way they came.
    pub(crate) fn set_filter(&self, filter: &Program) -> Result<()> {
        let program = filter.as_fd().as_raw_fd();
        let device = self.as_fd().as_raw_fd();
        // SAFETY: both descriptors are open, the number lives until the call returns
        let set = unsafe { libc::ioctl(device, libc::TUNSETFILTEREBPF, &raw const program) };
        let set = Errno::result(set).map_err(io::Error::from);
        set.map(drop).context(|| format!("{}: set the filter", self.name))
    }

    /// What the kernel called it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its number in the network namespace where it was made.
    pub fn index(&self) -> u32 {
        self.index
    }

    /// Takes the next frame that the kernel sends by the device, `None` if there is none.
    pub fn take<'b>(&mut self, buffer: &'b mut [u8]) -> io::Result<Option<&'b [u8]>> {
        self.frames.take(buffer)
    }

    /// Gives the kernel a frame that comes in by the device.
    pub fn give(&mut self, frame: &[u8]) -> io::Result<()> {
        self.frames.give(frame)
    }
}

impl AsFd for Tap {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.frames.as_fd()
    }
}

fn open_maker() -> Result<File> {
    OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(libc::O_NONBLOCK | libc::O_CLOEXEC)
        .open(MAKER)
        .context(|| MAKER.to_owned())
}

/// Makes the device behind an open `/dev/net/tun`; its name and index.
fn make(file: &File, name: &str) -> io::Result<(String, u32)> {
    // SAFETY: a structure of numbers and arrays, of which zero is a value
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    if name.len() >= request.ifr_name.len() {
        return Err(io::Error::new(ErrorKind::InvalidInput, "the name is too long"));
    }
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    request.ifr_ifru.ifru_flags = (libc::IFF_TAP | libc::IFF_NO_PI) as libc::c_short;
    // SAFETY: the descriptor is open, the request lives until the call returns
    let made = unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETIFF, &raw mut request) };
    if made < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has written a name that ends with a zero
    let index = unsafe { libc::if_nametoindex(request.ifr_name.as_ptr()) };
    if index == 0 {
        return Err(io::Error::last_os_error());
    }
    let name = request.ifr_name.iter().take_while(|c| **c != 0).map(|c| *c as u8 as char);
    Ok((name.collect(), index))
}
