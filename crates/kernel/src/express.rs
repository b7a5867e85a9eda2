//! The programs for XDP. Their verification takes a third of what all programs take, and most rule
//! sets never want them, so they are loaded when a rule set first says `set xdp on`.

use std::path::Path;

use crate::error::Result;
use crate::object::{self, EXPRESS_HOOKS};
use crate::program::Program;

/// The programs that see frames before the kernel makes packets of them.
pub(crate) struct Express {
    /// Runs in drivers of cards.
    pub card: Program,
    /// Runs in the driver of veth devices.
    pub veth: Program,
}

impl Express {
    /// Opens those of the instance whose pins are in `directory`; loads and pins them if nobody has
    /// done so before.
    ///
    /// # Errors
    /// The verifier refuses them, or they cannot be pinned.
    pub fn of(directory: &Path) -> Result<Self> {
        let [card, veth] = EXPRESS_HOOKS;
        if !EXPRESS_HOOKS.iter().all(|name| directory.join(name).exists()) {
            for program in object::load_express(directory)? {
                match program.pin(directory) {
                    Err(error) if error.is_already_there() => {}
                    done => done?,
                }
            }
        }
        Ok(Express { card: Program::open(directory, card)?, veth: Program::open(directory, veth)? })
    }
}
