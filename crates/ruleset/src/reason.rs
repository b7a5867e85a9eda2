//! Reasons why a packet was passed or dropped, with the names and numbers of bpf/abi.h.

/// The counter that a packet raises, which the log shows, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
#[allow(missing_docs, reason = "the names say all")]
pub enum Reason {
    Match,
    BadOffset,
    Fragment,
    Short,
    Normalize,
    Memory,
    BadTimestamp,
    Congestion,
    IpOption,
    ProtoCksum,
    StateMismatch,
    StateInsert,
    StateLimit,
    SrcLimit,
    Synproxy,
    Translate,
    NoRoute,
    LinkHeader,
    Unattached,
}

impl Reason {
    /// Number of reasons.
    pub const COUNT: usize = skipstep_abi::status::REASON_MAX;

    /// All reasons in order of their numbers.
    pub const ALL: [Reason; Self::COUNT] = [
        Reason::Match,
        Reason::BadOffset,
        Reason::Fragment,
        Reason::Short,
        Reason::Normalize,
        Reason::Memory,
        Reason::BadTimestamp,
        Reason::Congestion,
        Reason::IpOption,
        Reason::ProtoCksum,
        Reason::StateMismatch,
        Reason::StateInsert,
        Reason::StateLimit,
        Reason::SrcLimit,
        Reason::Synproxy,
        Reason::Translate,
        Reason::NoRoute,
        Reason::LinkHeader,
        Reason::Unattached,
    ];

    /// Returns the name that `pfctl -si` prints.
    pub fn name(self) -> &'static str {
        skipstep_abi::names::REASONS[self as usize]
    }

    /// True for a reason of OpenBSD's pf, false for one that only skipstep has.
    pub fn is_of_pf(self) -> bool {
        self <= Reason::NoRoute
    }

    /// Returns the reason with this name.
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|reason| reason.name() == name)
    }

    /// Returns the reason with this number.
    pub fn from_code(code: u8) -> Option<Self> {
        Self::ALL.get(usize::from(code)).copied()
    }
}
