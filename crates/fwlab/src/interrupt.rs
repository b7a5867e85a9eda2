//! Ctrl-C and SIGTERM: what is under way stops, everything that was made is taken away, and what is
//! known so far is kept. A second signal ends the program at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1};

/// Whether a signal came since [`Interrupt::watch`], or something else that ends what is under way.
#[derive(Debug, Clone)]
pub struct Interrupt(Vec<Arc<AtomicBool>>);

/// What an interrupted measurement ends with.
#[derive(Debug, thiserror::Error)]
#[error("interrupted")]
pub struct Interrupted;

impl Interrupt {
    /// Begins to watch. SIGUSR1 gets a handler that does nothing: it is what wakes our own threads.
    ///
    /// # Errors
    /// The system refuses a handler.
    pub fn watch() -> std::io::Result<Interrupt> {
        let came = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            signal_hook::flag::register_conditional_shutdown(signal, 128 + signal, came.clone())?;
            signal_hook::flag::register(signal, came.clone())?;
        }
        signal_hook::flag::register(SIGUSR1, Arc::new(AtomicBool::new(false)))?;
        Ok(Interrupt(vec![came]))
    }

    /// One that never comes.
    pub fn never() -> Interrupt {
        Interrupt(Vec::new())
    }

    /// One that comes also when this is set.
    pub fn or(&self, other: &Arc<AtomicBool>) -> Interrupt {
        Interrupt(self.0.iter().chain([other]).cloned().collect())
    }

    /// Whether one came.
    pub fn came(&self) -> bool {
        self.0.iter().any(|one| one.load(Ordering::Relaxed))
    }

    /// Stops here if one came.
    ///
    /// # Errors
    /// One came.
    pub fn check(&self) -> Result<(), Interrupted> {
        if self.came() { Err(Interrupted) } else { Ok(()) }
    }

    /// What came of something. If a signal came meanwhile, what failed did so for that: commands
    /// that we had started get it too.
    ///
    /// # Errors
    /// It failed, or one came.
    pub fn blame<T>(&self, outcome: anyhow::Result<T>) -> anyhow::Result<T> {
        outcome.or_else(|error| self.check().map_err(anyhow::Error::from).and(Err(error)))
    }
}
