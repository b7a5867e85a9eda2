//! The key table (bpf/key_table.h), which CPUs change at once without a lock. The tests check its
//! protocol in all orders of its steps, and the real table on all CPUs.

use std::collections::HashSet;
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};
use std::sync::{LazyLock, Mutex, MutexGuard};
use std::thread;

use skipstep_abi as abi;
use skipstep_testing::KeyTable;

// ---- the protocol
// -------------------------------------------------------------------------------------------------

/// Entries that the keys of the model share: each of three CPUs can find one.
const ENTRIES: usize = 3;
/// Number of CPUs in the model.
const CPUS: usize = 3;

/// A word of the table. All words have the same key, and each CPU inserts a state of its own.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Entry {
    Free,
    Claimed(usize),
    Holds(usize),
}

/// The next step of a CPU; each step is one access to memory. Entries are numbered in the order in
/// which all CPUs check them for other entries with the key.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Step {
    /// Looks for a free entry, after trying this many.
    Search(usize),
    /// Claims this entry, which was free, after trying this many.
    Claim(usize, usize),
    /// Checks this entry for another CPU's claim or state; the second number is its own entry.
    Look(usize, usize),
    /// Waits until another CPU's claim of an entry ends: the entry, its own entry, the CPU.
    Wait(usize, usize, usize),
    /// Turns its claim into an entry.
    Confirm(usize),
    /// Frees its entry.
    GiveWay(usize),
    /// Has inserted its state in this entry.
    Won(usize),
    Lost,
    Removed,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct World {
    entries: [Entry; ENTRIES],
    at: [Step; CPUS],
}

/// The parameters of an exploration.
#[derive(Clone, Copy, Debug)]
struct Setting {
    /// True if a CPU looks for a free entry from the last one on, because the other bucket was
    /// emptier.
    from_end: [bool; CPUS],
    /// True if a CPU removes its state as soon as it is inserted.
    removes: [bool; CPUS],
    /// True if the entries that are checked later have precedence.
    turned: bool,
}

impl Setting {
    /// Returns the world after one step of a CPU; `None` if the CPU cannot go on.
    fn step(&self, world: &World, cpu: usize) -> Option<World> {
        let mut next = world.clone();
        next.at[cpu] = match world.at[cpu] {
            Step::Search(ENTRIES) => Step::Lost,
            Step::Search(tried) => {
                let here = if self.from_end[cpu] { ENTRIES - 1 - tried } else { tried };
                match world.entries[here] {
                    Entry::Free => Step::Claim(here, tried),
                    _ => Step::Search(tried + 1),
                }
            }
            Step::Claim(here, _) if world.entries[here] == Entry::Free => {
                next.entries[here] = Entry::Claimed(cpu);
                Step::Look(0, here)
            }
            Step::Claim(_, tried) => Step::Search(tried + 1),
            Step::Look(ENTRIES, own) => Step::Confirm(own),
            Step::Look(here, own) if here == own => Step::Look(here + 1, own),
            Step::Look(here, own) => match world.entries[here] {
                Entry::Free => Step::Look(here + 1, own),
                Entry::Claimed(claimant) if (here > own) != self.turned => {
                    Step::Wait(here, own, claimant)
                }
                _ => Step::GiveWay(own),
            },
            Step::Wait(here, own, claimant) => match world.entries[here] {
                Entry::Claimed(now) if now == claimant => return None,
                Entry::Holds(_) => Step::GiveWay(own),
                // a new claim has come later, and its CPU will see this one
                _ => Step::Look(here + 1, own),
            },
            Step::Confirm(own) => {
                next.entries[own] = Entry::Holds(cpu);
                Step::Won(own)
            }
            Step::GiveWay(own) => {
                next.entries[own] = Entry::Free;
                Step::Lost
            }
            Step::Won(own) if self.removes[cpu] => {
                next.entries[own] = Entry::Free;
                Step::Removed
            }
            Step::Won(_) | Step::Lost | Step::Removed => return None,
        };
        Some(next)
    }

