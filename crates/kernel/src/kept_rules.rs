//! The rules that a trial keeps. Their tables and numbers in the rule set on trial are beside those
//! of the rule set before it: the kernel goes back by one store, and no process may be there to
//! write other values then.

use std::mem::offset_of;

use skipstep_abi as abi;

use crate::object::Maps;
use crate::record::{Record, SlotSet};

/// The number of a rule that is in no rule set.
pub(crate) const NO_NUMBER: u32 = -1i32 as u32;

/// The slots of the rules that a trial keeps.
pub(crate) struct KeptRules {
    slots: SlotSet,
    /// Generation of the rule set on trial.
    generation: u32,
}

impl KeptRules {
    /// Returns the rules of `kept`, while `new` is on trial. Until other values follow, their
    /// values for `new` are those of `kept`. No packet reads them before [`KeptRules::begin`].
    pub fn new(maps: &Maps, kept: &Record, new: &Record) -> KeptRules {
        let slots: SlotSet = kept.slots().collect();
        slots.iter().for_each(|slot| copy_tables(maps, slot));
        KeptRules { slots, generation: new.generation }
    }

    /// True if a trial keeps the rule in a slot.
    pub fn has(kept: Option<&KeptRules>, slot: u32) -> bool {
        kept.is_some_and(|kept| kept.slots.contains(slot))
    }

    /// Returns the generation on trial if a trial keeps the rule in a slot.
    pub fn generation(kept: Option<&KeptRules>, slot: u32) -> Option<u32> {
        kept.filter(|kept| kept.slots.contains(slot)).map(|kept| kept.generation)
    }

    /// Writes the slot of a table that a rule compares its source (`place` 0) or destination with.
    pub fn set_table(kept: Option<&KeptRules>, maps: &Maps, slot: u32, place: usize, table: u32) {
        let field = match Self::has(kept, slot) {
            true => offset_of!(abi::RuleTable, trial_slot),
            false => offset_of!(abi::RuleTable, slot),
        };
        let tables = offset_of!(abi::RuleStates, tables) + place * size_of::<abi::RuleTable>();
        maps.shared_rule_states.store(slot, tables + field, table);
    }

    /// Writes the slot of the table that a rule fills.
    pub fn set_overload(kept: Option<&KeptRules>, maps: &Maps, slot: u32, table: u32) {
        let field = match Self::has(kept, slot) {
            true => offset_of!(abi::RuleStates, trial_overload),
            false => offset_of!(abi::RuleStates, overload_table),
        };
        maps.shared_rule_states.store(slot, field, table);
    }

    /// Writes the numbers of the rules in `new`, which is on trial, and makes all values for it
    /// valid. A rule that only `new` has gets no other number, so it has none when the kernel goes
    /// back.
    pub fn begin(&self, maps: &Maps, new: &Record) {
        let on_trial: SlotSet = new.slots().collect();
        let gone = self.slots.iter().filter(|slot| !on_trial.contains(*slot));
        let numbered = new.rules().map(|(rule, slot)| (slot, rule.number));
        let states = &maps.shared_rule_states;
        for (slot, number) in numbered.chain(gone.map(|slot| (slot, NO_NUMBER))) {
            let is_kept = self.slots.contains(slot);
            if !is_kept {
                copy_tables(maps, slot);
            }
            states.store(slot, offset_of!(abi::RuleStates, trial_number), number);
            states.store(slot, offset_of!(abi::RuleStates, trial_generation), self.generation);
            if !is_kept {
                states.store(slot, offset_of!(abi::RuleStates, number), NO_NUMBER);
            }
        }
    }
}

/// Copies the slots of a rule's tables to those for the rule set on trial.
fn copy_tables(maps: &Maps, slot: u32) {
    let states = &maps.shared_rule_states;
    let copy = |from, to| states.store(slot, to, states.load(slot, from));
    for place in 0..2 {
        let table = offset_of!(abi::RuleStates, tables) + place * size_of::<abi::RuleTable>();
        let (own, trial) =
            (offset_of!(abi::RuleTable, slot), offset_of!(abi::RuleTable, trial_slot));
        copy(table + own, table + trial);
    }
    copy(offset_of!(abi::RuleStates, overload_table), offset_of!(abi::RuleStates, trial_overload));
}

/// Returns the number of the rule in a slot, in the rule set in force; `None` if that rule set does
/// not have the rule.
pub(crate) fn number(maps: &Maps, slot: u32) -> Option<u32> {
    let word = |field| maps.shared_rule_states.load(slot, field);
    let generation = maps.shared_status.load(0, offset_of!(abi::Status, generation));
    let on_trial = word(offset_of!(abi::RuleStates, trial_generation));
    let number = match on_trial != 0 && on_trial == generation {
        true => word(offset_of!(abi::RuleStates, trial_number)),
        false => word(offset_of!(abi::RuleStates, number)),
    };
    u32::try_from(number as i32).ok()
}
