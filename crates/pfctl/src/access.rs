//! Access to the objects that a command line names: the instance of the filter, and the host.

use anyhow::{Result, bail};
use nix::unistd::geteuid;
use skipstep_kernel::{Error, Instance, host};
use skipstep_ruleset::Limits;
use skipstep_ruleset::interface::Host;

use crate::request::Args;
use crate::trial;

/// Reads the host's interfaces, addresses and routes.
///
/// # Errors
/// Fails if rtnetlink refuses a request.
pub fn read_host() -> Result<Host> {
    Ok(host::read()?)
}

/// Returns the instance that `-p` names, or the default name.
pub fn instance_name(args: &Args) -> String {
    args.instance.clone().unwrap_or_else(Instance::default_name)
}

/// Opens the instance; `None` if no rules were loaded yet.
///
/// # Errors
/// Fails if the user is not root, or if the instance exists but cannot be opened.
pub fn open(args: &Args) -> Result<Option<Instance>> {
    need_root()?;
    match Instance::open(&instance_name(args)) {
        Ok(instance) => Ok(Some(on_trial(args, instance))),
        Err(Error::NoInstance { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Refuses other users than root. They cannot see if an instance exists, so "no instance" would be
/// a wrong answer.
fn need_root() -> Result<()> {
    if !geteuid().is_root() {
        bail!("the packet filter: Permission denied (only root may read or change it)");
    }
    Ok(())
}

/// Opens the instance, or creates an empty one with the default limit of states.
///
/// # Errors
/// Fails if the user is not root, or if the kernel refuses the maps or programs.
pub fn create(args: &Args) -> Result<Instance> {
    need_root()?;
    let states = Limits::default().states;
    Ok(on_trial(args, Instance::open_or_create(&instance_name(args), states)?))
}

/// Lets the loads of an instance be on trial with `--confirm`.
fn on_trial(args: &Args, mut instance: Instance) -> Instance {
    if let Some(request) = trial::request(args, None) {
        instance.set_trial(request);
    }
    instance
}
