//! Enabling and disabling of an instance.

use crate::change::draw;
use crate::enable_reference::{EnableReference, EnableReferences, MAX_REFERENCES};
use crate::error::{Error, Result};
use crate::instance::Instance;
use crate::record::wall_clock;

impl Instance {
    /// Attaches the data plane to every interface and starts to filter. Returns false if the
    /// instance filtered already. After an error the instance filters all the same, unless no
    /// interface could be attached.
    ///
    /// # Errors
    /// Fails if no interface can be attached, or if the guard or an XDP program cannot be attached.
    /// Fails also if the records or maps cannot be written.
    pub fn enable(&self) -> Result<bool> {
        let mut change = self.begin()?;
        change.memory.enabled_by.hold(self.running());
        self.enable_in(change)
    }

    /// Enables the filter as [`Instance::enable`] does, and takes a reference. Returns its token.
    ///
    /// # Errors
    /// Fails as [`Instance::enable`] does, or if there are [`MAX_REFERENCES`] references.
    pub fn enable_by_reference(&self) -> Result<u64> {
        let mut change = self.begin()?;
        let token = draw().max(1);
        if !change.memory.enabled_by.take(token, self.running(), wall_clock()) {
            return change.refuse(Error::References { limit: MAX_REFERENCES });
        }
        self.enable_in(change)?;
        Ok(token)
    }

    /// Releases the reference with this token, and disables the filter if none is left. Returns the
    /// number of references that are left; `None` if there is no such token.
    ///
    /// # Errors
    /// Fails if the records cannot be read or written, or if a link cannot be removed.
    pub fn release_reference(&self, token: u64) -> Result<Option<usize>> {
        let mut change = self.begin()?;
        let left = change.memory.enabled_by.release(token);
        if left == Some(0) {
            self.stop()?;
        }
        change.keep()?;
        Ok(left)
    }

    /// Returns the references with a token, the latest first. A disabled filter has none.
    ///
    /// # Errors
    /// Fails if the instance's memory cannot be read.
    pub fn references(&self) -> Result<Vec<EnableReference>> {
        if !self.running() {
            return Ok(Vec::new());
        }
        Ok(self.run.memory()?.enabled_by.latest_first())
    }

    /// Stops filtering and detaches the data plane everywhere, whatever references there are.
    /// Returns false if the instance did not filter. Rules, tables and states stay.
    ///
    /// # Errors
    /// Fails if the lock cannot be taken, if a link cannot be removed, or if the memory cannot be
    /// written.
    pub fn disable(&self) -> Result<bool> {
        let _lock = self.run.lock()?;
        let was_running = self.stop()?;
        // an unreadable memory must not keep the filter from being disabled
        if let Ok(mut memory) = self.run.memory()
            && memory.enabled_by != EnableReferences::default()
        {
            memory.enabled_by = EnableReferences::default();
            self.run.set_memory(&memory)?;
        }
        Ok(was_running)
    }
}
