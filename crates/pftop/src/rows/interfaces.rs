//! Rows of interfaces.

use pfctl::show::Traffic;
use pfctl::show::interfaces::{InterfaceView, hook_text};

use super::{arrange, bytes, largest, number, rate};
use crate::order::Order;
use crate::speed::{Counted, Speed, Speeds};
use crate::table::{Cell, Column, Rows, Subject, Tone};

const COLUMNS: [Column; 10] = [
    Column::left("INTERFACE", 12, 16),
    Column::right("STATES", 6, 8),
    Column::right("RULES", 5, 6),
    Column::right("IN/S", 6, 10),
    Column::right("OUT/S", 6, 10),
    Column::right("IN", 6, 12),
    Column::right("OUT", 6, 12),
    Column::right("BLOCKED", 7, 10),
    Column::right("BLK/S", 5, 8),
    Column::left("HOOK", 8, 60),
];

/// The interfaces, the groups, and the names in rules.
pub struct Interfaces {
    interfaces: Vec<InterfaceView>,
    /// Rates inbound, outbound, and of blocked packets.
    speeds: [Vec<Speed>; 3],
    rows: Vec<u32>,
}

/// Rates inbound, outbound, and of blocked packets.
#[derive(Default)]
pub struct InterfaceSpeeds([Speeds<String>; 3]);

/// Returns the packets and bytes of one direction, both verdicts, and both families.
fn direction(interface: &InterfaceView, direction: usize) -> Counted {
    sum(interface.statistics.traffic.iter().flat_map(|family| family[direction]))
}

/// Returns the blocked packets and bytes of both directions.
fn blocked(interface: &InterfaceView) -> Counted {
    let traffic = interface.statistics.traffic.iter();
    sum(traffic.flat_map(|family| family.iter().map(|verdicts| verdicts[1])))
}

fn sum(traffic: impl Iterator<Item = Traffic>) -> Counted {
    traffic.fold(Counted::default(), |sum, more| Counted {
        packets: sum.packets + more.packets,
        bytes: sum.bytes + more.bytes,
    })
}

/// Returns the sum of both directions.
fn total(interface: &InterfaceView) -> Counted {
    let [inbound, outbound] = [0, 1].map(|way| direction(interface, way));
    Counted { packets: inbound.packets + outbound.packets, bytes: inbound.bytes + outbound.bytes }
}

impl Interfaces {
    /// Makes the rows.
    pub fn new(
        interfaces: Vec<InterfaceView>,
        speeds: &mut InterfaceSpeeds,
        now: std::time::Instant,
    ) -> Interfaces {
        let mut update = |which: usize, count: &dyn Fn(&InterfaceView) -> Counted| {
            let rows = interfaces.iter().map(|row| (row.name().to_owned(), count(row)));
            speeds.0[which].update(now, rows)
        };
        let speeds = [
            update(0, &|row| direction(row, 0)),
            update(1, &|row| direction(row, 1)),
            update(2, &blocked),
        ];
        let rows = (0..interfaces.len() as u32).collect();
        Interfaces { interfaces, speeds, rows }
    }
}

impl Rows for Interfaces {
    fn columns(&self) -> &[Column] {
        &COLUMNS
    }

    fn len(&self) -> usize {
        self.rows.len()
    }

    fn arrange(&mut self, order: Order, reverse: bool, end: usize) {
        let (interfaces, [inbound, outbound, _]) = (&self.interfaces, &self.speeds);
        let compare = largest(|row: usize| match order {
            Order::Packets => Some(total(&interfaces[row]).packets),
            Order::Bytes => Some(total(&interfaces[row]).bytes),
            Order::States => Some(interfaces[row].states),
            Order::Drops => Some(blocked(&interfaces[row]).packets),
            _ => inbound[row].bytes.zip(outbound[row].bytes).map(|(inward, out)| inward + out),
        });
        let compare: Option<&dyn Fn(u32, u32) -> _> =
            if order == Order::None { None } else { Some(&compare) };
        arrange(&mut self.rows, reverse, end, compare);
    }

    fn cell(&self, place: usize, column: usize, width: usize) -> Cell {
        let row = self.rows[place] as usize;
        let interface = &self.interfaces[row];
        let alarm = |is_alarm| if is_alarm { Tone::Block } else { Tone::Plain };
        Cell::plain(match column {
            0 => interface.name().to_owned(),
            1 => number(interface.states, width),
            2 => number(interface.rules, width),
            3 => rate(self.speeds[0][row].bytes, width, 1024),
            4 => rate(self.speeds[1][row].bytes, width, 1024),
            5 => bytes(direction(interface, 0).bytes, width),
            6 => bytes(direction(interface, 1).bytes, width),
            7 => number(blocked(interface).packets, width),
            8 => {
                let speed = self.speeds[2][row].packets;
                return Cell::Text(rate(speed, width, 1000), alarm(speed > Some(0)));
            }
            _ => hook(interface),
        })
    }

    fn details(&self, place: usize) -> [String; 2] {
        let interface = &self.interfaces[self.rows[place] as usize];
        let [inbound, outbound] = [0, 1].map(|way| direction(interface, way));
        [
            format!(
                "{}: in {} packets, {} bytes; out {} packets, {} bytes",
                interface.name(),
                inbound.packets,
                inbound.bytes,
                outbound.packets,
                outbound.bytes
            ),
            format!("{} packets blocked; {}", blocked(interface).packets, hook(interface)),
        ]
    }

    fn subject(&self, place: usize) -> Subject {
        Subject::Interface(self.interfaces[self.rows[place] as usize].name().to_owned())
    }
}

fn hook(interface: &InterfaceView) -> String {
    match (&interface.hook, interface.skip) {
        (_, true) => "skip".to_owned(),
        (Some(hook), false) => hook_text(hook),
        (None, false) => String::new(),
    }
}
