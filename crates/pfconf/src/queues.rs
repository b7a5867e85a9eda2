//! The tree of queues, and its output (pf-features section 11).

use skipstep_ruleset::{Limiter, Queue, ServiceCurve};

use crate::print::{word, words};

/// Most queues of a rule set.
// Differs from OpenBSD: linux.md, "Number of queues"
const MOST_QUEUES: usize = 4096;
/// Greatest depth of the tree.
const DEEPEST: usize = 64;

/// Returns the output of `pfctl -nv` for queues: each root, followed by its descendants.
///
/// # Errors
/// Fails with OpenBSD's message if a queue has no parent, bandwidth or default queue where it needs
/// one, or is defined twice. Also fails if there are too many queues or levels.
pub fn echo(queues: &[Queue]) -> Result<Vec<String>, String> {
    if queues.len() > MOST_QUEUES {
        return Err(format!("more than {MOST_QUEUES} queues"));
    }
    let (roots, children): (Vec<&Queue>, Vec<&Queue>) =
        queues.iter().partition(|queue| queue.parent.is_none());
    let mut tree = Tree { used: vec![false; children.len()], children, lines: Vec::new() };
    for root in roots {
        let (has_children, has_default) = tree.below(root, 0)?;
        let name = &root.name;
        match root.bandwidth {
            None if has_children && root.flows.is_some() => {
                return Err(format!("root queue {name} doesn't support hierarchy"));
            }
            None if has_children => return Err(no_bandwidth(name)),
            // as OpenBSD's kernel does (hfsc_pf_addqueue)
            Some(curve) if curve.rate == 0 => return Err(no_bandwidth(name)),
            Some(_) if !has_default => return Err("no default queue specified".to_string()),
            _ => {}
        }
    }
    for (queue, used) in tree.children.iter().zip(&tree.used) {
        let (name, parent) = (&queue.name, queue.parent.as_deref().unwrap_or_default());
        if !used {
            return Err(format!("queue {name}: parent {parent} not found"));
        }
        if !queue.bandwidth.is_some_and(|curve| curve.rate > 0 || curve.burst.is_some()) {
            return Err(format!("queue {name}: no bandwidth was specified"));
        }
    }
    Ok(tree.lines)
}

fn no_bandwidth(root: &str) -> String {
    format!("no bandwidth was specified for root queue {root}")
}

/// The queues with a parent, and the output so far.
struct Tree<'a> {
    children: Vec<&'a Queue>,
    used: Vec<bool>,
    lines: Vec<String>,
}

impl<'a> Tree<'a> {
    /// Appends the lines of `queue` and its descendants. Returns two flags: the queue has children,
    /// and the default queue is the queue or a descendant.
    ///
    /// # Errors
    /// Fails if a queue is defined twice, is too deep, or has children although it must be a leaf.
    fn below(&mut self, queue: &'a Queue, depth: usize) -> Result<(bool, bool), String> {
        let name = &queue.name;
        if depth == DEEPEST {
            return Err(format!("queue {name}: more than {DEEPEST} queues above it"));
        }
        self.lines.push(line(queue));
        let children = self.children_of(queue)?;
        if !children.is_empty() && queue.default {
            return Err(format!("default queue {name} is not a leaf queue"));
        }
        if !children.is_empty() && queue.flows.is_some() {
            return Err(format!("flow queue {name} is not a leaf queue"));
        }
        let mut has_default = queue.default;
        for child in &children {
            has_default |= self.below(child, depth + 1)?.1;
        }
        Ok((!children.is_empty(), has_default))
    }

