//! Queues: a tree of HTB classes on each interface with a root queue (pf-features section 11).
//!
//! A class has the number of its queue, and packets select it by `skb->priority` (bpf/queue.h). The
//! rate of a class is the `bandwidth` of its queue, or `min` if that is more. The ceiling of a
//! class is `max`, or else the parent's ceiling. `burst` is the amount that a class may send at
//! once beyond its rate.

use netlink_packet_core::{DefaultNla, Emitable, NLM_F_CREATE, NLM_F_EXCL, NLM_F_REPLACE};
use netlink_packet_route::RouteNetlinkMessage as Message;
use netlink_packet_route::tc::{TcAttribute, TcHandle, TcMessage, TcStats2};
use nix::sched::{CloneFlags, unshare};
use skipstep_abi::queue::MAJOR;
use skipstep_classifier::Names;
use skipstep_ruleset::interface::Host;
use skipstep_ruleset::queue::{Queue, ServiceCurve};

use crate::commit::beside;
use crate::error::{Error, Result};
use crate::netlink::Rtnetlink;

/// Length limit of a queue without `qlimit`, in packets (pf's default).
pub const DEFAULT_LIMIT: u32 = 50;

/// Handle of the root qdisc.
const ROOT: TcHandle = TcHandle { major: MAJOR, minor: 0 };

/// Parent of clsact and ingress qdiscs (`TC_H_CLSACT`).
const CLSACT: TcHandle = TcHandle { major: 0xffff, minor: 0xfff1 };

/// Index of the loopback interface in every network namespace.
const LOOPBACK: i32 = 1;

// from linux/pkt_sched.h
const TCA_OPTIONS: u16 = 2;
const TCA_HTB_PARMS: u16 = 1;
const TCA_HTB_INIT: u16 = 2;
const TCA_HTB_RATE64: u16 = 6;
const TCA_HTB_CEIL64: u16 = 7;
const HTB_VERSION: u32 = 3;
const LINKLAYER_ETHERNET: u8 = 1;
const TCA_FQ_CODEL_LIMIT: u16 = 2;
const TCA_FQ_CODEL_FLOWS: u16 = 5;
const TCA_FQ_CODEL_QUANTUM: u16 = 6;

/// Nanoseconds in HTB's unit of time.
const TICK: u64 = 64;
/// Least burst of a class in bytes: a GSO packet.
const LEAST_BURST: u64 = 64 * 1024;

/// Counters of a queue.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct QueueStats {
    /// Packets sent.
    pub packets: u64,
    /// Bytes sent, including link headers.
    pub bytes: u64,
    /// Packets dropped because the queue was full.
    pub dropped: u64,
    /// Packets that wait now.
    pub length: u32,
}

/// Builds the trees on loopback of a new network namespace, where no packet goes. So a queue that
/// the kernel refuses is found before anything changes.
///
/// # Errors
/// Fails if the kernel refuses a queue. Succeeds without a test if the process may not make a
/// network namespace, as in a service that systemd confines.
pub(crate) fn rehearse(queues: &[Queue], names: &Names) -> Result<()> {
    if queues.is_empty() {
        return Ok(());
    }
    let rehearsal = || {
        if unshare(CloneFlags::CLONE_NEWNET).is_err() {
            return Ok(());
        }
        let mut netlink = Rtnetlink::open()?;
        for root in queues.iter().filter(|queue| queue.parent.is_none()) {
            put_tree(&mut netlink, queues, root, names, LOOPBACK)?;
            remove(&mut netlink, LOOPBACK)?;
        }
        Ok(())
    };
    // the thread's namespace ends with the thread
    beside(rehearsal, || ())?.0
}

/// Replaces the trees of the `previous` queues by those of the `new` ones. Skips absent interfaces,
/// whose trees [`complete`] builds when they appear.
pub(crate) fn replace(previous: &[Queue], new: &[Queue], names: &Names, host: &Host) -> Result<()> {
    let mut netlink = Rtnetlink::open()?;
    put(&mut netlink, new, names, host)?;
    let left: Vec<Queue> = previous.iter().filter(|root| !same_root(new, root)).cloned().collect();
    clear(&mut netlink, host, &left)
}

/// Replaces all of skipstep's trees in the kernel by those of `queues`.
pub(crate) fn restore(queues: &[Queue], names: &Names, host: &Host) -> Result<()> {
    remove_all()?;
    put(&mut Rtnetlink::open()?, queues, names, host)
}

