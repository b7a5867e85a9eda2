//! Queues: `skb->priority` has [`MAJOR`] in its upper half and the number of the queue in the
//! lower.

/// Handle of the HTB qdisc whose classes are queues (`PF_QUEUE_MAJOR`).
pub const MAJOR: u16 = 0x7066;

/// The highest number of a queue (`PF_QUEUE_MAX`).
pub const MAX: u32 = 0x3fff;

/// Returns the `skb->priority` of a packet in `queue`, 0 for queue 0 (none).
pub fn priority(queue: u16) -> u32 {
    if queue == 0 { 0 } else { u32::from(MAJOR) << 16 | u32::from(queue) }
}

/// Returns the number of the queue that `priority` names, or None if it names none of ours.
pub fn number(priority: u32) -> Option<u16> {
    (priority >> 16 == u32::from(MAJOR)).then_some(priority as u16)
}
