//! `-F`: removes rules, states, counters and tables, and resets options.

use anyhow::{Result, bail};
use skipstep_kernel::Instance;
use skipstep_kernel::state::Sides;
use skipstep_ruleset::failsafe;

use crate::anchors;
use crate::filter::Filter;
use crate::kill::sides;
use crate::request::{Anchor, Args};
use crate::words::Flush;

/// Flushes `what` and reports the result through `report`. Without an instance there is nothing to
/// flush, and the messages are the same.
///
/// # Errors
/// Fails if the anchor or interface does not exist, or if the kernel part refuses the change.
pub fn run(
    instance: Option<&mut Instance>,
    what: Flush,
    args: &Args,
    report: &dyn Fn(&str),
) -> Result<()> {
    let anchor = args.anchor.clone().unwrap_or_default();
    let interface = args.interface.as_deref();
    match what {
        Flush::Rules => rules(instance, &anchor, report),
        Flush::Nat => translation(instance.as_deref(), &anchor, report),
        Flush::Sources => sources(instance.as_deref(), report),
        Flush::States => states(instance.as_deref(), interface, sides(args), report),
        Flush::Info => info(instance.as_deref(), interface, report),
        Flush::Tables => tables(instance.as_deref(), &anchor, report),
        Flush::Fingerprints => fingerprints(instance.as_deref(), report),
        Flush::Reset => reset(instance, report),
        Flush::All => all(instance, &anchor, report),
    }
}

/// Flushes an anchor's rules and tables; for the main rule set also states, sources, counters and
/// fingerprints.
fn all(mut instance: Option<&mut Instance>, anchor: &Anchor, report: &dyn Fn(&str)) -> Result<()> {
    rules(instance.as_deref_mut(), anchor, report)?;
    tables(instance.as_deref(), anchor, report)?;
    if !anchor.path.is_empty() {
        return Ok(());
    }
    states(instance.as_deref(), None, Sides::One, report)?;
    sources(instance.as_deref(), report)?;
    info(instance.as_deref(), None, report)?;
    fingerprints(instance.as_deref(), report)
}

/// Returns the anchors to flush. Flushing a single anchor that does not exist is no error.
fn selected_paths(instance: Option<&Instance>, anchor: &Anchor) -> Result<Vec<String>> {
    match anchor.recursive {
        true => anchors::selected_paths(instance.map(|instance| instance as &dyn Filter), anchor),
        false => Ok(vec![anchor.path.clone()]),
    }
}

fn rules(instance: Option<&mut Instance>, anchor: &Anchor, report: &dyn Fn(&str)) -> Result<()> {
    let mut paths = selected_paths(instance.as_deref(), anchor)?;
    if let Some(instance) = instance {
        // the failsafe list goes with the main rules, and not before them
        if anchor.path.is_empty() && instance.loaded()?.ruleset.has_failsafe_list() {
            paths.retain(|path| path != failsafe::ANCHOR);
        }
        // the deepest anchors first, so an anchor is flushed after all anchors below it
        for path in paths.iter().rev() {
            match path.as_str() {
                "" => instance.flush_rules()?,
                path => instance.clear_anchor(path)?,
            }
        }
    }
    report("rules cleared");
    Ok(())
}

/// Implements FreeBSD's `-F nat`.
fn translation(instance: Option<&Instance>, anchor: &Anchor, report: &dyn Fn(&str)) -> Result<()> {
    let paths = selected_paths(instance, anchor)?;
    if let Some(instance) = instance {
        for path in &paths {
            instance.flush_translation(path)?;
        }
    }
    report("nat cleared");
    Ok(())
}

fn sources(instance: Option<&Instance>, report: &dyn Fn(&str)) -> Result<()> {
    if let Some(instance) = instance {
        instance.drop_sources(|_| true)?;
    }
    report("source tracking entries cleared");
    Ok(())
}

fn states(
    instance: Option<&Instance>,
    interface: Option<&str>,
    sides: Sides,
    report: &dyn Fn(&str),
) -> Result<()> {
    let on = |name: Option<&str>| interface.is_none_or(|wanted| name == Some(wanted));
    let cleared = match instance {
        Some(instance) => instance.kill_states(sides, |state| on(state.interface.as_deref()))?,
        None => 0,
    };
    report(&format!("{cleared} states cleared"));
    Ok(())
}

fn info(instance: Option<&Instance>, interface: Option<&str>, report: &dyn Fn(&str)) -> Result<()> {
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
        Some(name) => report(&format!("pf: statistics cleared for interface {name}")),
        None => report("pf: statistics cleared"),
    }
    Ok(())
}

fn tables(instance: Option<&Instance>, anchor: &Anchor, report: &dyn Fn(&str)) -> Result<()> {
    let mut deleted = 0;
    for path in selected_paths(instance, anchor)? {
        deleted += instance.map_or(Ok(0), |instance| instance.flush_tables(&path))?;
    }
    report(&format!("{deleted} tables deleted."));
    Ok(())
}

fn fingerprints(instance: Option<&Instance>, report: &dyn Fn(&str)) -> Result<()> {
    if let Some(instance) = instance {
        instance.flush_fingerprints()?;
    }
    report("pf.os fingerprints cleared");
    Ok(())
}

/// Resets all options to their defaults; rules and tables stay.
fn reset(instance: Option<&mut Instance>, report: &dyn Fn(&str)) -> Result<()> {
    if let Some(instance) = instance {
        instance.reset_options()?;
    }
    report("pf: options reset");
    Ok(())
}
