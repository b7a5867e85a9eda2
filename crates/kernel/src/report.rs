//! Reports of an instance: counters of rules, labels and interfaces, and its status.

use std::collections::BTreeMap;
use std::mem::offset_of;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use skipstep_abi as abi;
pub use skipstep_abi::names::LIMIT_COUNTERS;
use skipstep_abi::status::{forwarded, left_to};
use skipstep_ruleset::interface::Interface;
use skipstep_views::{InterfaceCounters, RuleCounters, Status};

use crate::change::Change;
use crate::delayer::DelayCounters;
use crate::diverter::DivertCounters;
use crate::error::Result;
use crate::instance::Instance;
use crate::record::{Memory, Record, wall_clock};
use crate::{attach, counters, host};

/// Counters of fragments that wait for the others of their datagram.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FragmentStatus {
    /// Fragments that wait now.
    pub current: u64,
    /// Searches for the datagram of a fragment.
    pub searches: u64,
    /// Fragments stored.
    pub inserts: u64,
    /// Fragments removed.
    pub removals: u64,
    /// Packets that the kernel dropped on the way to skipstepd, which did not keep up.
    pub lost: u64,
    /// Frames that skipstepd dropped because they did not come from the data plane.
    pub foreign: u64,
}

/// Status of an instance, as `pfctl -si` prints it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstanceStatus {
    /// True if packets are filtered.
    pub running: bool,
    /// Seconds since the filter was enabled or disabled.
    pub since_secs: u32,
    /// Seconds that the sweeper's timer is overdue.
    pub sweep_late_secs: u32,
    /// Number of times that the kernel refused to start this timer, and the latest errno.
    pub timer_errors: (u32, u32),
    /// Number of states.
    pub states: u32,
    /// Number of TCP states whose initiator is not established.
    pub half_open: u32,
    /// Largest number of states.
    pub capacity: u32,
    /// Number of this host: `set hostid`, or a number drawn for the instance.
    pub hostid: u32,
    /// Debug level: `set debug` or `pfctl -x`.
    pub debug: u8,
    /// Searches, inserts, removals and reasons.
    pub engine: Status,
    /// Fragments that wait, and the counters of reassembly.
    pub fragments: FragmentStatus,
    /// Log records lost because the ring was full.
    pub log_lost: u64,
    /// Flow records lost because the ring was full.
    pub flow_lost: u64,
    /// Packets that the fast path sent past the kernel's forwarding, by tc and by XDP.
    pub forwarded: [u64; forwarded::MAX],
    /// Packets that bypassed the fast path, by reason (`abi::status::left_to`).
    pub left_to: [u64; left_to::MAX],
    /// Packets for programs; skipstepd updates these counters once a second.
    pub divert: DivertCounters,
    /// Packets for programs that did not reach skipstepd.
    pub divert_lost: u64,
    /// Delayed packets; skipstepd updates these counters once a second.
    pub delay: DelayCounters,
    /// The interface or group of `set loginterface`, with its counters; for a group, the sum of its
    /// members.
    pub loginterface: Option<(String, InterfaceCounters)>,
}

/// The hook at which the data plane sees the packets of an interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Hook {
    /// No hook: packets are not filtered, or the interface does not exist.
    None,
    /// No hook, though packets are filtered: the interface is new and not attached yet.
    Unattached {
        /// True if the guard drops its packets.
        guarded: bool,
    },
    /// tc, where the kernel has made skbs of the packets.
    Tc {
        /// The reason why the driver runs no XDP program though `set xdp on` names the interface.
        without_xdp: Option<String>,
    },
    /// The driver (XDP), and tc.
    Xdp,
}

/// An interface as `pfctl -sI` prints it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InterfaceView {
    /// Name of the interface.
    pub name: String,
    /// Index of the interface; `None` if rules name it and it does not exist.
    pub index: Option<u32>,
    /// Groups of the interface.
    pub groups: Vec<String>,
    /// True if `set skip on` names the interface.
    pub skip: bool,
    /// Hook where the data plane sees its packets.
    pub hook: Hook,
    /// Packets and bytes, summed over all CPUs.
    pub counters: InterfaceCounters,
    /// Time when the counters were last cleared.
    pub zeroed: SystemTime,
}

impl Instance {
    /// Returns the counters of every filter rule of an anchor, in order; of the main rule set if
    /// the path is empty.
    ///
    /// # Errors
    /// Fails if the record or the maps cannot be read.
    pub fn rule_counters(&self, anchor: &str) -> Result<Vec<RuleCounters>> {
        let slots = slots_of(&self.record()?, anchor);
        slots.iter().map(|slot| counters::rule(&self.maps, *slot)).collect()
    }

