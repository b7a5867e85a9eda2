//! Rules for data connections. Each session has an anchor, `PROGRAM/PID.ID`, which the rule set
//! calls by `anchor "PROGRAM/*"`.

use std::net::IpAddr;

use anyhow::{Context as _, Result, anyhow, bail};
use skipstep_kernel::{Instance, Owner, Unsettled, host};
use skipstep_pfconf::Context;
use skipstep_ruleset::Ruleset;
use skipstep_ruleset::interface::Host;

/// The anchors of this process. [`Instance::remove_orphans`] removes those of dead processes.
pub struct Anchors {
    program: &'static str,
    name: String,
    instance: Instance,
    owner: Owner,
    /// The interfaces and routes of this machine, read again after `changes` reports a change.
    host: Host,
    changes: host::Watch,
}

impl Anchors {
    /// Opens the instance `name` and takes the anchors of `program`.
    ///
    /// # Errors
    /// Fails if the instance does not exist, is disabled, or cannot be changed, or if the
    /// interfaces cannot be read.
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

    /// Replaces the rules of sessions in one commit. `changes` has session numbers, each with a
    /// text in the language of pf.conf(5). A text without rules removes the session's rules; their
    /// states stay. The caller passes the result to [`Anchors::settle`] when the new rules are
    /// active.
    ///
    /// # Errors
    /// Fails if a text has an error, or if the kernel refuses the change.
    pub fn change(&mut self, changes: &[(u32, String)]) -> Result<Unsettled> {
        self.refresh_host()?;
        self.reopen_if_replaced()?;
        let changes = changes.iter().map(|(id, rules)| {
            let path = self.path(*id);
            let ruleset = read(&path, rules, &self.host)?;
            Ok((path, ruleset))
        });
        let changes = changes.collect::<Result<Vec<_>>>()?;
        let changes = changes.iter().map(|(path, ruleset)| (path.as_str(), ruleset));
        Ok(self.instance.change_anchors(changes, &self.host)?)
    }

    /// Retires the replaced rules after the last packet that uses them.
    ///
    /// # Errors
    /// Fails if the kernel refuses to delete the replaced rules.
    pub fn settle(&mut self, unsettled: Unsettled) -> Result<()> {
        Ok(self.instance.settle(unsettled)?)
    }

    /// Removes the rules of all sessions.
    ///
    /// # Errors
    /// Fails if the instance no longer exists, or if the kernel refuses the change.
    pub fn remove_all(&mut self) -> Result<()> {
        self.reopen_if_replaced()?;
        Ok(self.instance.clear_anchors(self.owner.prefix())?)
    }

    /// Directs the packets of pflog `log` to this process, which reads them with
    /// [`skipstep_kernel::LiveLog`].
    ///
    /// # Errors
    /// Fails if another program reads that log, or if the kernel refuses the change.
    pub fn take_log(&mut self, log: u8) -> Result<()> {
        Ok(self.instance.take_log(&mut self.owner, log)?)
    }

    /// Gives the packets of the log back to skipstepd.
    ///
    /// # Errors
    /// Fails if the kernel refuses the change.
    pub fn give_log_back(&mut self) -> Result<()> {
        Ok(self.instance.give_ring_back(&mut self.owner)?)
    }

    /// Returns true if an interface of this host has the address.
    ///
    /// # Errors
    /// Fails if the interfaces cannot be read.
    pub fn is_own(&mut self, address: IpAddr) -> Result<bool> {
        self.refresh_host()?;
        let mut interfaces = self.host.interfaces.iter();
        Ok(interfaces
            .any(|interface| interface.addresses.iter().any(|own| own.net.addr() == address)))
    }

    /// Reads the interfaces again if they have changed.
    fn refresh_host(&mut self) -> Result<()> {
        if self.changes.changed()? {
            self.host = host::read()?;
        }
        Ok(())
    }

    /// Returns true if the open instance is still the one that filters.
    pub fn is_current(&self) -> bool {
        self.instance.is_current()
    }

    /// Opens the instance again if a new one has replaced it.
    fn reopen_if_replaced(&mut self) -> Result<()> {
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

/// Parses the rules of an anchor.
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
