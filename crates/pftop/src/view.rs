//! The views, and the orders that each has.

use crate::order::Order;

/// A view of the filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum View {
    /// States, with the columns that most users want.
    #[default]
    Default,
    /// States, with the translated address in front.
    Long,
    /// States, with the states of the peers in front.
    State,
    /// States, with age and expiry in front.
    Time,
    /// States, with packets and bytes in front.
    Size,
    /// Rules with their hits and their text.
    Rules,
    /// Rules with their labels.
    Label,
    /// States, with their rates in front.
    Speed,
    /// Queues.
    Queue,
    /// Interfaces.
    Interfaces,
    /// Tables.
    Tables,
    /// Dropped packets by reason, rule and interface.
    Drops,
    /// Logged packets of one rule.
    Log,
}

/// The kinds of rows. Views of the same kind have the same rows and orders.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// States.
    States,
    /// Rules.
    Rules,
    /// Queues.
    Queues,
    /// Interfaces.
    Interfaces,
    /// Tables.
    Tables,
    /// Dropped packets.
    Drops,
    /// Logged packets.
    Log,
}

impl View {
    /// The views, in the order in which the cursor keys go through them. The log belongs to a rule
    /// and is not among them.
    pub const ALL: [View; 12] = [
        View::Default,
        View::Long,
        View::State,
        View::Time,
        View::Size,
        View::Rules,
        View::Label,
        View::Speed,
        View::Queue,
        View::Interfaces,
        View::Tables,
        View::Drops,
    ];

    /// Returns the name that `-v` takes.
    pub fn name(self) -> &'static str {
        match self {
            View::Default => "default",
            View::Long => "long",
            View::State => "state",
            View::Time => "time",
            View::Size => "size",
            View::Rules => "rules",
            View::Label => "label",
            View::Speed => "speed",
            View::Queue => "queue",
            View::Interfaces => "interfaces",
            View::Tables => "tables",
            View::Drops => "drops",
            View::Log => "log",
        }
    }

    /// Returns the view of a name, or of the only name that begins so.
    pub fn by_name(text: &str) -> Option<View> {
        let begins = |view: &View| view.name().starts_with(text);
        let found: Vec<View> = View::ALL.into_iter().filter(begins).collect();
        match found[..] {
            [only] => Some(only),
            _ => found.into_iter().find(|view| view.name() == text),
        }
    }

    /// Returns the view of a key: `0` to `9`, `t` and `d`.
    pub fn by_key(key: char) -> Option<View> {
        match key {
            't' => Some(View::Tables),
            'd' => Some(View::Drops),
            digit => View::ALL.get(digit.to_digit(10)? as usize).copied(),
        }
    }

    /// Returns the view `steps` behind this one, or in front of it; the first follows the last.
    pub fn step(self, steps: isize) -> View {
        let all = View::ALL;
        let place = all.iter().position(|view| *view == self).unwrap_or(0) as isize;
        all[(place + steps).rem_euclid(all.len() as isize) as usize]
    }

    /// Returns the kind of the view's rows.
    pub fn kind(self) -> Kind {
        match self {
            View::Rules | View::Label => Kind::Rules,
            View::Queue => Kind::Queues,
            View::Interfaces => Kind::Interfaces,
            View::Tables => Kind::Tables,
            View::Drops => Kind::Drops,
            View::Log => Kind::Log,
            _ => Kind::States,
        }
    }

    /// Returns the orders of the view, in the order in which the key `o` goes through them.
    pub fn orders(self) -> &'static [Order] {
        use Order::*;
        match self.kind() {
            Kind::States => &[
                None,
                Bytes,
                Expiry,
                Packets,
                Age,
                Source,
                Destination,
                SourcePort,
                DestinationPort,
                Rate,
                Peak,
            ],
            Kind::Rules => &[None, Packets, Bytes, Rate, States],
            Kind::Queues => &[None, Packets, Bytes, Rate, Drops],
            Kind::Interfaces => &[None, Packets, Bytes, Rate, States, Drops],
            Kind::Tables => &[None, Packets, Bytes, Rate, Addresses],
            Kind::Drops => &[None, Packets, Rate],
            Kind::Log => &[None],
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn keys_of_a_view_are_different() {
        for view in View::ALL {
            let keys: HashSet<char> = view.orders().iter().map(|order| order.key()).collect();
            assert_eq!(keys.len(), view.orders().len(), "{}", view.name());
            assert_eq!(view.orders()[0], Order::None);
        }
    }

    #[test]
    fn names_may_be_cut_off() {
        assert_eq!(View::by_name("rule"), Some(View::Rules));
        assert_eq!(View::by_name("queues"), None);
        assert_eq!(View::by_name("l"), None, "long and label");
        assert_eq!(View::by_name("state"), Some(View::State));
        assert_eq!(Order::by_name("size"), Some(Order::Bytes));
        for order in Order::ALL {
            assert_eq!(Order::by_name(order.name()), Some(order));
        }
    }

    #[test]
    fn digits_are_those_of_pftop() {
        let names: Vec<_> = ('0'..='9').map(|key| View::by_key(key).unwrap().name()).collect();
        let of_pftop = "default long state time size rules label speed queue interfaces";
        assert_eq!(names.join(" "), of_pftop);
        assert_eq!(View::Default.step(-1), View::Drops);
        assert_eq!(View::Drops.step(1), View::Default);
    }
}
