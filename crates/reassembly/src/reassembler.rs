//! The queues of all incomplete datagrams, under pf's limits.

use std::collections::{BTreeMap, HashMap};

use skipstep_ruleset::Reason;

use crate::datagram::{self, Datagram, Misfit, Moved};
use crate::{Key, Piece, Reassembled};

/// Factor for stale datagrams (RFC 4963). A datagram is stale when this number times the timeout in
/// seconds of datagrams with its key have begun, itself included.
const STALE: u32 = 200;

/// The result of adding a fragment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FragmentFate {
    /// The fragment is queued until its datagram is complete.
    Queued,
    /// The fragment completed its datagram.
    Complete(Reassembled),
    /// The fragment is dropped. As in pf there is no reason if its data was there already.
    Dropped(Option<Reason>),
}

/// Number of lookups of datagrams, and of fragments inserted and removed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say all")]
pub struct Counters {
    pub searches: u64,
    pub inserts: u64,
    pub removals: u64,
}

/// Reassembles datagrams from fragments.
///
/// ```
/// use skipstep_reassembly::{FragmentFate, Piece, Reassembler};
/// use skipstep_wire::{build::ipv4, protocol};
///
/// let fragment = |offset, more, data: &[u8]| {
///     let packet = ipv4([10, 0, 0, 1], [10, 0, 0, 2]).id(7).fragment(offset, more);
///     Piece::parse(&packet.raw(protocol::UDP, data), 0).unwrap()
/// };
/// let mut reassembler = Reassembler::new(16_384, 60);
/// let first = reassembler.add(fragment(0, true, &[1; 8]), 0);
/// assert_eq!(first, FragmentFate::Queued);
/// let FragmentFate::Complete(datagram) = reassembler.add(fragment(8, false, &[2; 4]), 1) else {
///     panic!("the datagram has two fragments");
/// };
/// assert_eq!(datagram.bytes[20..], [1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2]);
/// ```
#[derive(Debug, Clone)]
pub struct Reassembler {
    limit: usize,
    timeout: u32,
    queues: HashMap<(Key, u32), Queue>,
    /// The queues by the time of their last use, which is a number of the sequence `uses`.
    by_use: BTreeMap<u64, (Key, u32)>,
    uses: u64,
    key_uses: HashMap<Key, KeyUse>,
    pieces: usize,
    counters: Counters,
}

#[derive(Debug, Clone)]
struct Queue {
    datagram: Datagram,
    /// Time in seconds at which the first fragment came. The timeout starts there.
    since: u32,
    last_use: u64,
    generation: u32,
}

/// The datagrams that have the same key.
#[derive(Debug, Clone, Copy, Default)]
struct KeyUse {
    queues: usize,
    /// Sequence number of the next datagram.
    generation: u32,
}

impl Reassembler {
    /// Returns a reassembler that queues at most `limit` fragments (`set limit frags`), and keeps
    /// an incomplete datagram for `timeout` seconds.
    pub fn new(limit: usize, timeout: u32) -> Self {
        Reassembler {
            limit,
            timeout,
            queues: HashMap::new(),
            by_use: BTreeMap::new(),
            uses: 0,
            key_uses: HashMap::new(),
            pieces: 0,
            counters: Counters::default(),
        }
    }

    /// Sets other limits for all later calls.
    pub fn configure(&mut self, limit: usize, timeout: u32) {
        (self.limit, self.timeout) = (limit, timeout);
    }

    /// Returns the number of queued fragments.
    pub fn pieces(&self) -> usize {
        self.pieces
    }

    /// Returns the counters since the reassembler was made.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// Drops expired datagrams, beginning with the least recently used one. Like pf, stops at the
    /// first datagram that has not expired. `now` is in seconds.
    pub fn expire(&mut self, now: u32) {
        while let Some(oldest) = self.oldest()
            && self.queues[&oldest].since.saturating_add(self.timeout) <= now
        {
            self.remove(&oldest);
        }
    }

