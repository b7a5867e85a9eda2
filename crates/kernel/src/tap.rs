//! Ethernet devices with a program at their other end (TAP). The kernel hands over complete frames:
//! checksums are filled in, and no frame is longer than the device's MTU.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;

use nix::errno::Errno;
use nix::libc;

use crate::error::{Context, Result};
use crate::program::Program;

/// Device file that makes TAP devices.
const MAKER: &str = "/dev/net/tun";

/// A TAP device, which lives as long as this value. The device may be moved to another network
/// namespace.
pub struct Tap {
    frames: Frames,
    name: String,
    index: u32,
}

/// The other end of a device. Any process that holds it reads and writes frames.
pub struct Frames(File);

impl Frames {
    /// Reads the next frame that the kernel sends through the device; `None` if there is none.
    ///
    /// # Errors
    /// Fails if read(2) fails.
    pub fn take<'b>(&mut self, buffer: &'b mut [u8]) -> io::Result<Option<&'b [u8]>> {
        match self.0.read(buffer) {
            Ok(length) => Ok(Some(&buffer[..length])),
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Writes a frame, which arrives on the device.
    ///
    /// # Errors
    /// Fails if write(2) fails.
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
    /// Makes a device in this network namespace. The kernel replaces `%d` in `name` by a number.
    ///
    /// # Errors
    /// Fails if the process lacks CAP_NET_ADMIN, or if the name is too long or taken.
    pub fn new(name: &str) -> Result<Tap> {
        let file = open_maker()?;
        let (name, index) = make(&file, name).context(|| format!("device {name}"))?;
        Ok(Tap { frames: Frames(file), name, index })
    }

    /// Makes a device with this index; `None` if another interface has the index.
    pub(crate) fn with_index(name: &str, index: u32) -> Result<Option<Tap>> {
        let file = open_maker()?;
        let wanted = index as libc::c_int;
        // SAFETY: the descriptor is open, and the index lives until the call returns
        let taken =
            unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETIFINDEX, &raw const wanted) };
        let made = Errno::result(taken).map_err(io::Error::from).and_then(|_| make(&file, name));
        match made {
            Ok((name, index)) => Ok(Some(Tap { frames: Frames(file), name, index })),
            Err(error) if error.raw_os_error() == Some(libc::EBUSY) => Ok(None),
            Err(error) => Err(error).context(|| format!("device {name}")),
        }
    }

    /// Sets a socket filter in the driver, which decides about all frames for the program at the
    /// other end.
    pub(crate) fn set_filter(&self, filter: &Program) -> Result<()> {
        let program = filter.as_fd().as_raw_fd();
        let device = self.as_fd().as_raw_fd();
        // SAFETY: both descriptors are open, and the number lives until the call returns
        let set = unsafe { libc::ioctl(device, libc::TUNSETFILTEREBPF, &raw const program) };
        let set = Errno::result(set).map_err(io::Error::from);
        set.map(drop).context(|| format!("{}: set the filter", self.name))
    }

    /// Returns the device's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the device's index in the network namespace where it was made.
    pub fn index(&self) -> u32 {
        self.index
    }

    /// Reads the next frame that the kernel sends through the device; `None` if there is none.
    ///
    /// # Errors
    /// Fails if read(2) fails.
    pub fn take<'b>(&mut self, buffer: &'b mut [u8]) -> io::Result<Option<&'b [u8]>> {
        self.frames.take(buffer)
    }

    /// Writes a frame, which arrives on the device.
    ///
    /// # Errors
    /// Fails if write(2) fails.
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

/// Makes the device of an open `/dev/net/tun`. Returns its name and index.
fn make(file: &File, name: &str) -> io::Result<(String, u32)> {
    // SAFETY: a structure of numbers and arrays, for which zero is valid
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    if name.len() >= request.ifr_name.len() {
        return Err(io::Error::new(ErrorKind::InvalidInput, "the name is too long"));
    }
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    request.ifr_ifru.ifru_flags = (libc::IFF_TAP | libc::IFF_NO_PI) as libc::c_short;
    // SAFETY: the descriptor is open, and the request lives until the call returns
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