fn same_root(queues: &[Queue], root: &Queue) -> bool {
    queues.iter().any(|other| other.parent.is_none() && other.interface == root.interface)
}

/// Builds the trees that are missing because their interfaces did not exist before.
pub(crate) fn complete(queues: &[Queue], names: &Names, host: &Host) -> Result<()> {
    if queues.is_empty() {
        return Ok(());
    }
    let mut netlink = Rtnetlink::open()?;
    let there = roots(&mut netlink)?;
    for (root, index) in present_roots(queues, host) {
        if !there.contains(&index) {
            put_tree(&mut netlink, queues, root, names, index)?;
        }
    }
    Ok(())
}

/// Removes all of skipstep's trees from the current network namespace.
pub(crate) fn remove_all() -> Result<()> {
    let mut netlink = Rtnetlink::open()?;
    for index in roots(&mut netlink)? {
        remove(&mut netlink, index)?;
    }
    Ok(())
}

/// Removes the tree of an interface.
fn remove(netlink: &mut Rtnetlink, index: i32) -> Result<()> {
    netlink.order(Message::DelQueueDiscipline(qdisc(index, TcHandle::ROOT, ROOT)), 0)
}

/// Returns the root queues whose interfaces exist, with the index of the interface.
fn present_roots<'a>(
    queues: &'a [Queue],
    host: &'a Host,
) -> impl Iterator<Item = (&'a Queue, i32)> {
    queues.iter().filter(|queue| queue.parent.is_none()).filter_map(|root| {
        let interface = host.interface(root.interface.as_deref()?)?;
        Some((root, interface.index as i32))
    })
}

/// Returns the counters of the queues of the interface with this index, by their numbers.
pub(crate) fn stats(index: u32) -> Result<Vec<(u16, QueueStats)>> {
    let mut netlink = Rtnetlink::open()?;
    let get = TcMessage::with_index(index as i32);
    let classes = netlink.dump(Message::GetTrafficClass(get))?;
    Ok(classes.iter().filter_map(class_stats).collect())
}

fn class_stats(object: &Message) -> Option<(u16, QueueStats)> {
    let Message::NewTrafficClass(class) = object else {
        return None;
    };
    let TcHandle { major: MAJOR, minor } = class.header.handle else {
        return None;
    };
    let mut stats = QueueStats::default();
    let found = class.attributes.iter().find_map(|attribute| match attribute {
        TcAttribute::Stats2(found) => Some(found),
        _ => None,
    });
    for found in found? {
        match found {
            TcStats2::Basic(basic) => {
                (stats.packets, stats.bytes) = (u64::from(basic.packets), basic.bytes);
            }
            TcStats2::Queue(queue) => {
                (stats.dropped, stats.length) = (u64::from(queue.drops), queue.qlen);
            }
            _ => {}
        }
    }
    Some((minor, stats))
}

/// Returns the indices of interfaces whose root qdisc is skipstep's.
fn roots(netlink: &mut Rtnetlink) -> Result<Vec<i32>> {
    let qdiscs = netlink.dump(Message::GetQueueDiscipline(TcMessage::default()))?;
    let ours = qdiscs.iter().filter_map(|object| match object {
        Message::NewQueueDiscipline(qdisc)
            if qdisc.header.handle == ROOT && qdisc.header.parent == TcHandle::ROOT =>
        {
            Some(qdisc.header.index)
        }
        _ => None,
    });
    Ok(ours.collect())
}

/// Returns the indices of interfaces with a clsact or ingress qdisc, whose filters see packets
/// behind tcx.
///
/// # Errors
/// Fails if rtnetlink cannot be opened or refuses the request.
pub fn with_clsact() -> Result<Vec<u32>> {
    let get = Message::GetQueueDiscipline(TcMessage::default());
    let of_others = |object: &Message| match object {
        Message::NewQueueDiscipline(qdisc) if qdisc.header.parent == CLSACT => {
            Some(qdisc.header.index as u32)
        }
        _ => None,
    };
    Ok(Rtnetlink::open()?.dump(get)?.iter().filter_map(of_others).collect())
}

