//! Handling of Ctrl-C and SIGTERM: the work stops, everything that was made is removed, and the
//! results so far are kept. A second signal ends the program at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1};

/// The flags that end the work: a signal since [`Interrupt::watch`], or another event.
#[derive(Debug, Clone)]
pub struct Interrupt(Vec<Arc<AtomicBool>>);

/// The error of an interrupted measurement.
#[derive(Debug, thiserror::Error)]
#[error("interrupted")]
pub struct Interrupted;

impl Interrupt {
    /// Installs the signal handlers. SIGUSR1 gets a handler that does nothing, because it only
    /// wakes threads of this process.
    ///
    /// # Errors
    /// Fails if the system refuses a handler.
    pub fn watch() -> std::io::Result<Interrupt> {
        let came = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            signal_hook::flag::register_conditional_shutdown(signal, 128 + signal, came.clone())?;
            signal_hook::flag::register(signal, came.clone())?;
        }
        signal_hook::flag::register(SIGUSR1, Arc::new(AtomicBool::new(false)))?;
        Ok(Interrupt(vec![came]))
    }

    /// Returns an interrupt that never comes.
    pub fn never() -> Interrupt {
        Interrupt(Vec::new())
    }

    /// Returns an interrupt that also comes when `other` is set.
    pub fn or(&self, other: &Arc<AtomicBool>) -> Interrupt {
        Interrupt(self.0.iter().chain([other]).cloned().collect())
    }

    /// Returns true if an interrupt came.
    pub fn came(&self) -> bool {
        self.0.iter().any(|one| one.load(Ordering::Relaxed))
    }

    /// Returns an error if an interrupt came, so that `?` stops the caller.
    ///
    /// # Errors
    /// Fails if an interrupt came.
    pub fn check(&self) -> Result<(), Interrupted> {
        if self.came() { Err(Interrupted) } else { Ok(()) }
    }

    /// Returns `outcome`, or [`Interrupted`] in place of its error if an interrupt came. A signal
    /// also reaches the commands that this process started, so their failure is blamed on the
    /// signal.
    ///
    /// # Errors
    /// Fails if `outcome` is an error.
    pub fn or_interrupted<T>(&self, outcome: anyhow::Result<T>) -> anyhow::Result<T> {
        outcome.or_else(|error| self.check().map_err(anyhow::Error::from).and(Err(error)))
    }
}
