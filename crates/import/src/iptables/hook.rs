//! The built-in chains and their counterparts in pf.

/// A built-in chain with an equivalent in pf.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hook {
    /// Packets to the machine itself.
    Input,
    /// Forwarded packets, which pf filters when they leave.
    Forward,
    /// Packets of the machine itself.
    Output,
    /// All inbound packets, before routing: destinations are translated.
    Prerouting,
    /// Packets of the machine itself, before routing: destinations are translated.
    NatOutput,
    /// All outbound packets: sources are translated.
    Postrouting,
}

impl Hook {
    /// Returns the name of the chain.
    pub fn name(self) -> &'static str {
        match self {
            Hook::Input => "INPUT",
            Hook::Forward => "FORWARD",
            Hook::Output | Hook::NatOutput => "OUTPUT",
            Hook::Prerouting => "PREROUTING",
            Hook::Postrouting => "POSTROUTING",
        }
    }

    /// Returns the direction in which pf sees the chain's packets.
    pub fn direction(self) -> &'static str {
        match self {
            Hook::Input | Hook::Prerouting => "in",
            _ => "out",
        }
    }

    /// Returns the criterion on the packet's origin that the chain's rules need, or an empty text.
    pub fn origin(self) -> &'static str {
        match self {
            Hook::Output | Hook::NatOutput => " ! received-on any",
            _ => "",
        }
    }

    /// True if the chain translates destinations. Then its rules exclude packets that an earlier
    /// rule matched.
    pub fn translates_destinations(self) -> bool {
        matches!(self, Hook::Prerouting | Hook::NatOutput)
    }
}
