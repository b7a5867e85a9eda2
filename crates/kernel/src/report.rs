//! What an instance tells of itself: counters of rules, labels and interfaces, and its status.

use std::mem::offset_of;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use skipstep_abi as abi;
pub use skipstep_abi::names::LIMIT_COUNTERS;
use skipstep_abi::status::{forwarded, left_to};
use skipstep_ruleset::interface::Interface;
use skipstep_scenario::engine::{RuleCounters, Status};

use crate::change::Change;
use crate::counters::InterfaceCounters;
use crate::delayer::DelayCounters;
use crate::diverter::DivertCounters;
use crate::error::Result;
use crate::instance::Instance;
use crate::record::{Memory, Record, wall_clock};
use crate::{attach, counters, host};

/// Fragments that wait for others of their datagram.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FragmentStatus {
    /// How many there are.
    pub current: u64,
    /// Datagrams looked for.
    pub searches: u64,
    /// Fragments put in.
    pub inserts: u64,
    /// Fragments taken out.
    pub removals: u64,
    /// Packets that the kernel dropped on the way to skipstepd, which did not keep up.
    pub lost: u64,
    /// Frames that skipstepd dropped because the data plane had not sent them.
    pub foreign: u64,
}

/// What `pfctl -si` prints.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstanceStatus {
    /// Whether packets are filtered.
    pub running: bool,
    /// Seconds since that was last changed.
    pub since_secs: u32,
    /// Seconds that the timer that sweeps states is overdue.
    pub sweep_late_secs: u32,
    /// Number of times that the kernel did not start that timer, and the latest error.
    pub timer_errors: (u32, u32),
    /// Current states.
    pub states: u32,
    /// TCP states whose maker is not established.
    pub half_open: u32,
    /// Places for states.
    pub capacity: u32,
    /// `set hostid`
    pub hostid: u32,
    /// `set debug`
    pub debug: u8,
    /// Searches, inserts, removals and reasons.
    pub engine: Status,
    /// Limit counters in the order of [`LIMIT_COUNTERS`].
    pub limits: [u64; LIMIT_COUNTERS.len()],
    /// Fragments that wait, and what was done with them.
    pub fragments: FragmentStatus,
    /// Log records that found the ring full.
    pub log_lost: u64,
    /// Reports of states that found their ring full.
    pub flow_lost: u64,
    /// Packets sent on past the kernel's forwarding, by tc and by XDP.
    pub forwarded: [u64; forwarded::MAX],
    /// Packets left to the kernel's forwarding for others that want them, as `abi::status::left_to`
    /// numbers these.
    pub left_to: [u64; left_to::MAX],
    /// Packets for programs, as skipstepd says once a second.
    pub divert: DivertCounters,
    /// Packets for programs that did not come as far as skipstepd.
    pub divert_lost: u64,
    /// Packets that wait before they leave, as skipstepd says once a second.
    pub delay: DelayCounters,
    /// `set loginterface`: its name and counters; a group's are the sum over its members.
    pub loginterface: Option<(String, InterfaceCounters)>,
}

/// Where the data plane sees the packets of an interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Hook {
    /// Nowhere: nothing is filtered, or `set skip on` names the interface.
    None,
    /// Nowhere, though packets are filtered: the interface has appeared and nobody has attached it.
    Unattached {
        /// True if the guard drops its packets.
        guarded: bool,
    },
    /// When the kernel has made skbs of them.
    Tc {
        /// Why the driver does not, though `set xdp on` names the interface.
        without_xdp: Option<String>,
    },
    /// In the driver too.
    Xdp,
}

/// An interface as `pfctl -sI` prints it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InterfaceView {
    /// Its name.
    pub name: String,
    /// The kernel's index; `None` for one that rules name but that is not there.
    pub index: Option<u32>,
    /// Groups it is in.
    pub groups: Vec<String>,
    /// `set skip on`
    pub skip: bool,
    /// Where the data plane sees its packets.
    pub hook: Hook,
    /// Packets and bytes.
    pub counters: InterfaceCounters,
    /// When they were last cleared.
    pub zeroed: SystemTime,
}

impl Instance {
    /// Counters of every rule of an anchor, of the main rule set if the path is empty, in order.
    pub fn rule_counters(&self, anchor: &str) -> Result<Vec<RuleCounters>> {
        let slots = slots_of(&self.record()?, anchor);
        slots.iter().map(|slot| counters::rule(&self.maps, *slot)).collect()
    }

    /// Counters of every old rule of an anchor, of the main rule set if the path is empty, in
    /// order.
    pub fn old_rule_counters(&self, anchor: &str) -> Result<Vec<RuleCounters>> {
        let record = self.record()?;
        let slots = record.rule_sets.get(anchor).map_or(&[][..], |set| &set.old_slots);
        slots.iter().map(|slot| counters::rule(&self.maps, *slot)).collect()
    }

    /// Counters of the implicit default rule.
    pub fn default_counters(&self) -> Result<RuleCounters> {
        counters::rule(&self.maps, abi::limits::IDLE_SLOT)
    }

    /// Clears the counters of all rules of an anchor, of the main rule set if the path is empty;
    /// that of states ever made too, as pf does.
    pub fn zero_rule_counters(&self, anchor: &str) -> Result<()> {
        let change = self.begin()?;
        let mut slots = slots_of(&change.record, anchor);
        slots
            .extend(change.record.rule_sets.get(anchor).into_iter().flat_map(|set| &set.old_slots));
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

    /// State, limits and counters of the whole.
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
                0 => 0, // it was never started
                second => now.saturating_sub(second + 1),
            },
            timer_errors: (status.timer_errors, status.timer_error),
            states: status.states,
            half_open: status.half_open,
            capacity: status.capacity,
            hostid: record.ruleset.options.hostid.unwrap_or(memory.hostid),
            debug: memory.debug,
            engine: counters::status(&self.maps)?,
            limits: totals.limit,
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

    /// What skipstepd says of fragments, once a second.
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

    /// Clears all counters of `pfctl -si`, those of interfaces too.
    pub fn clear_status(&self) -> Result<()> {
        let mut change = self.begin()?;
        self.maps.counters.set(&0, &abi::Counters::default())?;
        let names = change.memory.names.interfaces.iter();
        for name in names.map(|(name, _)| name.to_owned()).collect::<Vec<_>>() {
            self.zero(&mut change, &name)?;
        }
        change.keep()
    }

    /// All interfaces that are there or that rules name, in order of name.
    pub fn interfaces(&self) -> Result<Vec<InterfaceView>> {
        let memory = self.run.memory()?;
        let present: Vec<(u32, abi::Interface)> = self
            .maps
            .interfaces
            .keys()
            .filter_map(|index| Some((index, self.maps.interfaces.get(&index).ok()??)))
            .collect();
        let generation = self.generation();
        let skip_flag = match generation & 1 {
            0 => abi::interface::interface_flags::SKIP_0,
            _ => abi::interface::interface_flags::SKIP_1,
        };
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

    /// Interfaces of the host that nobody has told the filter of.
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
        // a test plays packets to an instance that is attached nowhere
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

    /// Clears the counters of an interface; false if it has none.
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

/// Slots of the filter rules of an anchor.
fn slots_of(record: &Record, anchor: &str) -> Vec<u32> {
    record.rule_sets.get(anchor).map_or_else(Vec::new, |set| set.slots.clone())
}