    /// Returns the children of a queue. Of two children with one name, the one with an interface
    /// counts.
    ///
    /// # Errors
    /// Fails if a child is defined twice.
    fn children_of(&mut self, queue: &Queue) -> Result<Vec<&'a Queue>, String> {
        let mut found: Vec<&'a Queue> = Vec::new();
        for (child, used) in self.children.iter().zip(&mut self.used) {
            if !child.is_below(queue) {
                continue;
            }
            *used = true;
            match found.iter_mut().find(|known| known.name == child.name) {
                None => found.push(child),
                Some(known) => match (&known.interface, &child.interface) {
                    (Some(interface), Some(_)) => {
                        return Err(format!("queue {} on {interface} respecified", known.name));
                    }
                    (None, None) => return Err(format!("queue {} respecified", known.name)),
                    (None, Some(_)) => *known = child,
                    (Some(_), None) => {}
                },
            }
        }
        Ok(found)
    }
}

/// Returns a queue as `pfctl -nv` and `pfctl -sq` print it.
pub fn line(queue: &Queue) -> String {
    let mut text = format!("queue {}", word(&queue.name));
    match (&queue.parent, &queue.interface) {
        (Some(parent), _) => text += &format!(" parent {}", word(parent)),
        (None, Some(interface)) => text += &format!(" on {}", word(interface)),
        (None, None) => {}
    }
    text += &queue.flows.map(|flows| format!(" flows {flows}")).unwrap_or_default();
    if let (Some(_), Some(quantum)) = (queue.flows, queue.quantum) {
        text += &format!(" quantum {quantum}");
    }
    for (prefix, curve) in
        [(" bandwidth ", queue.bandwidth), (", min ", queue.min), (", max ", queue.max)]
    {
        text += &curve.map(|curve| service_curve(prefix, curve)).unwrap_or_default();
    }
    text += if queue.default { " default" } else { "" };
    if let Some(limit) = queue.limit.filter(|limit| *limit > 0) {
        text += &format!(" qlimit {limit}");
    }
    text
}

fn service_curve(prefix: &str, curve: ServiceCurve) -> String {
    let mut text = bandwidth(prefix, curve.rate);
    if let Some((rate, time)) = curve.burst.filter(|(_, time)| *time > 0) {
        text += &format!(" burst {} for {time}ms", bandwidth("", rate));
    }
    text
}

/// Formats bits per second with the largest unit that needs no fraction. pf prints a blank in place
/// of no unit.
fn bandwidth(prefix: &str, mut rate: u64) -> String {
    if rate == 0 {
        return String::new();
    }
    let mut units = " KMG".chars();
    let mut unit = units.next().unwrap_or(' ');
    while rate >= 1000 && rate.is_multiple_of(1000) {
        let Some(larger) = units.next() else {
            break;
        };
        (rate, unit) = (rate / 1000, larger);
    }
    format!("{prefix}{rate}{unit}")
}

/// Returns a limiter as `pfctl -nv` prints it.
pub fn limiter(limiter: &Limiter) -> String {
    let kind = if limiter.source { "source" } else { "state" };
    let mut text = format!("{kind} limiter {} id {}", words(&limiter.name), limiter.id);
    text += &limiter.entries.map(|entries| format!(" entries {entries}")).unwrap_or_default();
    text += &format!(" limit {}", limiter.limit);
    if let Some((states, seconds)) = limiter.rate {
        text += &format!(" rate {states}/{seconds}");
    }
    if let Some((table, above, below)) = &limiter.table {
        text += &format!(" table <{}> above {above}", word(table));
        text += &if *below > 0 { format!(" below {below}") } else { String::new() };
    }
    text += &limiter.inet_mask.map(|mask| format!(" inet mask {mask}")).unwrap_or_default();
    text += &limiter.inet6_mask.map(|mask| format!(" inet6 mask {mask}")).unwrap_or_default();
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_root_queue_without_bandwidth_is_refused() {
        let refusal = |rate, flows| {
            let bandwidth = Some(ServiceCurve { rate, burst: None });
            let interface = Some("em0".to_owned());
            let root = Queue { interface, bandwidth, flows, default: true, ..Queue::named("a") };
            echo(&[root]).err()
        };
        let expected = Some("no bandwidth was specified for root queue a".to_owned());
        assert_eq!(refusal(0, None), expected);
        assert_eq!(refusal(0, Some(10)), expected);
        assert_eq!(refusal(1, None), None);
    }
}
