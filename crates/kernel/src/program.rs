//! Loaded programs, and runs of a program on a packet or an argument (`BPF_PROG_TEST_RUN`).

use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::path::Path;
use std::time::Duration;

use libbpf_rs::libbpf_sys;
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout};

use crate::error::{Context, Result};

/// A program in the kernel.
pub struct Program {
    fd: OwnedFd,
    name: &'static str,
}

/// The kernel's `struct __sk_buff`: the context of a test run before and after it. Only the public
/// fields may be set; the kernel requires zeros in all others.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct SkBuff {
    len: u32,
    pkt_type: u32,
    /// `skb->mark`
    pub mark: u32,
    queue_mapping: u32,
    protocol: u32,
    vlan: [u32; 3],
    /// `skb->priority`
    pub priority: u32,
    /// Index of the interface where the packet arrived.
    pub ingress_ifindex: u32,
    /// Index of the interface where the packet is now.
    pub ifindex: u32,
    tc_index: u32,
    /// `skb->cb`, scratch words of the programs.
    pub cb: [u32; 5],
    addresses: [u32; 19],
    flow_keys: [u32; 2],
    /// `skb->tstamp` as two words, the lower half first.
    pub departure: [u32; 2],
    wire_len: u32,
    /// Number of segments that the kernel has joined.
    pub gso_segs: u32,
    socket: [u32; 2],
    /// Bytes of payload in each segment.
    pub gso_size: u32,
    rest: [u32; 3],
}

impl SkBuff {
    /// Returns a context of zeros.
    pub fn new() -> Self {
        SkBuff::new_zeroed()
    }
}

impl Default for SkBuff {
    fn default() -> Self {
        Self::new()
    }
}

/// The kernel's `struct xdp_md`: the interface where a test's frame arrives, and the end of its
/// bytes, counted from its beginning.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct XdpMd {
    data: u32,
    data_end: u32,
    data_meta: u32,
    ingress_ifindex: u32,
    rx_queue_index: u32,
    egress_ifindex: u32,
}

/// Result of a run.
#[derive(Debug, Clone)]
pub struct Run<C = SkBuff> {
    /// Return value of the program.
    pub returned: u32,
    /// Mean time of a run.
    pub duration: Duration,
    /// The packet after the run, link header first.
    pub packet: Vec<u8>,
    /// The context after the run.
    pub context: C,
}

/// Room after a packet for the bytes that a program may add.
const GROWTH: usize = 256;

impl Program {
    pub(crate) fn new(fd: OwnedFd, name: &'static str) -> Self {
        Program { fd, name }
    }

    /// Opens the program pinned in `directory`.
    pub(crate) fn open(directory: &Path, name: &'static str) -> Result<Self> {
        let path = directory.join(name);
        let fd = libbpf_rs::Program::fd_from_pinned_path(&path)
            .context(|| format!("{}: open", path.display()))?;
        Ok(Program { fd, name })
    }

    /// Returns the kernel's id of the program.
    pub(crate) fn id(&self) -> Result<u32> {
        Ok(info(self.as_fd()).context(|| format!("program {}: look", self.name))?.id)
    }

    /// Attaches the program to a hook of `target`, an interface's index, or 0 for the network
    /// namespace. The link lasts as long as it is held or pinned.
    pub(crate) fn link(
        &self,
        target: u32,
        hook: u32,
        options: libbpf_sys::bpf_link_create_opts,
    ) -> io::Result<OwnedFd> {
        let options = libbpf_sys::bpf_link_create_opts {
            sz: size_of::<libbpf_sys::bpf_link_create_opts>() as _,
            ..options
        };
        // SAFETY: the program is loaded, and the options are those of this libbpf
        let fd = unsafe {
            libbpf_sys::bpf_link_create(
                self.fd.as_raw_fd(),
                target as i32,
                hook,
                &raw const options,
            )
        };
        check(fd)?;
        // SAFETY: the kernel has just returned this descriptor, and nothing else owns it
        Ok(unsafe { OwnedFd::from_raw_fd(fd) })
    }

    /// Pins the program in `directory` under its name.
    pub(crate) fn pin(&self, directory: &Path) -> Result<()> {
        pin(self.fd.as_fd(), &directory.join(self.name))
    }

    /// Runs the program `repeat` times on a packet that begins with its Ethernet header.
    ///
    /// # Errors
    /// Fails if the kernel refuses the run, for example for a frame shorter than an Ethernet
    /// header.
    pub fn run_packet(&self, packet: &[u8], context: &SkBuff, repeat: u32) -> Result<Run> {
        self.run_on(packet, context, repeat, packet.len() + GROWTH)
    }

    /// Runs the program once on a packet. The packet may grow to `room` bytes.
    ///
    /// # Errors
    /// Fails if the kernel refuses the run, or if the packet outgrows the room.
    pub fn run_packet_with_room(
        &self,
        packet: &[u8],
        context: &SkBuff,
        room: usize,
    ) -> Result<Run> {
        self.run_on(packet, context, 1, room + GROWTH)
    }

    /// Runs an XDP program `repeat` times on a frame that arrives on an interface of the calling
    /// thread's network namespace. Returns the last return value and the mean time of a run.
    ///
    /// # Errors
    /// Fails if the kernel refuses the run.
    pub fn run_frame(&self, frame: &[u8], ifindex: u32, repeat: u32) -> Result<(u32, Duration)> {
        let context =
            XdpMd { data_end: frame.len() as u32, ingress_ifindex: ifindex, ..XdpMd::new_zeroed() };
        let run = self.run_on(frame, &context, repeat, frame.len() + GROWTH)?;
        Ok((run.returned, run.duration))
    }

