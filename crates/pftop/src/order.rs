//! Orders of rows.

/// An order of the rows of a view.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Order {
    /// The order of the filter: states by creation, rules by number, all else by name.
    #[default]
    None,
    /// Age of a state, the oldest first.
    Age,
    /// Number of addresses in a table.
    Addresses,
    /// Bytes.
    Bytes,
    /// Destination address of a state.
    Destination,
    /// Destination port of a state.
    DestinationPort,
    /// Dropped packets of a queue, blocked packets of an interface.
    Drops,
    /// Time until a state expires, the longest first.
    Expiry,
    /// Packets.
    Packets,
    /// Highest rate since pftop began.
    Peak,
    /// Bytes a second now; for drops, packets a second.
    Rate,
    /// Source address of a state.
    Source,
    /// Source port of a state.
    SourcePort,
    /// Number of states.
    States,
}

impl Order {
    /// All orders, by name.
    pub const ALL: [Order; 14] = [
        Order::Addresses,
        Order::Age,
        Order::Bytes,
        Order::Destination,
        Order::DestinationPort,
        Order::Drops,
        Order::Expiry,
        Order::None,
        Order::Peak,
        Order::Packets,
        Order::Rate,
        Order::SourcePort,
        Order::Source,
        Order::States,
    ];

    /// Returns the name that `-o` takes.
    pub fn name(self) -> &'static str {
        match self {
            Order::None => "none",
            Order::Age => "age",
            Order::Addresses => "addresses",
            Order::Bytes => "bytes",
            Order::Destination => "dest",
            Order::DestinationPort => "dport",
            Order::Drops => "drops",
            Order::Expiry => "exp",
            Order::Packets => "pkt",
            Order::Peak => "peak",
            Order::Rate => "rate",
            Order::Source => "src",
            Order::SourcePort => "sport",
            Order::States => "states",
        }
    }

    /// Returns the key that selects the order. No two orders of a view have the same key.
    pub fn key(self) -> char {
        match self {
            Order::None => 'N',
            Order::Age | Order::Addresses => 'A',
            Order::Bytes => 'B',
            Order::Destination => 'T',
            Order::DestinationPort | Order::Drops => 'D',
            Order::Expiry => 'E',
            Order::Packets => 'P',
            Order::Peak => 'K',
            Order::Rate => 'R',
            Order::Source => 'F',
            Order::SourcePort | Order::States => 'S',
        }
    }

    /// Returns the order of a name; `size` is another name of `bytes`.
    pub fn by_name(name: &str) -> Option<Order> {
        let name = if name == "size" { "bytes" } else { name };
        Order::ALL.into_iter().find(|order| order.name() == name)
    }
}
