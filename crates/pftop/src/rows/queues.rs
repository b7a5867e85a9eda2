//! Rows of queues.

use pfctl::show::queues::{QueueTree, limit};
use skipstep_kernel::queue::QueueStats;
use skipstep_pfconf::queues::line;

use super::{arrange, bytes, largest, number, rate};
use crate::order::Order;
use crate::speed::{Counted, Speed, Speeds};
use crate::table::{Cell, Column, Rows, Subject, Tone};

const COLUMNS: [Column; 8] = [
    Column::left("QUEUE", 20, 40),
    Column::left("IFACE", 8, 15),
    Column::right("PKTS", 7, 12),
    Column::right("BYTES", 7, 14),
    Column::right("DROPS", 6, 10),
    Column::right("QLEN", 7, 11),
    Column::right("PKT/S", 6, 10),
    Column::right("BYTE/S", 7, 12),
];

/// A queue with its counters.
pub struct Queue {
    /// Interface and name.
    key: (String, String),
    /// Number of queues above.
    depth: usize,
    text: String,
    limit: u32,
    stats: QueueStats,
}

impl Queue {
    /// Returns the queues of trees, each below its parent.
    pub fn of(trees: &[QueueTree]) -> Vec<Queue> {
        let queues = trees.iter().flat_map(|tree| {
            tree.queues.iter().map(move |queue| Queue {
                key: (tree.interface.to_owned(), queue.name.clone()),
                depth: depth(tree, queue.parent.as_deref()),
                text: line(queue),
                limit: limit(queue),
                stats: tree.stats.get(&queue.name).copied().unwrap_or_default(),
            })
        });
        queues.collect()
    }
}

/// Returns the number of queues above a queue with this parent.
fn depth(tree: &QueueTree, parent: Option<&str>) -> usize {
    let mut depth = 0;
    let mut above = parent;
    // a tree is not deeper than it has queues
    while let Some(name) = above.filter(|_| depth < tree.queues.len()) {
        depth += 1;
        above =
            tree.queues.iter().find(|queue| queue.name == name).and_then(|q| q.parent.as_deref());
    }
    depth
}

/// The queues of all interfaces.
pub struct Queues {
    queues: Vec<Queue>,
    speeds: Vec<Speed>,
    rows: Vec<u32>,
}

/// Keys of queues: interface and name.
pub type QueueSpeeds = Speeds<(String, String)>;

impl Queues {
    /// Makes the rows.
    pub fn new(queues: Vec<Queue>, speeds: &mut QueueSpeeds, now: std::time::Instant) -> Queues {
        let counted = |queue: &Queue| {
            let QueueStats { packets, bytes, .. } = queue.stats;
            (queue.key.clone(), Counted { packets, bytes })
        };
        let speeds = speeds.update(now, queues.iter().map(counted));
        let rows = (0..queues.len() as u32).collect();
        Queues { queues, speeds, rows }
    }
}

impl Rows for Queues {
    fn columns(&self) -> &[Column] {
        &COLUMNS
    }

    fn len(&self) -> usize {
        self.rows.len()
    }

    fn arrange(&mut self, order: Order, reverse: bool, end: usize) {
        let (queues, speeds) = (&self.queues, &self.speeds);
        let compare = largest(|row| match order {
            Order::Packets => Some(queues[row].stats.packets),
            Order::Bytes => Some(queues[row].stats.bytes),
            Order::Drops => Some(queues[row].stats.dropped),
            _ => speeds[row].bytes,
        });
        let compare: Option<&dyn Fn(u32, u32) -> _> =
            if order == Order::None { None } else { Some(&compare) };
        arrange(&mut self.rows, reverse, end, compare);
    }

    fn cell(&self, place: usize, column: usize, width: usize) -> Cell {
        let row = self.rows[place] as usize;
        let (Queue { key, depth, limit, stats, .. }, speed) = (&self.queues[row], self.speeds[row]);
        Cell::plain(match column {
            0 => format!("{}{}", " ".repeat(*depth), key.1),
            1 => key.0.clone(),
            2 => number(stats.packets, width),
            3 => bytes(stats.bytes, width),
            4 => {
                let tone = if stats.dropped > 0 { Tone::Block } else { Tone::Plain };
                return Cell::Text(number(stats.dropped, width), tone);
            }
            5 => format!("{}/{limit}", stats.length),
            6 => rate(speed.packets, width, 1000),
            _ => rate(speed.bytes, width, 1024),
        })
    }

    fn details(&self, place: usize) -> [String; 2] {
        let queue = &self.queues[self.rows[place] as usize];
        [queue.text.clone(), format!("on {}", queue.key.0)]
    }

    fn subject(&self, _: usize) -> Subject {
        Subject::Other
    }
}
