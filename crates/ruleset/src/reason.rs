//! Why a packet was passed or dropped: one table of names and numbers, that of bpf/abi.h.

/// A reason as pf counts and logs it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
#[allow(missing_docs)]
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
    /// How many there are.
    pub const COUNT: usize = skipstep_abi::status::REASON_MAX;

    /// All of them, in order.
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

    /// The name that `pfctl -si` prints.
    pub fn name(self) -> &'static str {
        skipstep_abi::names::REASONS[self as usize]
    }

    /// True for a reason that OpenBSD's pf has, false for one of skipstep alone.
    pub fn is_of_pf(self) -> bool {
        self <= Reason::NoRoute
    }

    /// The reason called `name`.
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|reason| reason.name() == name)
    }

    /// The reason with number `code`.
    pub fn from_code(code: u8) -> Option<Self> {
        Self::ALL.get(usize::from(code)).copied()
    }
}