fn clear(netlink: &mut Rtnetlink, host: &Host, queues: &[Queue]) -> Result<()> {
    let there = roots(netlink)?;
    for (_, index) in present_roots(queues, host).filter(|(_, index)| there.contains(index)) {
        remove(netlink, index)?;
    }
    Ok(())
}

fn put(netlink: &mut Rtnetlink, queues: &[Queue], names: &Names, host: &Host) -> Result<()> {
    clear(netlink, host, queues)?;
    for (root, index) in present_roots(queues, host) {
        put_tree(netlink, queues, root, names, index)?;
    }
    Ok(())
}

/// Builds the tree below `root` on the interface with this index.
fn put_tree(
    netlink: &mut Rtnetlink,
    queues: &[Queue],
    root: &Queue,
    names: &Names,
    index: i32,
) -> Result<()> {
    let mut tree = Tree { netlink, queues, names, index };
    match root.bandwidth {
        None => tree.put_leaf(root, TcHandle::ROOT, ROOT),
        Some(_) => {
            tree.put_htb(root)?;
            tree.put_class(root, ROOT, u64::MAX)
        }
    }
}

/// The tree of one interface during its construction.
struct Tree<'a> {
    netlink: &'a mut Rtnetlink,
    queues: &'a [Queue],
    names: &'a Names,
    index: i32,
}

impl Tree<'_> {
    /// Makes the HTB qdisc, which sends packets without a class to the default queue.
    fn put_htb(&mut self, root: &Queue) -> Result<()> {
        let default = root.and_below(self.queues).find(|queue| queue.default);
        let default = default.map_or(0, |queue| self.number(queue));
        let mut init = Vec::new();
        for word in [HTB_VERSION, 10, u32::from(default), 0, 0] {
            init.extend(word.to_ne_bytes());
        }
        let options = nested(&[DefaultNla::new(TCA_HTB_INIT, init)]);
        let mut message = qdisc(self.index, TcHandle::ROOT, ROOT);
        message.attributes.extend(kind("htb", options));
        self.order(Message::NewQueueDiscipline(message), root)
    }

    /// Makes the class of a queue and the classes below it. `ceiling` is the parent's, in bits a
    /// second.
    // Differs from OpenBSD: linux.md, "Queues"
    fn put_class(&mut self, queue: &Queue, parent: TcHandle, ceiling: u64) -> Result<()> {
        let handle = TcHandle { major: MAJOR, minor: self.number(queue) };
        let rate_of = |curve: Option<ServiceCurve>| curve.map_or(0, |curve| curve.rate);
        let rate = rate_of(queue.bandwidth).max(rate_of(queue.min)).max(8);
        let ceiling = match queue.max {
            Some(max) => max.rate,
            None if ceiling == u64::MAX => rate,
            None => ceiling,
        };
        let mut message = qdisc(self.index, parent, handle);
        message.attributes.extend(kind("htb", class_options(queue, rate, ceiling.max(rate))));
        self.order(Message::NewTrafficClass(message), queue)?;

        let mut is_leaf = true;
        for child in queue.children(self.queues) {
            is_leaf = false;
            self.put_class(child, handle, ceiling)?;
        }
        if is_leaf {
            self.put_leaf(queue, handle, TcHandle::UNSPEC)?;
        }
        Ok(())
    }

    /// Makes the qdisc of a queue that has no children: one line of packets, or a line for each
    /// flow.
    fn put_leaf(&mut self, queue: &Queue, parent: TcHandle, handle: TcHandle) -> Result<()> {
        let limit = queue.limit.filter(|limit| *limit > 0);
        let mut message = qdisc(self.index, parent, handle);
        message.attributes.extend(match queue.flows {
            None => kind("pfifo", limit.unwrap_or(DEFAULT_LIMIT).to_ne_bytes().to_vec()),
            Some(flows) => {
                let words = [
                    (TCA_FQ_CODEL_FLOWS, Some(flows)),
                    (TCA_FQ_CODEL_LIMIT, limit),
                    (TCA_FQ_CODEL_QUANTUM, queue.quantum),
                ];
                let words = words.into_iter().filter_map(|(number, word)| {
                    Some(DefaultNla::new(number, word?.to_ne_bytes().to_vec()))
                });
                kind("fq_codel", nested(&words.collect::<Vec<_>>()))
            }
        });
        self.order(Message::NewQueueDiscipline(message), queue)
    }

    fn order(&mut self, message: Message, queue: &Queue) -> Result<()> {
        let flags = match message {
            Message::NewTrafficClass(_) => NLM_F_CREATE | NLM_F_EXCL,
            _ => NLM_F_CREATE | NLM_F_REPLACE,
        };
        self.netlink.order(message, flags).map_err(|error| Error::Queue {
            line: queue.line,
            name: queue.name.clone(),
            cause: match queue.flows {
                Some(_) => format!("fq_codel: {error} (CONFIG_NET_SCH_FQ_CODEL)"),
                None => format!("htb: {error} (CONFIG_NET_SCH_HTB)"),
            },
        })
    }

    /// Returns the number of a queue. Every queue of a rule set in force has one.
    fn number(&self, queue: &Queue) -> u16 {
        self.names.queues.get(&queue.name).unwrap_or(0) as u16
    }
}

