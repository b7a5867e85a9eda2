//! An evaluator with its states numbered 1, 2, … in order of creation, and what every packet
//! changed about them: the same picture whichever evaluator it is.

use std::collections::HashMap;
use std::sync::Arc;

use skipstep_ruleset::Ruleset;
use skipstep_ruleset::interface::Host;

use crate::engine::{Draw, Engine, Fate, SourceView, StateView, TestPacket};
use crate::kill::Target;

/// Drives an engine and keeps track of its states.
pub struct Observer<'e> {
    engine: &'e mut dyn Engine,
    numbers: HashMap<u64, u32>,
    before: Arc<Vec<(u32, StateView)>>,
    expired: Vec<u32>,
    now: u32,
}

/// What a packet did.
#[derive(Debug, Clone, PartialEq)]
pub struct Observation {
    /// As the engine tells it; state ids are the engine's own.
    pub fate: Fate,
    /// States that the clock ended since the previous packet.
    pub expired: Vec<u32>,
    /// Number of the state the packet used or made.
    pub state: Option<u32>,
    /// States it made.
    pub created: Vec<u32>,
    /// States it made or changed.
    pub changed: Vec<u32>,
    /// States it removed.
    pub removed: Vec<u32>,
    /// Second of the clock.
    pub now: u32,
    /// All states afterwards, ascending by number.
    pub states: Arc<Vec<(u32, StateView)>>,
    /// All sources that are tracked afterwards.
    pub sources: Vec<SourceView>,
}

impl Observation {
    /// Whether some state's time is up, so that it only waits to be removed. Evaluators differ in
    /// when they do that.
    pub fn has_ended_states(&self) -> bool {
        self.states.iter().any(|(_, state)| state.expires_at <= self.now)
    }

    /// The state with this number, if there still is one.
    pub fn view(&self, number: u32) -> Option<&StateView> {
        find(&self.states, number)
    }
}

fn find(states: &[(u32, StateView)], number: u32) -> Option<&StateView> {
    let place = states.binary_search_by_key(&number, |(number, _)| *number).ok()?;
    Some(&states[place].1)
}

impl<'e> Observer<'e> {
    /// Loads rules into `engine`, which forgets everything before.
    pub fn load(
        engine: &'e mut dyn Engine,
        ruleset: &Ruleset,
        host: &Host,
    ) -> Result<Self, String> {
        engine.load(ruleset, host)?;
        Ok(Observer {
            engine,
            numbers: HashMap::new(),
            before: Arc::default(),
            expired: Vec::new(),
            now: 0,
        })
    }

    /// The engine itself, for its counters.
    pub fn engine(&mut self) -> &mut dyn Engine {
        self.engine
    }

    /// Sets the clock. Returns the states that ended by it.
    pub fn set_time(&mut self, seconds: u32) -> Vec<u32> {
        self.now = seconds;
        let ended: Vec<u32> = self
            .engine
            .set_time(seconds)
            .into_iter()
            .filter_map(|id| self.numbers.get(&id).copied())
            .collect();
        if !ended.is_empty() {
            Arc::make_mut(&mut self.before).retain(|(number, _)| !ended.contains(number));
        }
        self.expired.extend(&ended);
        ended
    }

    /// Kills the states with these numbers. No packet removed them.
    pub fn kill(&mut self, numbers: &[u32]) {
        let killed = self.numbers.iter().filter(|(_, number)| numbers.contains(number));
        let ids: Vec<u64> = killed.map(|(id, _)| *id).collect();
        self.engine.kill(&ids);
        Arc::make_mut(&mut self.before).retain(|(number, _)| !numbers.contains(number));
    }

    /// Kills the states that are meant. No packet removed them.
    pub fn kill_meant(&mut self, target: &Target) {
        let labelled = match target {
            Target::Label(label) => Some(self.engine.labelled(label)),
            _ => None,
        };
        let meant = |view: &StateView| {
            target.matches(view, 0) && labelled.as_ref().is_none_or(|ids| ids.contains(&view.id))
        };
        let ids: Vec<u64> =
            self.engine.states().iter().filter(|view| meant(view)).map(|view| view.id).collect();
        self.engine.kill(&ids);
        Arc::make_mut(&mut self.before).retain(|(_, view)| !ids.contains(&view.id));
    }

    /// Sets what random draws return.
    pub fn set_random(&mut self, draw: Draw) {
        self.engine.set_random(draw);
    }

    /// Runs a packet and looks at what it changed.
    pub fn packet(&mut self, packet: &TestPacket) -> Observation {
        let mut fate = self.engine.packet(packet);
        // a set: how often each was counted shows in the status
        fate.counted.sort_unstable();
        fate.counted.dedup();
        // what stands behind the packet is padding of the link
        if let Some(out) = &mut fate.out {
            out.truncate(skipstep_wire::ip_length(out));
        }
        let mut views = self.engine.states();
        views.sort_by_key(|view| view.id);
        let mut created = Vec::new();
        let mut states = Vec::with_capacity(views.len());
        for view in views {
            let next = self.numbers.len() as u32 + 1;
            let number = *self.numbers.entry(view.id).or_insert(next);
            if number == next {
                created.push(number);
            }
            states.push((number, view));
        }
        let changed = states
            .iter()
            .filter(|(number, view)| find(&self.before, *number) != Some(view))
            .map(|(number, _)| *number)
            .collect();
        let removed = self
            .before
            .iter()
            .map(|(number, _)| *number)
            .filter(|number| find(&states, *number).is_none())
            .collect();
        let states = Arc::new(states);
        self.before = Arc::clone(&states);
        let mut sources = self.engine.sources();
        sources.sort_by_cached_key(SourceView::order);
        Observation {
            state: fate.state.and_then(|id| self.numbers.get(&id).copied()),
            expired: std::mem::take(&mut self.expired),
            fate,
            created,
            changed,
            removed,
            now: self.now,
            states,
            sources,
        }
    }
}