    fn run_on<C>(&self, packet: &[u8], context: &C, repeat: u32, room: usize) -> Result<Run<C>>
    where
        C: IntoBytes + FromBytes + Immutable,
    {
        let mut data = vec![0; room];
        let mut after = C::new_zeroed();
        let mut options = libbpf_sys::bpf_test_run_opts {
            sz: size_of::<libbpf_sys::bpf_test_run_opts>() as _,
            data_in: packet.as_ptr().cast(),
            data_size_in: packet.len() as u32,
            data_out: data.as_mut_ptr().cast(),
            data_size_out: data.len() as u32,
            ctx_in: context.as_bytes().as_ptr().cast(),
            ctx_size_in: size_of::<C>() as u32,
            ctx_out: after.as_mut_bytes().as_mut_ptr().cast(),
            ctx_size_out: size_of::<C>() as u32,
            repeat: repeat.min(i32::MAX as u32) as i32,
            ..Default::default()
        };
        // SAFETY: all four buffers live until the call returns and have the sizes given
        let result =
            unsafe { libbpf_sys::bpf_prog_test_run_opts(self.fd.as_raw_fd(), &raw mut options) };
        check(result).context(|| format!("program {}: run", self.name))?;
        data.truncate(options.data_size_out as usize);
        Ok(Run {
            returned: options.retval,
            duration: Duration::from_nanos(options.duration.into()),
            packet: data,
            context: after,
        })
    }

    /// Runs a program of type syscall with an argument. Returns its return value.
    ///
    /// # Errors
    /// Fails if the kernel refuses the run.
    pub fn call<T: IntoBytes + Immutable>(&self, argument: &T) -> Result<u32> {
        // the kernel writes the argument back after the run
        let mut bytes = argument.as_bytes().to_vec();
        let mut options = libbpf_sys::bpf_test_run_opts {
            sz: size_of::<libbpf_sys::bpf_test_run_opts>() as _,
            ctx_in: if bytes.is_empty() { std::ptr::null() } else { bytes.as_mut_ptr().cast() },
            ctx_size_in: bytes.len() as u32,
            ..Default::default()
        };
        // SAFETY: the bytes live until the call returns, are writable, and have the size given
        let result =
            unsafe { libbpf_sys::bpf_prog_test_run_opts(self.fd.as_raw_fd(), &raw mut options) };
        check(result).context(|| format!("program {}: run", self.name))?;
        Ok(options.retval)
    }
}

impl AsFd for Program {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Returns the kernel's record of a program.
pub(crate) fn info(program: BorrowedFd<'_>) -> io::Result<libbpf_sys::bpf_prog_info> {
    let mut info = libbpf_sys::bpf_prog_info::default();
    let mut length = size_of_val(&info) as u32;
    // SAFETY: the descriptor is open, and the info has the length given
    let result = unsafe {
        libbpf_sys::bpf_prog_get_info_by_fd(program.as_raw_fd(), &raw mut info, &raw mut length)
    };
    check(result).map(|()| info)
}

/// Opens the program with this id.
pub(crate) fn by_id(id: u32) -> io::Result<OwnedFd> {
    // SAFETY: the function takes a number only
    let fd = unsafe { libbpf_sys::bpf_prog_get_fd_by_id(id) };
    check(fd)?;
    // SAFETY: the kernel has just returned this descriptor, and nothing else owns it
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Pins a program or link at `path`.
pub(crate) fn pin(fd: BorrowedFd<'_>, path: &Path) -> Result<()> {
    let c_path = CString::new(path.as_os_str().as_encoded_bytes())
        .map_err(io::Error::from)
        .context(|| format!("{}: pin", path.display()))?;
    // SAFETY: the path is a C string that outlives the call, and the descriptor is open
    let result = unsafe { libbpf_sys::bpf_obj_pin(fd.as_raw_fd(), c_path.as_ptr()) };
    check(result).context(|| format!("{}: pin", path.display()))
}

/// Converts the return value of a libbpf function, which is minus errno on error.
pub(crate) fn check(result: i32) -> io::Result<()> {
    if result < 0 { Err(io::Error::from_raw_os_error(-result)) } else { Ok(()) }
}

/// Loads a program of two instructions that passes every packet. Measurements subtract its time.
///
/// # Errors
/// Fails if the kernel refuses the program.
pub fn empty() -> Result<Program> {
    /// `TCX_NEXT`: continue with the next program
    const TCX_NEXT: i32 = -1;
    let instructions = [
        libbpf_sys::bpf_insn { code: 0xb7, imm: TCX_NEXT, ..Default::default() },
        libbpf_sys::bpf_insn { code: 0x95, ..Default::default() },
    ];
    let name = c"pf_empty";
    // SAFETY: name, licence and instructions outlive the call; no options are given
    let fd = unsafe {
        libbpf_sys::bpf_prog_load(
            libbpf_sys::BPF_PROG_TYPE_SCHED_CLS,
            name.as_ptr(),
            c"GPL".as_ptr(),
            instructions.as_ptr(),
            instructions.len() as _,
            std::ptr::null_mut(),
        )
    };
    check(fd).context(|| "program pf_empty: load".to_owned())?;
    // SAFETY: the kernel has just returned this descriptor, and nothing else owns it
    let fd = unsafe { OwnedFd::from_raw_fd(fd) };
    Ok(Program { fd, name: "pf_empty" })
}