    /// Returns the counters of the filter rules of all rule sets, by the path of their anchor. The
    /// main rule set has the empty path.
    ///
    /// # Errors
    /// Fails if the record or the maps cannot be read.
    pub fn all_rule_counters(&self) -> Result<BTreeMap<String, Vec<RuleCounters>>> {
        let counters = |slots: &[u32]| -> Result<Vec<RuleCounters>> {
            slots.iter().map(|slot| counters::rule(&self.maps, *slot)).collect()
        };
        let sets = self.record()?.rule_sets.into_iter();
        sets.map(|(path, set)| Ok((path, counters(&set.slots)?))).collect()
    }

    /// Returns the counters of every legacy rule of an anchor, in order; of the main rule set if
    /// the path is empty.
    ///
    /// # Errors
    /// Fails if the record or the maps cannot be read.
    pub fn legacy_rule_counters(&self, anchor: &str) -> Result<Vec<RuleCounters>> {
        let record = self.record()?;
        let slots = record.rule_sets.get(anchor).map_or(&[][..], |set| &set.legacy_slots);
        slots.iter().map(|slot| counters::rule(&self.maps, *slot)).collect()
    }

    /// Returns the counters of the implicit default rule.
    ///
    /// # Errors
    /// Fails if the maps cannot be read.
    pub fn default_counters(&self) -> Result<RuleCounters> {
        counters::rule(&self.maps, abi::limits::IDLE_SLOT)
    }

    /// Clears the counters of all rules of an anchor, or of the main rule set if the path is empty.
    /// As in pf, this clears the number of states created, too.
    ///
    /// # Errors
    /// Fails if the lock cannot be taken, or if the maps or records cannot be written.
    pub fn zero_rule_counters(&self, anchor: &str) -> Result<()> {
        let change = self.begin()?;
        let mut slots = slots_of(&change.record, anchor);
        slots.extend(
            change.record.rule_sets.get(anchor).into_iter().flat_map(|set| &set.legacy_slots),
        );
        if anchor.is_empty() {
            slots.push(abi::limits::IDLE_SLOT);
        }
        self.maps.rule_stats.clear_many(&slots)?;
        for slot in slots {
            let total = offset_of!(abi::RuleStates, total);
            self.maps.shared_rule_states.store_long(slot, total, 0);
        }
        change.keep()
    }

    /// Returns the status, limits and counters of the whole instance.
    ///
    /// # Errors
    /// Fails if the maps or records cannot be read.
    pub fn status(&self) -> Result<InstanceStatus> {
        let status = self.maps.status.at(0)?;
        let totals = counters::totals(&self.maps)?;
        let record = self.record()?;
        let memory = self.run.memory()?;
        let now = self.uptime()?;
        Ok(InstanceStatus {
            running: status.running != 0,
            since_secs: now.saturating_sub(status.since),
            sweep_late_secs: match status.second {
                0 => 0, // the timer was never started
                second => now.saturating_sub(second + 1),
            },
            timer_errors: (status.timer_errors, status.timer_error),
            states: status.states,
            half_open: status.half_open,
            capacity: status.capacity,
            hostid: record.ruleset.options.hostid.unwrap_or(memory.hostid),
            debug: memory.debug,
            engine: counters::status(&self.maps)?,
            fragments: self.fragments()?,
            log_lost: totals.log_lost,
            flow_lost: totals.flow_lost,
            forwarded: totals.forwarded,
            left_to: totals.left_to,
            divert: self.diverted()?,
            divert_lost: totals.divert_lost,
            delay: self.delayed()?,
            loginterface: self.loginterface(&record)?,
        })
    }

    /// Returns the counters of reassembly, which skipstepd updates once a second.
    fn fragments(&self) -> Result<FragmentStatus> {
        let abi::Reassembler { pieces, searches, inserts, removals, lost, foreign, .. } =
            self.maps.reassembler.at(0)?;
        Ok(FragmentStatus { current: pieces.into(), searches, inserts, removals, lost, foreign })
    }

    fn diverted(&self) -> Result<DivertCounters> {
        let abi::Diverter { delivered, returned, no_program, full, malformed, foreign, .. } =
            self.maps.diverter.at(0)?;
        Ok(DivertCounters { delivered, returned, no_program, full, malformed, foreign })
    }

    fn delayed(&self) -> Result<DelayCounters> {
        let abi::Delayer { waiting, sent, refused, full, foreign, .. } = self.maps.delayer.at(0)?;
        Ok(DelayCounters { waiting, sent, refused, full, foreign })
    }

    fn loginterface(&self, record: &Record) -> Result<Option<(String, InterfaceCounters)>> {
        let Some(name) = &record.ruleset.options.loginterface else {
            return Ok(None);
        };
        let mut sum = InterfaceCounters::default();
        for interface in self.interfaces()? {
            if &interface.name == name || interface.groups.contains(name) {
                sum.add(&interface.counters);
            }
        }
        Ok(Some((name.clone(), sum)))
    }

