//! Rules for data connections. Those of each session are in an anchor of its own, `PROGRAM/PID.ID`,
//! which the rule set calls by `anchor "PROGRAM/*"`.

use std::net::IpAddr;

use anyhow::{Context as _, Result, anyhow, bail};
use skipstep_kernel::{Instance, Owner, Unsettled, host};
use skipstep_pfconf::Context;
use skipstep_ruleset::Ruleset;
use skipstep_ruleset::interface::Host;

/// The anchors of this process. They go with it.
pub struct Anchors {
    program: &'static str,
    name: String,
    instance: Instance,
    owner: Owner,
    /// This machine, as it is until `changes` says otherwise.
    host: Host,
    changes: host::Watch,
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
        let changes = host::Watch::new()?;
        let host = host::read()?;
        Ok(Anchors { program, name: name.to_owned(), instance, owner, host, changes })
    }

    /// Puts rules, texts in the language of pf.conf(5), in the place of those of sessions, all in
    /// one piece. A text without rules removes them; states that they have made stay. What is left
    /// to do when the new rules are in force is for [`Anchors::settle`].
    ///
    /// # Errors
    /// They are wrong, or the filter does not take them.
    pub fn change(&mut self, changes: &[(u32, String)]) -> Result<Unsettled> {
        self.look_around()?;
        self.follow()?;
        let changes = changes.iter().map(|(id, rules)| {
            let path = self.path(*id);
            let ruleset = read(&path, rules, &self.host)?;
            Ok((path, ruleset))
        });
        let changes = changes.collect::<Result<Vec<_>>>()?;
        let changes = changes.iter().map(|(path, ruleset)| (path.as_str(), ruleset));
        Ok(self.instance.change_anchors(changes, &self.host)?)
    }

    /// Lets go of the rules that were replaced, when no packet is under way that saw them.
    ///
    /// # Errors
    /// The filter does not let go.
    pub fn settle(&mut self, unsettled: Unsettled) -> Result<()> {
        Ok(self.instance.settle(unsettled)?)
    }

    /// Removes the rules of all sessions.
    ///
    /// # Errors
    /// The filter does not let go.
    pub fn remove_all(&mut self) -> Result<()> {
        self.follow()?;
        Ok(self.instance.clear_anchors(self.owner.prefix())?)
    }

    /// Has the packets of pflog `log` come to this process, as [`skipstep_kernel::LiveLog`] reads
    /// them.
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

    /// Returns true if an interface of this host has the address.
    ///
    /// # Errors
    /// The interfaces cannot be read.
    pub fn is_own(&mut self, address: IpAddr) -> Result<bool> {
        self.look_around()?;
        let mut interfaces = self.host.interfaces.iter();
        Ok(interfaces
            .any(|interface| interface.addresses.iter().any(|own| own.net.addr() == address)))
    }

    /// Reads the interfaces again if they have changed.
    fn look_around(&mut self) -> Result<()> {
        if self.changes.changed()? {
            self.host = host::read()?;
        }
        Ok(())
    }

    /// Whether the filter is the one that was opened.
    pub fn is_current(&self) -> bool {
        self.instance.is_current()
    }

    /// Opens the filter again if it was made anew since.
    fn follow(&mut self) -> Result<()> {
        if !self.instance.is_current() {
            self.instance = Instance::open(&self.name).context("the filter is gone")?;
            self.owner = self.instance.own_anchors(self.program)?;
        }
        Ok(())
    }

    fn path(&self, id: u32) -> String {
        format!("{}{id}", self.owner.prefix())
    }
}

/// The rules of an anchor.
fn read(path: &str, rules: &str, host: &Host) -> Result<Ruleset> {
    let context = Context { file_name: path, anchor: path, ..Context::new(host) };
    match skipstep_pfconf::load(rules, &context) {
        Ok(loaded) => Ok(loaded.ruleset),
        Err(rejected) => Err(match rejected.diagnostics.first() {
            Some(diagnostic) => anyhow!("{diagnostic}"),
            None => anyhow!("rules of {path}"),
        }),
    }
}
