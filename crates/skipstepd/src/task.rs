//! The tasks of workers, and the messages between a worker and its guardian.

use std::net::SocketAddr;
use std::time::Duration;

use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use skipstep_kernel::{DelayCounters, DivertCounters, FragmentCounters};

use crate::pflog::Origin;

/// Longest time until a process reacts to a signal or message; also the interval of a worker's
/// reports.
pub const TICK: Duration = Duration::from_millis(500);

/// A task for which a worker reads untrusted bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Task {
    /// Puts fragments together.
    Fragments,
    /// Hands packets to programs.
    Divert,
    /// Holds delayed packets.
    Delay,
    /// Writes the log.
    Log,
    /// Reports flows.
    Flows,
}

impl Task {
    /// Returns the task's name on the worker's command line.
    pub fn name(self) -> &'static str {
        match self {
            Task::Fragments => "fragments",
            Task::Divert => "divert",
            Task::Delay => "delay",
            Task::Log => "log",
            Task::Flows => "flows",
        }
    }

    /// Returns a description of the task for messages.
    pub fn work(self) -> &'static str {
        match self {
            Task::Fragments => "reassembles fragments",
            Task::Divert => "hands packets to programs",
            Task::Delay => "holds delayed packets",
            Task::Log => "writes the log",
            Task::Flows => "reports flows",
        }
    }
}

/// Limits of the reassembly.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct FragmentLimits {
    /// Most fragments that may wait.
    pub pieces: usize,
    /// Seconds until an incomplete datagram is dropped.
    pub timeout: u32,
}

/// A message from the guardian to its worker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Order {
    /// First order for the reassembly: limits, and the nonce of the device's frames. The descriptor
    /// is the worker's end of the device.
    Reassemble(FragmentLimits, u64),
    /// First order for diverted packets: the nonce of the device's frames. The descriptor is the
    /// worker's end of the device.
    HandPackets(u64),
    /// First order for delayed packets: the number of packets that may wait, and the nonce of the
    /// device's frames. The descriptor is the worker's end of the device.
    HoldPackets(u32, u64),
    /// First order for the log: the kernel's id of the ring.
    WriteLog(u32),
    /// First order for the flow export: the kernel's id of the ring, and the number of the next
    /// record.
    ReportFlows(u32, u32),
    /// New limits of the reassembly.
    FragmentLimits(FragmentLimits),
    /// New number of packets that may wait for their departure.
    DelayLimit(u32),
    /// A port of `divert-packet` to serve. The descriptor is the socket to which programs connect.
    Port(u16),
    /// A port that rules no longer name. The worker closes it when no program is connected.
    Unwanted(u16),
    /// A collector of flow records. The descriptor is the socket to send by.
    Collector(SocketAddr),
    /// Close all log files, because they may have been renamed.
    Reopen,
    /// Answer to [`Request::Open`]: a file as descriptor, or an error.
    File(Option<String>),
    /// Answer to [`Request::Origin`].
    Origin(Origin),
    /// Finish the work, send a last report, and end.
    Finish,
}

/// A message from a worker to its guardian.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Request {
    /// The worker has given up its rights and begins to work.
    Ready,
    /// Counters of the reassembly.
    Fragments(FragmentCounters),
    /// Counters of diverted packets.
    Divert(DivertCounters),
    /// Counters of delayed packets.
    Delay(DelayCounters),
    /// Number of the next flow record, and number of records that could not be sent.
    Flows(u32, u64),
    /// Number of records that are in no file.
    Log(u64),
    /// Open the log file of the pflog interface with this number.
    Open(u8),
    /// Look up the rule set with this number.
    Origin(u32),
    /// Enlarge the send buffer of a program's socket, which is the descriptor.
    Widen,
    /// A port was closed, so no program can connect to it.
    Closed(u16),
}
