//! The changes that each packet makes to an evaluator's states, independent of the evaluator.
//! States are numbered 1, 2, … in order of creation.

use std::collections::HashMap;
use std::sync::Arc;

use skipstep_model::{Draw, Fate, Packet};
use skipstep_ruleset::Ruleset;
use skipstep_ruleset::interface::Host;
use skipstep_views::{SourceView, StateView};

use crate::engine::Engine;
use crate::kill::Target;

/// An engine and the numbers of its states.
pub struct Observer<'e> {
    engine: &'e mut dyn Engine,
    numbers: HashMap<u64, u32>,
    before: Arc<Vec<(u32, StateView)>>,
    expired: Vec<u32>,
    now: u32,
}

/// The effects of a packet.
#[derive(Debug, Clone, PartialEq)]
pub struct Observation {
    /// The fate as the engine reports it, with the engine's own state ids.
    pub fate: Fate,
    /// States that expired since the previous packet.
    pub expired: Vec<u32>,
    /// The state that the packet used or created.
    pub state: Option<u32>,
    /// States that the packet created.
    pub created: Vec<u32>,
    /// States that the packet created or changed.
    pub changed: Vec<u32>,
    /// States that the packet removed.
    pub removed: Vec<u32>,
    /// Time, in seconds.
    pub now: u32,
    /// All states after the packet, ascending by number.
    pub states: Arc<Vec<(u32, StateView)>>,
    /// All tracked sources after the packet.
    pub sources: Vec<SourceView>,
}

impl Observation {
    /// True if a state has expired and is not removed yet. Evaluators remove such states at
    /// different times.
    pub fn has_ended_states(&self) -> bool {
        self.states.iter().any(|(_, state)| state.expires_at <= self.now)
    }

    /// Returns the state with this number, if it still exists.
    pub fn view(&self, number: u32) -> Option<&StateView> {
        find(&self.states, number)
    }
}

fn find(states: &[(u32, StateView)], number: u32) -> Option<&StateView> {
    let place = states.binary_search_by_key(&number, |(number, _)| *number).ok()?;
    Some(&states[place].1)
}

impl<'e> Observer<'e> {
    /// Loads rules into `engine`, which discards its previous rules, states and counters.
    ///
    /// # Errors
    /// Fails if the engine refuses the rules.
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

    /// Returns the engine, for its counters.
    pub fn engine(&mut self) -> &mut dyn Engine {
        self.engine
    }

    /// Sets the clock. Returns the states that expired.
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

    /// Removes the states with these numbers. They do not count as removed by a packet.
    pub fn kill(&mut self, numbers: &[u32]) {
        let killed = self.numbers.iter().filter(|(_, number)| numbers.contains(number));
        let ids: Vec<u64> = killed.map(|(id, _)| *id).collect();
        self.engine.kill(&ids);
        Arc::make_mut(&mut self.before).retain(|(number, _)| !numbers.contains(number));
    }

    /// Removes the states that `target` selects. They do not count as removed by a packet.
    pub fn kill_selected(&mut self, target: &Target) {
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

    /// Sets the results of random draws.
    pub fn set_random(&mut self, draw: Draw) {
        self.engine.set_random(draw);
    }

    /// Runs a packet, and returns its effects.
    pub fn packet(&mut self, packet: &Packet) -> Observation {
        let mut fate = self.engine.packet(packet);
        // A set: the status has the number of times each reason was counted.
        fate.counted.sort_unstable();
        fate.counted.dedup();
        // Bytes behind the packet are padding of the link layer.
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
