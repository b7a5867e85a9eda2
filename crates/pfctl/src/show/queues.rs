//! `-s queue`: prints the queues of each interface, and with `-v` their counters.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde_json::{Value, json};
use skipstep_kernel::queue::{DEFAULT_LIMIT, QueueStats};
use skipstep_pfconf::queues::line;
use skipstep_ruleset::Queue;

use super::Detail;

/// The queues of one interface.
pub struct QueueTree<'a> {
    /// Name of the interface.
    pub interface: &'a str,
    /// Queues of the tree, the root first.
    pub queues: Vec<&'a Queue>,
    /// Counters by queue name; queues that the kernel does not have are missing.
    pub stats: BTreeMap<String, QueueStats>,
}

/// Prints a line for each queue; with `-v` its counters. The kernel does not count the bytes of
/// dropped packets, so `-` is printed for them.
// Differs from OpenBSD: linux.md, "Queues"
pub fn text(trees: &[QueueTree], detail: Detail) -> String {
    let mut text = String::new();
    for tree in trees {
        for queue in &tree.queues {
            text += &line(queue);
            text.push('\n');
            if detail.verbose == 0 {
                continue;
            }
            let stats = tree.stats.get(&queue.name).copied().unwrap_or_default();
            let QueueStats { packets, bytes, dropped, length } = stats;
            let limit = limit(queue);
            let _ = writeln!(
                text,
                "  [ pkts: {packets:>10}  bytes: {bytes:>10}  dropped pkts: {dropped:>6} bytes: {:>6} ]",
                '-'
            );
            let _ = writeln!(text, "  [ qlength: {length:>3}/{limit:>3} ]");
        }
    }
    text
}

/// Returns a list with an object for each queue.
pub fn json(trees: &[QueueTree]) -> Value {
    let queues = trees.iter().flat_map(|tree| {
        tree.queues.iter().map(|queue| {
            let stats = tree.stats.get(&queue.name).copied().unwrap_or_default();
            json!({
                "interface": tree.interface,
                "name": queue.name,
                "parent": queue.parent,
                "text": line(queue),
                "packets": stats.packets,
                "bytes": stats.bytes,
                "dropped": stats.dropped,
                "length": stats.length,
                "limit": limit(queue),
            })
        })
    });
    Value::Array(queues.collect())
}

/// Returns the number of packets that may wait in a queue.
pub fn limit(queue: &Queue) -> u32 {
    queue.limit.filter(|limit| *limit > 0).unwrap_or(DEFAULT_LIMIT)
}

#[cfg(test)]
mod tests {
    use skipstep_ruleset::ServiceCurve;

    use super::*;

    fn queue(name: &str, parent: Option<&str>) -> Queue {
        Queue {
            parent: parent.map(str::to_owned),
            interface: parent.is_none().then(|| "em0".to_owned()),
            bandwidth: Some(ServiceCurve { rate: 10_000_000, burst: None }),
            ..Queue::named(name)
        }
    }

    #[test]
    fn counters_stand_below_each_queue() {
        let (root, child) = (queue("link", None), queue("bulk", Some("link")));
        let stats = QueueStats { packets: 12, bytes: 3456, dropped: 7, length: 2 };
        let trees = [QueueTree {
            interface: "em0",
            queues: vec![&root, &child],
            stats: [("bulk".to_owned(), stats)].into(),
        }];
        let short = "queue link on em0 bandwidth 10M\nqueue bulk parent link bandwidth 10M\n";
        assert_eq!(text(&trees, Detail { verbose: 0, debug: false }), short);
        let long = text(&trees, Detail { verbose: 1, debug: false });
        assert!(long.ends_with(
            "queue bulk parent link bandwidth 10M\n  [ pkts:         12  bytes:       3456  dropped pkts:      7 bytes:      - ]\n  [ qlength:   2/ 50 ]\n"
        ), "{long}");
        assert_eq!(json(&trees)[1]["packets"], 12);
    }
}