    /// Adds a fragment to its datagram. `now` is in seconds.
    pub fn add(&mut self, piece: Piece, now: u32) -> FragmentFate {
        if self.pieces >= self.limit {
            self.make_room();
            if self.pieces >= self.limit {
                return FragmentFate::Dropped(Some(Reason::Memory));
            }
        }
        if datagram::is_impossible(&piece) {
            return FragmentFate::Dropped(Some(Reason::Fragment));
        }
        let id = (piece.key, piece.id);
        self.counters.searches += 1;
        self.remove_if_stale(&id);
        if self.queues.contains_key(&id) {
            self.touch(&id);
            if let Err(reason) = self.insert(&id, piece) {
                return FragmentFate::Dropped(reason);
            }
        } else {
            self.begin(id, piece, now);
        }
        if !self.queues[&id].datagram.is_complete() {
            return FragmentFate::Queued;
        }
        match self.remove(&id).map(|queue| queue.datagram.join()) {
            Some(Ok(whole)) => FragmentFate::Complete(whole),
            Some(Err(reason)) => FragmentFate::Dropped(Some(reason)),
            None => FragmentFate::Queued,
        }
    }

    fn begin(&mut self, id: (Key, u32), piece: Piece, now: u32) {
        let key_use = self.key_uses.entry(id.0).or_default();
        let generation = key_use.generation;
        key_use.generation = generation.wrapping_add(1);
        key_use.queues += 1;
        let datagram = Datagram::new(piece);
        let queue = Queue { datagram, since: now, last_use: self.uses, generation };
        self.by_use.insert(self.uses, id);
        self.uses += 1;
        self.queues.insert(id, queue);
        self.pieces += 1;
        self.counters.inserts += 1;
    }

    fn insert(&mut self, id: &(Key, u32), piece: Piece) -> Result<(), Option<Reason>> {
        let Some(queue) = self.queues.get_mut(id) else {
            return Err(Some(Reason::Fragment));
        };
        let before = queue.datagram.pieces();
        let mut moved = Moved::default();
        let inserted = queue.datagram.insert(piece, &mut moved);
        self.pieces = self.pieces - before + queue.datagram.pieces();
        self.counters.inserts += moved.inserted;
        self.counters.removals += moved.removed;
        inserted.map_err(|misfit| match misfit {
            Misfit::Piece(reason) => reason,
            Misfit::Datagram => {
                self.remove(id);
                Some(Reason::Fragment)
            }
        })
    }

    fn oldest(&self) -> Option<(Key, u32)> {
        self.by_use.first_key_value().map(|(_, id)| *id)
    }

    fn touch(&mut self, id: &(Key, u32)) {
        if let Some(queue) = self.queues.get_mut(id) {
            self.by_use.remove(&queue.last_use);
            queue.last_use = self.uses;
            self.by_use.insert(self.uses, *id);
            self.uses += 1;
        }
    }

    fn remove_if_stale(&mut self, id: &(Key, u32)) {
        let (Some(key_use), Some(queue)) = (self.key_uses.get(&id.0), self.queues.get(id)) else {
            return;
        };
        let newer = key_use.generation.wrapping_sub(queue.generation);
        if newer >= self.timeout.saturating_mul(STALE) {
            self.remove(id);
        }
    }

    /// Drops the least recently used datagrams until a tenth of all fragments is removed.
    fn make_room(&mut self) {
        let goal = self.pieces * 9 / 10;
        while self.pieces > goal
            && let Some(oldest) = self.oldest()
        {
            self.remove(&oldest);
        }
    }

    fn remove(&mut self, id: &(Key, u32)) -> Option<Queue> {
        let queue = self.queues.remove(id)?;
        self.by_use.remove(&queue.last_use);
        self.pieces -= queue.datagram.pieces();
        self.counters.removals += queue.datagram.pieces() as u64;
        if let Some(key_use) = self.key_uses.get_mut(&id.0) {
            key_use.queues -= 1;
            if key_use.queues == 0 {
                self.key_uses.remove(&id.0);
            }
        }
        Some(queue)
    }
}
