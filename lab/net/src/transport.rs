//! The transport protocols.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A transport protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Transport {
    /// UDP
    Udp,
    /// TCP: data segments, with the flags of an established connection
    Tcp,
}

impl Transport {
    /// Returns the other transport.
    pub fn other(self) -> Transport {
        match self {
            Transport::Udp => Transport::Tcp,
            Transport::Tcp => Transport::Udp,
        }
    }
}

/// Writes the name on the command line.
impl fmt::Display for Transport {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(match self {
            Transport::Udp => "udp",
            Transport::Tcp => "tcp",
        })
    }
}
