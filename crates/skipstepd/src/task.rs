//! The tasks of workers, and the messages between each and the guardian.

use std::net::SocketAddr;
use std::time::Duration;

use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use skipstep_kernel::{DelayCounters, DivertCounters, FragmentCounters};

use crate::pflog::Origin;

/// The time until a process answers a signal or a message, and between two reports of a worker.
pub const TICK: Duration = Duration::from_millis(500);

/// A task for which a worker reads bytes of strangers.
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
    /// Its name on the command line of the worker.
    pub fn name(self) -> &'static str {
        match self {
            Task::Fragments => "fragments",
            Task::Divert => "divert",
            Task::Delay => "delay",
            Task::Log => "log",
            Task::Flows => "flows",
        }
    }

    /// What the worker does, as the user reads it.
    pub fn work(self) -> &'static str {
        match self {
            Task::Fragments => "puts fragments together",
            Task::Divert => "hands packets to programs",
            Task::Delay => "holds delayed packets",
            Task::Log => "writes the log",
            Task::Flows => "reports flows",
        }
    }
}

/// Limits of datagrams in the making.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct FragmentLimits {
    /// Fragments that may wait.
    pub pieces: usize,
    /// Seconds that a fragment waits.
    pub timeout: u32,
}

/// A message of the guardian.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Order {
    /// The first one for a worker that puts fragments together, with the end of a device and the
    /// nonce of its frames.
    Reassemble(FragmentLimits, u64),
    /// The first one for a worker that hands packets to programs, with the end of a device and the
    /// nonce of its frames.
    HandPackets(u64),
    /// The first one for a worker that holds packets, with the end of a device, the number of
    /// packets that may wait, and the nonce of the device's frames.
    HoldPackets(u32, u64),
    /// The first one for a worker that writes the log, with the number of the ring.
    WriteLog(u32),
    /// The first one for a worker that reports flows, with the number of the ring, and the number
    /// of the next record.
    ReportFlows(u32, u32),
    /// Other limits of fragments.
    FragmentLimits(FragmentLimits),
    /// Another limit of packets that wait.
    DelayLimit(u32),
    /// A port of `divert-packet`, with the socket to which its programs connect.
    Port(u16),
    /// A port that rules no longer name.
    Unwanted(u16),
    /// A collector of flows, with a socket.
    Collector(SocketAddr),
    /// Log files may have been renamed.
    Reopen,
    /// The file that the worker asks for, or an error.
    File(Option<String>),
    /// The rule set that the worker asks for.
    Origin(Origin),
    /// Finish the work and end.
    Finish,
}

/// A message of a worker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Request {
    /// The worker is at work, without rights.
    Ready,
    /// Counters of fragments.
    Fragments(FragmentCounters),
    /// Counters of packets for programs.
    Divert(DivertCounters),
    /// Counters of packets that wait.
    Delay(DelayCounters),
    /// The number of the next record of a flow, and records that could not be sent.
    Flows(u32, u64),
    /// Records that are in no file.
    Log(u64),
    /// Open the file of this pflog interface.
    Open(u8),
    /// Name the rule set with this number.
    Origin(u32),
    /// Give this socket of a program more room.
    Widen,
    /// No program can connect to this port any more.
    Closed(u16),
}
