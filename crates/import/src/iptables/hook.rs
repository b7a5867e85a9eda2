//! Where the built-in chains stand, and where that is in pf.

/// A built-in chain that has an equivalent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hook {
    /// Packets to the machine itself.
    Input,
    /// Packets that it forwards, judged when they leave.
    Forward,
    /// Packets of its own.
    Output,
    /// All that comes in, before it is known where it goes: destinations are translated.
    Prerouting,
    /// The same for packets of its own.
    NatOutput,
    /// All that goes out: sources are translated.
    Postrouting,
}

impl Hook {
    /// The name of the chain.
    pub fn name(self) -> &'static str {
        match self {
            Hook::Input => "INPUT",
            Hook::Forward => "FORWARD",
            Hook::Output | Hook::NatOutput => "OUTPUT",
            Hook::Prerouting => "PREROUTING",
            Hook::Postrouting => "POSTROUTING",
        }
    }

    /// Which way pf sees its packets.
    pub fn direction(self) -> &'static str {
        match self {
            Hook::Input | Hook::Prerouting => "in",
            _ => "out",
        }
    }

    /// What its rules say of where the packet came from, if they must.
    pub fn origin(self) -> &'static str {
        match self {
            Hook::Output | Hook::NatOutput => " ! received-on any",
            _ => "",
        }
    }

    /// Whether it translates destinations. Its rules leave alone what one of them was about.
    pub fn translates_destinations(self) -> bool {
        matches!(self, Hook::Prerouting | Hook::NatOutput)
    }
}