    /// Returns all reachable worlds, and those in which no CPU can go on.
    fn explore(&self) -> (HashSet<World>, Vec<World>) {
        let start = World { entries: [Entry::Free; ENTRIES], at: [Step::Search(0); CPUS] };
        let (mut seen, mut ends) = (HashSet::from([start.clone()]), Vec::new());
        let mut open = vec![start];
        while let Some(world) = open.pop() {
            let nexts: Vec<World> = (0..CPUS).filter_map(|cpu| self.step(&world, cpu)).collect();
            if nexts.is_empty() {
                ends.push(world);
                continue;
            }
            for next in nexts {
                if seen.insert(next.clone()) {
                    open.push(next);
                }
            }
        }
        (seen, ends)
    }
}

/// Returns bit `n` of a number for CPU `n`.
fn bits(number: u32) -> [bool; CPUS] {
    std::array::from_fn(|cpu| number >> cpu & 1 == 1)
}

/// Returns the number of states that have the key.
fn holders(world: &World) -> usize {
    world.entries.iter().filter(|entry| matches!(entry, Entry::Holds(_))).count()
}

#[test]
fn a_key_has_at_most_one_state_and_one_cpu_always_wins() {
    for choice in 0..128 {
        let setting = Setting {
            from_end: bits(choice),
            removes: bits(choice >> 3),
            turned: choice >> 6 == 1,
        };
        let (worlds, ends) = setting.explore();
        assert!(worlds.len() > 500, "{setting:?}: {} worlds are no exploration", worlds.len());
        for world in &worlds {
            assert!(holders(world) <= 1, "{setting:?}: {world:?}");
        }
        for end in &ends {
            let is_done = |at: &Step| matches!(at, Step::Won(_) | Step::Lost | Step::Removed);
            assert!(end.at.iter().all(is_done), "{setting:?}: somebody waits for ever: {end:?}");
            let is_winner = |at: &Step| matches!(at, Step::Won(_) | Step::Removed);
            assert!(end.at.iter().any(is_winner), "{setting:?}: all have given way: {end:?}");
        }
    }
}

// ---- the table itself
// -----------------------------------------------------------------------------------------------

/// Returns the table that all tests share, because the verifier takes seconds for each new one.
/// Each test begins and ends with an empty table.
fn table() -> MutexGuard<'static, KeyTable> {
    static TABLE: LazyLock<Mutex<KeyTable>> =
        LazyLock::new(|| Mutex::new(KeyTable::new().unwrap()));
    let table = TABLE.lock().expect("no other test of the table has failed");
    assert_eq!(table.entries().unwrap(), 0, "another test has left entries");
    table
}

/// Returns a UDP key that is unique to a number.
fn key(number: u32, made: u8) -> abi::StateKey {
    let mut address = [[0; 16]; 2];
    address[0][..4].copy_from_slice(&number.to_be_bytes());
    address[1][..4].copy_from_slice(&[192, 0, 2, 1]);
    let port = [[4, 0], [0, 53]];
    abi::StateKey { address, port, made, family: abi::INET, protocol: 17, ..Default::default() }
}

/// Returns the reversed key: addresses and ports swapped.
fn turned(key: abi::StateKey) -> abi::StateKey {
    let ([one, other], [from, to]) = (key.address, key.port);
    abi::StateKey { address: [other, one], port: [to, from], ..key }
}

