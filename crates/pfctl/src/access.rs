//! The way to what the command line is about: the instance of the filter, and the machine.

use anyhow::{Result, bail};
use nix::unistd::geteuid;
use skipstep_kernel::{Error, Instance, host};
use skipstep_ruleset::Limits;
use skipstep_ruleset::interface::Host;

use crate::request::Args;

/// The machine's interfaces, addresses and routes.
pub fn read_host() -> Result<Host> {
    Ok(host::read()?)
}

/// Name of the instance the command line means.
pub fn instance_name(args: &Args) -> String {
    args.instance.clone().unwrap_or_else(Instance::default_name)
}

/// The instance, if there is one: before the first load there is none.
pub fn open(args: &Args) -> Result<Option<Instance>> {
    need_root()?;
    match Instance::open(&instance_name(args)) {
        Ok(instance) => Ok(Some(instance)),
        Err(Error::NoInstance { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Others than root do not even see whether there is a filter, and must not be told there is none.
fn need_root() -> Result<()> {
    if !geteuid().is_root() {
        bail!("the packet filter: Permission denied (only root may ask for it or change it)");
    }
    Ok(())
}

/// The instance, made if there is none yet.
pub fn create(args: &Args) -> Result<Instance> {
    need_root()?;
    let states = Limits::default().states;
    Ok(Instance::open_or_create(&instance_name(args), states)?)
}