    /// Clears all counters of `pfctl -si`, including those of interfaces.
    ///
    /// # Errors
    /// Fails if the lock cannot be taken, or if the maps or records cannot be written.
    pub fn clear_status(&self) -> Result<()> {
        let mut change = self.begin()?;
        self.maps.counters.set(&0, &abi::Counters::default())?;
        let names = change.memory.names.interfaces.iter();
        for name in names.map(|(name, _)| name.to_owned()).collect::<Vec<_>>() {
            self.zero(&mut change, &name)?;
        }
        change.keep()
    }

    /// Returns all interfaces that exist or that rules name, sorted by name.
    ///
    /// # Errors
    /// Fails if the maps, the instance's memory or the host cannot be read.
    pub fn interfaces(&self) -> Result<Vec<InterfaceView>> {
        let memory = self.run.memory()?;
        let present: Vec<(u32, abi::Interface)> = self
            .maps
            .interfaces
            .keys()
            .filter_map(|index| Some((index, self.maps.interfaces.get(&index).ok()??)))
            .collect();
        let copy = abi::limits::copy_of(self.generation());
        let skip_flag = abi::interface::interface_flags::SKIP << copy;
        let view = |(name, id): (&str, u32)| {
            let here = present.iter().find(|(_, interface)| interface.id == id);
            let bits = here.map_or(0, |(_, interface)| interface.groups);
            let groups = memory.names.groups.iter().filter(|(_, bit)| bits & (1 << bit) != 0);
            Ok(InterfaceView {
                name: name.to_owned(),
                index: here.map(|(index, _)| *index),
                groups: groups.map(|(group, _)| group.to_owned()).collect(),
                skip: here.is_some_and(|(_, interface)| interface.flags & skip_flag != 0),
                hook: here.map_or(Hook::None, |(index, _)| self.hook(&memory, name, *index)),
                counters: counters::interface(&self.maps, id)?,
                zeroed: UNIX_EPOCH + Duration::from_secs(memory.zeroed_at(name)),
            })
        };
        let known = memory.names.interfaces.iter().map(view);
        let mut views = known.collect::<Result<Vec<InterfaceView>>>()?;
        if self.running() {
            views.extend(self.unknown_interfaces(&views)?);
            views.sort_by(|a, b| a.name.cmp(&b.name));
        }
        Ok(views)
    }

    /// Returns the interfaces of the host that the filter does not know yet.
    fn unknown_interfaces(&self, known: &[InterfaceView]) -> Result<Vec<InterfaceView>> {
        let is_unknown =
            |interface: &Interface| !known.iter().any(|view| view.index == Some(interface.index));
        let interfaces = host::read()?.interfaces.into_iter().filter(is_unknown);
        let view = |interface: Interface| InterfaceView {
            name: interface.name,
            index: Some(interface.index),
            groups: interface.groups,
            skip: false,
            hook: self.no_hook(),
            counters: InterfaceCounters::default(),
            zeroed: SystemTime::now(),
        };
        Ok(interfaces.map(view).collect())
    }

    /// Returns the hook of an interface that the filter is not attached to.
    fn no_hook(&self) -> Hook {
        // a test runs packets in an instance that is attached to no interface
        let driven = self.maps.test.at(0).is_ok_and(|test| test.enabled != 0);
        match self.running() && !driven {
            true => Hook::Unattached { guarded: self.is_guarded() },
            false => Hook::None,
        }
    }

    fn hook(&self, memory: &Memory, name: &str, index: u32) -> Hook {
        if !attach::is_attached(&self.directory, index) {
            self.no_hook()
        } else if attach::has_xdp(&self.directory, index) {
            Hook::Xdp
        } else {
            Hook::Tc { without_xdp: memory.without_xdp.get(name).cloned() }
        }
    }

    /// Clears the counters of an interface. Returns false if the interface has none.
    ///
    /// # Errors
    /// Fails if the lock cannot be taken, or if the maps or records cannot be written.
    pub fn zero_interface(&self, name: &str) -> Result<bool> {
        let mut change = self.begin()?;
        let known = self.zero(&mut change, name)?;
        change.keep()?;
        Ok(known)
    }

    fn zero(&self, change: &mut Change, name: &str) -> Result<bool> {
        let Some(id) = change.memory.names.interfaces.get(name) else {
            return Ok(false);
        };
        self.maps.interface_stats.set(&id, &abi::InterfaceStats::default())?;
        change.memory.interfaces_zeroed.insert(name.to_owned(), wall_clock());
        Ok(true)
    }
}

/// Returns the slots of the filter rules of an anchor.
fn slots_of(record: &Record, anchor: &str) -> Vec<u32> {
    record.rule_sets.get(anchor).map_or_else(Vec::new, |set| set.slots.clone())
}
