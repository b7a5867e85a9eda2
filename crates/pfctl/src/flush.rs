//! `-F`: removing rules, states, counters, tables and what options changed.

use anyhow::{Result, bail};
use skipstep_kernel::Instance;

use crate::anchors;
use crate::filter::Filter;
use crate::request::{Anchor, Args};
use crate::words::Flush;

/// Flushes `what` and says so. Where there is no instance there is nothing to flush, which is said
/// in the same words.
pub fn run(
    instance: Option<&mut Instance>,
    what: Flush,
    args: &Args,
    say: &dyn Fn(&str),
) -> Result<()> {
    let anchor = args.anchor.clone().unwrap_or_default();
    let interface = args.interface.as_deref();
    match what {
        Flush::Rules => rules(instance, &anchor, say),
        Flush::Nat => translation(instance.as_deref(), &anchor, say),
        Flush::Sources => sources(instance.as_deref(), say),
        Flush::States => states(instance.as_deref(), interface, say),
        Flush::Info => info(instance.as_deref(), interface, say),
        Flush::Tables => tables(instance.as_deref(), &anchor, say),
        Flush::Fingerprints => fingerprints(instance.as_deref(), say),
        Flush::Reset => reset(instance, say),
        Flush::All => all(instance, &anchor, say),
    }
}

/// What belongs to an anchor, or if there is none everything.
fn all(mut instance: Option<&mut Instance>, anchor: &Anchor, say: &dyn Fn(&str)) -> Result<()> {
    rules(instance.as_deref_mut(), anchor, say)?;
    tables(instance.as_deref(), anchor, say)?;
    if !anchor.path.is_empty() {
        return Ok(());
    }
    states(instance.as_deref(), None, say)?;
    sources(instance.as_deref(), say)?;
    info(instance.as_deref(), None, say)?;
    fingerprints(instance.as_deref(), say)
}

/// The anchors to flush. One that is not there has nothing in it, which is no error.
fn meant(instance: Option<&Instance>, anchor: &Anchor) -> Result<Vec<String>> {
    match anchor.recursive {
        true => anchors::meant(instance.map(|instance| instance as &dyn Filter), anchor),
        false => Ok(vec![anchor.path.clone()]),
    }
}

fn rules(instance: Option<&mut Instance>, anchor: &Anchor, say: &dyn Fn(&str)) -> Result<()> {
    let paths = meant(instance.as_deref(), anchor)?;
    if let Some(instance) = instance {
        // the deepest first: what goes is never called
        for path in paths.iter().rev() {
            match path.as_str() {
                "" => instance.flush_rules()?,
                path => instance.clear_anchor(path)?,
            }
        }
    }
    say("rules cleared");
    Ok(())
}

/// FreeBSD's `-F nat`.
fn translation(instance: Option<&Instance>, anchor: &Anchor, say: &dyn Fn(&str)) -> Result<()> {
    let paths = meant(instance, anchor)?;
    if let Some(instance) = instance {
        for path in &paths {
            instance.flush_translation(path)?;
        }
    }
    say("nat cleared");
    Ok(())
}

fn sources(instance: Option<&Instance>, say: &dyn Fn(&str)) -> Result<()> {
    if let Some(instance) = instance {
        instance.drop_sources(|_| true)?;
    }
    say("source tracking entries cleared");
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

fn tables(instance: Option<&Instance>, anchor: &Anchor, say: &dyn Fn(&str)) -> Result<()> {
    let mut deleted = 0;
    for path in meant(instance, anchor)? {
        deleted += instance.map_or(Ok(0), |instance| instance.flush_tables(&path))?;
    }
    say(&format!("{deleted} tables deleted."));
    Ok(())
}

fn fingerprints(instance: Option<&Instance>, say: &dyn Fn(&str)) -> Result<()> {
    if let Some(instance) = instance {
        instance.flush_fingerprints()?;
    }
    say("pf.os fingerprints cleared");
    Ok(())
}

/// Options as they are by default; rules and tables stay.
fn reset(instance: Option<&mut Instance>, say: &dyn Fn(&str)) -> Result<()> {
    if let Some(instance) = instance {
        instance.reset_options()?;
    }
    say("pf: options reset");
    Ok(())
}