/// Returns the attributes of a class: `struct tc_htb_opt`, and 64-bit rates that do not fit into
/// it.
fn class_options(queue: &Queue, rate: u64, ceiling: u64) -> Vec<u8> {
    let (rate, ceiling) = (rate / 8, ceiling / 8);
    let burst = queue.bandwidth.and_then(|curve| curve.burst).map_or(0, |(fast, milliseconds)| {
        (fast / 8).saturating_sub(rate).saturating_mul(u64::from(milliseconds)) / 1000
    });
    let burst = burst + LEAST_BURST.max(rate / 1000);
    let quantum = (rate / 10).clamp(1514, 60_000) as u32;
    let mut parameters = Vec::new();
    for bytes_a_second in [rate, ceiling] {
        parameters.extend([0, LINKLAYER_ETHERNET, 0, 0, 0, 0, 0, 0]);
        parameters.extend(u32::try_from(bytes_a_second).unwrap_or(u32::MAX).to_ne_bytes());
    }
    for word in [ticks(burst, rate), ticks(burst, ceiling), quantum, 0, 0] {
        parameters.extend(word.to_ne_bytes());
    }
    nested(&[
        DefaultNla::new(TCA_HTB_PARMS, parameters),
        DefaultNla::new(TCA_HTB_RATE64, rate.to_ne_bytes().to_vec()),
        DefaultNla::new(TCA_HTB_CEIL64, ceiling.to_ne_bytes().to_vec()),
    ])
}

/// Returns the time that `bytes` take at a rate, in HTB's ticks.
fn ticks(bytes: u64, bytes_a_second: u64) -> u32 {
    let nanoseconds = u128::from(bytes) * 1_000_000_000 / u128::from(bytes_a_second.max(1));
    u32::try_from(nanoseconds / u128::from(TICK)).unwrap_or(u32::MAX)
}

fn qdisc(index: i32, parent: TcHandle, handle: TcHandle) -> TcMessage {
    let mut message = TcMessage::with_index(index);
    (message.header.parent, message.header.handle) = (parent, handle);
    message
}

fn kind(name: &str, options: Vec<u8>) -> [TcAttribute; 2] {
    [TcAttribute::Kind(name.to_owned()), TcAttribute::Other(DefaultNla::new(TCA_OPTIONS, options))]
}

fn nested(attributes: &[DefaultNla]) -> Vec<u8> {
    let mut bytes = vec![0; attributes.buffer_len()];
    attributes.emit(&mut bytes);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_is_counted_in_ticks() {
        assert_eq!(ticks(1_000_000, 1_000_000), 15_625_000, "a second");
        assert_eq!(ticks(u64::MAX, 1), u32::MAX);
    }

    #[test]
    fn a_burst_is_what_goes_beyond_the_rate() {
        let rate = 8_000_000;
        let queue =
            |burst| Queue { bandwidth: Some(ServiceCurve { rate, burst }), ..Queue::named("q") };
        let word = |options: &[u8], at: usize| {
            u32::from_ne_bytes(options[4 + at..8 + at].try_into().unwrap())
        };
        let plain = class_options(&queue(None), rate, rate);
        let fast = class_options(&queue(Some((16_000_000, 500))), rate, rate);
        assert_eq!((word(&plain, 8), word(&plain, 20)), (1_000_000, 1_000_000));
        // half a second at another megabyte a second takes half a second at the rate
        assert_eq!(word(&fast, 24) - word(&plain, 24), 7_812_500);
    }
}
