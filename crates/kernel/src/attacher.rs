//! The fast attachment of new interfaces: from an open instance, without its lock, and without
//! reading its records.

use std::collections::BTreeSet;

use crate::attach;
use crate::error::{Error, Result};
use crate::instance::Instance;

/// Attaches interfaces to the instance of a name.
pub struct Attacher {
    name: String,
    instance: Option<Instance>,
}

impl Attacher {
    /// Makes an attacher for the instance of this name. The instance need not exist yet.
    pub fn new(name: &str) -> Self {
        Attacher { name: name.to_owned(), instance: None }
    }

    /// Opens the instance that has the name now, so that [`Attacher::attach`] finds it open.
    /// Succeeds if there is no such instance.
    ///
    /// # Errors
    /// Fails if the instance exists and cannot be opened.
    pub fn prepare(&mut self) -> Result<()> {
        if self.instance.as_ref().is_some_and(Instance::is_current) {
            return Ok(());
        }
        self.instance = None;
        self.instance = match Instance::open(&self.name) {
            Err(Error::NoInstance { .. }) => None,
            opened => Some(opened?),
        };
        Ok(())
    }

    /// Attaches interfaces, by their indices, if packets are filtered. If an interface refuses, the
    /// others are attached all the same.
    ///
    /// # Errors
    /// Returns the error of the first interface that refuses. Fails also if the instance cannot be
    /// opened.
    pub fn attach(&mut self, interfaces: &BTreeSet<u32>) -> Result<()> {
        let mut attached = Ok(());
        self.prepare()?;
        while let Some(instance) = self.instance.as_ref().filter(|instance| instance.running()) {
            attached = attach_each(instance, interfaces);
            // another process disabled or rebuilt the instance meanwhile, perhaps without seeing
            // the links made here
            if instance.running() && instance.is_current() {
                break;
            }
            if !instance.running() {
                for index in interfaces {
                    attach::detach_interface(&instance.directory, *index)?;
                }
            }
            self.prepare()?;
        }
        attached
    }
}

/// Attaches all interfaces for inbound packets first. The kernel waits for a grace period of RCU in
/// each attachment, under the lock that bringing an interface up needs.
fn attach_each(instance: &Instance, interfaces: &BTreeSet<u32>) -> Result<()> {
    let Instance { programs, directory, .. } = instance;
    let mut first = Ok(());
    for side in [attach::attach_in, attach::attach_out] {
        for index in interfaces {
            first = first.and(side(programs, directory, *index));
        }
    }
    first
}