#[test]
#[ignore = "needs root"]
fn threads_on_all_cpus_never_have_the_same_key_at_once() {
    const KEYS: u32 = 24;
    /// Number of states that the threads make together.
    const STATES: u32 = 20_000;
    let table = table();
    let owners: Vec<AtomicI32> = (0..KEYS).map(|_| AtomicI32::new(0)).collect();
    let (won, lost) = (AtomicU32::new(0), AtomicU32::new(0));
    let work = |seed: u64| {
        let mut draw = seed;
        let (made, refused) = (|| won.load(Ordering::Relaxed), || lost.load(Ordering::Relaxed));
        // an insert is refused while another thread has the key: run until this has happened once
        while made() < STATES || refused() == 0 && made() < 50 * STATES {
            draw = draw.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let number = (draw >> 33) as u32 % KEYS;
            let key = [key(number, abi::state::made::PLAIN); 2];
            let Some(state) = table.insert(key).unwrap() else {
                lost.fetch_add(1, Ordering::Relaxed);
                continue;
            };
            won.fetch_add(1, Ordering::Relaxed);
            let owner = &owners[number as usize];
            assert_eq!(owner.fetch_add(1, Ordering::SeqCst), 0, "two states have key {number}");
            assert_eq!(table.insert(key).unwrap(), None, "key {number} is not found");
            owner.fetch_sub(1, Ordering::SeqCst);
            assert!(table.remove(state).unwrap(), "the state of key {number} is gone");
        }
    };
    let threads = std::thread::available_parallelism().map_or(2, usize::from).max(2) * 2;
    thread::scope(|scope| {
        (0..threads as u64).for_each(|seed| drop(scope.spawn(move || work(seed))))
    });
    assert_eq!(table.entries().unwrap(), 0, "entries are left");
    let (won, lost) = (won.into_inner(), lost.into_inner());
    assert!(won >= STATES && lost > 0, "{won} states were made, {lost} were not");
}

/// Makes as many states as there is room for, with the keys of `sides`, and removes them.
fn fill_and_empty(table: &KeyTable, sides: impl Fn(u32) -> [abi::StateKey; 2]) {
    let made: Vec<abi::Kill> = (0..table.capacity())
        .map(|number| table.insert(sides(number)).unwrap().expect("there is room"))
        .collect();
    assert_eq!(table.entries().unwrap(), 2 * made.len());
    assert_eq!(table.insert(sides(0)).unwrap(), None, "nobody is driven out");
    for state in made {
        assert!(table.remove(state).unwrap());
    }
    assert_eq!(table.entries().unwrap(), 0);
}

#[test]
#[ignore = "needs root"]
fn there_is_room_for_both_keys_of_all_states() {
    let table = table();
    let key = |number| key(number, abi::state::made::IN);
    fill_and_empty(&table, |number| [key(number), key(number | 1 << 31)]);
    // the same with pairs of keys that share both buckets
    fill_and_empty(&table, |number| [key(number), turned(key(number))]);
}

/// Checks that both directions of a flow share their buckets, which are then in the cache on
/// egress.
#[test]
#[ignore = "needs root"]
fn a_key_and_its_reverse_have_the_same_buckets() {
    let table = table();
    for number in 0..100 {
        let key = key(number, abi::state::made::PLAIN);
        let lines_of = |keys: &[abi::StateKey]| {
            let insert = |key: &abi::StateKey| table.insert([*key; 2]).unwrap().unwrap();
            let made: Vec<abi::Kill> = keys.iter().map(insert).collect();
            let lines = table.lines_in_use().unwrap();
            assert!(made.into_iter().all(|state| table.remove(state).unwrap()));
            lines
        };
        // alone a key takes its first bucket; next to a key in the first bucket it takes the second
        assert_eq!(lines_of(&[key]), lines_of(&[turned(key)]), "key {number}");
        assert_eq!(lines_of(&[key, turned(key)]), lines_of(&[turned(key), key]), "key {number}");
    }
}

#[test]
#[ignore = "needs root"]
fn wrong_prefetch_hints_change_nothing() {
    const KEYS: u32 = 1_000;
    let table = table();
    let sides = |number| [key(number, abi::state::made::PLAIN); 2];
    for wrong in [1, table.capacity(), table.capacity() + 1, u32::MAX] {
        table.overwrite_hints(wrong).unwrap();
        let made: Vec<abi::Kill> =
            (0..KEYS).map(|number| table.insert(sides(number)).unwrap().unwrap()).collect();
        assert_eq!(table.peer_hints().unwrap(), [0; KEYS as usize], "of new ones nothing is known");
        table.overwrite_hints(wrong).unwrap();
        for (number, state) in (0..KEYS).zip(made) {
            assert_eq!(table.insert(sides(number)).unwrap(), None, "key {number} is not found");
            assert!(table.remove(state).unwrap());
        }
        assert_eq!(table.entries().unwrap(), 0);
    }
}
