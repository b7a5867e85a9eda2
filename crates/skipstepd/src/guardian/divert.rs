//! The guardian of the worker for diverted packets: it creates the device and the sockets to which
//! programs connect.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use nix::sys::socket::{
    AddressFamily, Backlog, SockFlag, SockType, UnixAddr, bind, listen, setsockopt, socket, sockopt,
};
use skipstep_kernel::{Diverter, Error, Instance, private};

use crate::complaint::Complaint;
use crate::divert::WAITING;
use crate::guardian::{Function, Worker};
use crate::task::{Order, Request, Task};

/// The device for the diverted packets of an instance, and its ports.
pub struct DivertGuardian<'i> {
    instance: &'i Instance,
    device: Diverter,
    /// Generation of the rule set whose ports are open; `None` before the first.
    generation: Option<u32>,
    /// Ports that the rules name.
    wanted: BTreeSet<u16>,
    /// Ports that the worker has open.
    open: BTreeSet<u16>,
    directory: PathBuf,
    complaint: Complaint,
}

impl<'i> DivertGuardian<'i> {
    /// Creates the device.
    ///
    /// # Errors
    /// Fails if the kernel refuses the device.
    pub fn new(instance: &'i Instance) -> Result<Self, Error> {
        Ok(DivertGuardian {
            instance,
            device: Diverter::new(instance)?,
            generation: None,
            wanted: BTreeSet::new(),
            open: BTreeSet::new(),
            directory: instance.divert_directory(),
            complaint: Complaint::default(),
        })
    }

    /// Opens the ports that the rules name and the worker lacks. The worker closes ports that rules
    /// no longer name. A port with a program stays open, because states can still divert to the
    /// program.
    fn open_ports(&mut self, worker: &Worker) -> Result<(), Error> {
        for port in self.open.difference(&self.wanted) {
            worker.order(&Order::Unwanted(*port), None)?;
        }
        let missing: Vec<u16> = self.wanted.difference(&self.open).copied().collect();
        for port in missing {
            let what = || format!("socket for packets diverted to port {port}");
            let made = listener(&self.directory, port);
            let made = made.map_err(|cause| Error::System { operation: what(), cause });
            if let Some(listener) = self.complaint.note(made) {
                worker.order(&Order::Port(port), Some(listener.as_fd()))?;
                self.open.insert(port);
            }
        }
        Ok(())
    }

    /// Returns the path of a port's socket.
    fn path(&self, port: u16) -> PathBuf {
        self.directory.join(port.to_string())
    }
}

impl Function for DivertGuardian<'_> {
    const TASK: Task = Task::Divert;

    fn begin(&mut self, worker: &Worker) -> Result<(), Error> {
        worker.order(&Order::HandPackets(self.device.nonce()), Some(self.device.as_fd()))?;
        self.follow(worker)
    }

    fn request(
        &mut self,
        worker: &Worker,
        request: Request,
        program: Option<OwnedFd>,
    ) -> Result<(), Error> {
        match (request, program) {
            (Request::Divert(counters), _) => self.device.publish(self.instance, counters),
            (Request::Widen, Some(program)) => {
                // the buffer exceeds the limit for other processes; without the right, the limit
                // stays
                let _ = setsockopt(&program, sockopt::SndBufForce, &WAITING);
                Ok(())
            }
            (Request::Closed(port), _) if self.open.remove(&port) => {
                // programs can no longer connect then; an error means that the file is removed
                // already
                let _ = fs::remove_file(self.path(port));
                self.open_ports(worker) // rules may name the port again
            }
            (request, _) => Err(worker.nonsense(&request)),
        }
    }

    fn follow(&mut self, worker: &Worker) -> Result<(), Error> {
        let generation = self.instance.generation();
        if self.generation == Some(generation) {
            return Ok(());
        }
        self.wanted = self.instance.divert_ports()?;
        self.generation = Some(generation);
        self.open_ports(worker)
    }
}

impl Drop for DivertGuardian<'_> {
    fn drop(&mut self) {
        for port in &self.open {
            let _ = fs::remove_file(self.path(*port));
        }
    }
}

/// Creates a listening socket at `directory/port` that preserves message boundaries.
fn listener(directory: &Path, port: u16) -> io::Result<OwnedFd> {
    private::folder(directory).map_err(io::Error::other)?;
    let path = directory.join(port.to_string());
    match fs::remove_file(&path) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    let socket = socket(AddressFamily::Unix, SockType::SeqPacket, flags, None)?;
    bind(socket.as_raw_fd(), &UnixAddr::new(&path)?)?;
    private::narrow_socket(&path)?;
    listen(&socket, Backlog::new(1)?)?;
    Ok(socket)
}
