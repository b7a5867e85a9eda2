//! `-F`: removing rules, states, counters and tables.

use anyhow::{Result, bail};
use skipstep_kernel::Instance;

use crate::words::Flush;

/// Flushes `what`, on `interface` only if one is given, and says so. Where there is no instance
/// there is nothing to flush, which is said in the same words.
pub fn run(
    instance: Option<&Instance>,
    what: Flush,
    interface: Option<&str>,
    say: &dyn Fn(&str),
) -> Result<()> {
    match what {
        Flush::Rules => rules(instance, say),
        Flush::States => states(instance, interface, say),
        Flush::Info => info(instance, interface, say),
        Flush::Tables => tables(instance, say),
        Flush::All => {
            tables(instance, say)?;
            rules(instance, say)?;
            states(instance, None, say)?;
            info(instance, None, say)
        }
    }
}

fn rules(instance: Option<&Instance>, say: &dyn Fn(&str)) -> Result<()> {
    if let Some(instance) = instance {
        instance.flush_rules()?;
    }
    say("rules cleared");
    Ok(())
}

fn states(instance: Option<&Instance>, interface: Option<&str>, say: &dyn Fn(&str)) -> Result<()> {
    let on = |name: Option<&str>| interface.is_none_or(|wanted| name == Some(wanted));
    let cleared = match instance {
        Some(instance) => instance.kill_states(|state| on(state.interface.as_deref()))?,
        None => 0,
    };
    say(&format!("{cleared} states cleared"));
    Ok(())
}

fn info(instance: Option<&Instance>, interface: Option<&str>, say: &dyn Fn(&str)) -> Result<()> {
    match (instance, interface) {
        (Some(instance), Some(name)) => {
            if !instance.zero_interface(name)? {
                bail!("{name}: no such interface");
            }
        }
        (Some(instance), None) => instance.clear_status()?,
        (None, _) => {}
    }
    match interface {
        Some(name) => say(&format!("pf: statistics cleared for interface {name}")),
        None => say("pf: statistics cleared"),
    }
    Ok(())
}

fn tables(instance: Option<&Instance>, say: &dyn Fn(&str)) -> Result<()> {
    let deleted = match instance {
        Some(instance) => instance.flush_tables("")?,
        None => 0,
    };
    say(&format!("{deleted} tables deleted."));
    Ok(())
}
