//! The XDP programs. Verifying the XDP programs takes a third of the time of all programs, and most
//! rule sets do without XDP. So the programs are loaded when a rule set first has `set xdp on`.

use std::path::Path;

use crate::error::Result;
use crate::object::{self, XDP_FAST_PATH_HOOKS};
use crate::program::Program;

/// The XDP programs, which see frames before the kernel makes packets of them.
pub struct XdpFastPath {
    /// The program for drivers of cards.
    pub card: Program,
    /// The program for veth devices.
    pub veth: Program,
}

impl XdpFastPath {
    /// Opens the programs that are pinned in `directory`. Loads and pins them first if the instance
    /// has none.
    ///
    /// # Errors
    /// Fails if the verifier refuses a program, or if it cannot be pinned or opened.
    pub(crate) fn open_or_load(directory: &Path) -> Result<Self> {
        let [card, veth] = XDP_FAST_PATH_HOOKS;
        if !XDP_FAST_PATH_HOOKS.iter().all(|name| directory.join(name).exists()) {
            for program in object::load_xdp_fast_path(directory)? {
                match program.pin(directory) {
                    Err(error) if error.is_already_there() => {}
                    done => done?,
                }
            }
        }
        Ok(XdpFastPath {
            card: Program::open(directory, card)?,
            veth: Program::open(directory, veth)?,
        })
    }
}
