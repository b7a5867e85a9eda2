//! Rules for data connections. Those of each session are in an anchor of its own, `PROGRAM/PID.ID`,
//! which the rule set calls by `anchor "PROGRAM/*"`.

use anyhow::{Context as _, Result, anyhow, bail};
use skipstep_kernel::{Instance, Owner, host};
use skipstep_pfconf::Context;

/// The anchors of this process. They go with it.
pub struct Anchors {
    program: &'static str,
    name: String,
    instance: Instance,
    owner: Owner,
}

impl Anchors {
    /// For `program`, in the filter called `name`.
    ///
    /// # Errors
    /// There is no such filter, it may not be changed, or it does not run.
    pub fn open(program: &'static str, name: &str) -> Result<Anchors> {
        let mut instance = Instance::open(name)?;
        if !instance.running() {
            bail!("the filter is disabled (pfctl -e enables it)");
        }
        instance.remove_orphans()?;
        let owner = instance.own_anchors(program)?;
        Ok(Anchors { program, name: name.to_owned(), instance, owner })
    }

    /// Puts `rules`, a text in the language of pf.conf(5), in the place of those of session `id`.
    ///
    /// # Errors
    /// They are wrong, or the filter does not take them.
    pub fn replace(&mut self, id: u32, rules: &str) -> Result<()> {
        let path = self.path(id);
        let host = host::read()?;
        let context = Context { file_name: &path, anchor: &path, ..Context::new(&host) };
        let loaded = skipstep_pfconf::load(rules, &context);
        let loaded = loaded.map_err(|rejected| match rejected.diagnostics.first() {
            Some(diagnostic) => anyhow!("{diagnostic}"),
            None => anyhow!("rules of {path}"),
        })?;
        Ok(self.filter()?.load_anchor(&path, &loaded.ruleset, &host)?)
    }

    /// Removes the rules of session `id`. States that they have made stay.
    ///
    /// # Errors
    /// The filter does not let go.
    pub fn remove(&mut self, id: u32) -> Result<()> {
        let path = self.path(id);
        Ok(self.filter()?.clear_anchor(&path)?)
    }

    /// Removes the rules of all sessions.
    ///
    /// # Errors
    /// The filter does not let go.
    pub fn remove_all(&mut self) -> Result<()> {
        let prefix = self.owner.prefix().to_owned();
        Ok(self.filter()?.clear_anchors(&prefix)?)
    }

    /// Has the packets of pflog `log` come to this process, as [`skipstep_kernel::LiveLog`] reads them.
    ///
    /// # Errors
    /// Another program reads them.
    pub fn take_log(&mut self, log: u8) -> Result<()> {
        Ok(self.instance.take_log(&mut self.owner, log)?)
    }

    /// Leaves the packets to skipstepd again.
    ///
    /// # Errors
    /// The filter does not let go.
    pub fn give_log_back(&mut self) -> Result<()> {
        Ok(self.instance.give_log_back(&mut self.owner)?)
    }

    /// Whether the filter is the one that was opened.
    pub fn is_current(&self) -> bool {
        self.instance.is_current()
    }

    /// The filter as it is now: it may have been made anew since it was opened.
    fn filter(&mut self) -> Result<&mut Instance> {
        if !self.instance.is_current() {
            self.instance = Instance::open(&self.name).context("the filter is gone")?;
            self.owner = self.instance.own_anchors(self.program)?;
        }
        Ok(&mut self.instance)
    }

    fn path(&self, id: u32) -> String {
        format!("{}{id}", self.owner.prefix())
    }
}
