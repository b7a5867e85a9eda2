//! Limiters: their settings from the rule set, their use, and their sources.

use std::mem::offset_of;
use std::net::IpAddr;

use skipstep_abi as abi;
use skipstep_abi::limiter::LIMITER_KINDS;
use skipstep_abi::limits::{LIMITERS, copy_of};
use skipstep_classifier::{Image, limiter};
use skipstep_ruleset::{Limiter, Ruleset};
use skipstep_views::{Admissions, LimitedView, LimiterView};

use crate::commit::Earlier;
use crate::error::{Error, Result};
use crate::object::{Maps, Programs};
use crate::program::SkBuff;
use crate::record::Record;

/// Indexes of limiters in one generation.
const PLACES: u32 = LIMITER_KINDS as u32 * LIMITERS;
/// Bytes of the smallest frame that the kernel accepts for a test run.
const LEAST_FRAME: usize = 64;
/// A full bucket of tokens: saved since the earliest time.
const FULL: u64 = i64::MIN as u64;

fn place_of(limiter: &Limiter) -> u32 {
    limiter::map_index(limiter.source, limiter.id)
}

/// True if a rule set has a limiter of the same kind and number.
fn has(record: &Record, wanted: &Limiter) -> bool {
    record.ruleset.limiters.iter().any(|limiter| place_of(limiter) == place_of(wanted))
}

/// Returns the limiters in force that the next rule set does not have, and that no trial keeps.
fn outdated<'a>(earlier: Earlier<'a>, new: &'a Record) -> impl Iterator<Item = &'a Limiter> {
    let is_kept = move |limiter: &Limiter| {
        has(new, limiter) || earlier.kept.is_some_and(|kept| has(kept, limiter))
    };
    earlier.in_force.ruleset.limiters.iter().filter(move |limiter| !is_kept(limiter))
}

/// Writes the limiters of a generation that is not in force. A source limiter with sources must
/// keep its masks and its table, as in pf.
pub(crate) fn write(maps: &Maps, earlier: Earlier, new: &Record, image: &Image) -> Result<()> {
    for limiter in &new.ruleset.limiters {
        let mut before = earlier.records().flat_map(|record| &record.ruleset.limiters);
        let changed = before.any(|before| {
            place_of(before) == place_of(limiter) && !names_sources_alike(before, limiter)
        });
        if changed && maps.limiter_uses.at(place_of(limiter))?.sources != 0 {
            return Err(Error::LimiterBusy { name: limiter.name.clone(), line: limiter.line });
        }
    }
    let is_new = |limiter: &&Limiter| earlier.records().all(|record| !has(record, limiter));
    for limiter in new.ruleset.limiters.iter().filter(is_new) {
        clear(maps, place_of(limiter));
    }
    let mut limiters = vec![abi::Limiter::default(); PLACES as usize];
    for (place, limiter) in &image.limiters {
        limiters[*place as usize] = *limiter;
    }
    let first = copy_of(new.generation) * PLACES;
    let places: Vec<u32> = (first..first + PLACES).collect();
    maps.limiters.set_many(&places, &limiters)
}

fn names_sources_alike(before: &Limiter, after: &Limiter) -> bool {
    let table = |limiter: &Limiter| limiter.table.as_ref().map(|(name, ..)| name.clone());
    let masks =
        |limiter: &Limiter| (limiter.inet_mask.unwrap_or(32), limiter.inet6_mask.unwrap_or(128));
    (table(before), masks(before)) == (table(after), masks(after))
}

/// Retires the limiters that `new` does not have: a new serial number makes the references of
/// states void.
pub(crate) fn retire(maps: &Maps, earlier: Earlier, new: &Record) {
    let serial = offset_of!(abi::LimiterUse, serial);
    for limiter in outdated(earlier, new) {
        let place = place_of(limiter);
        let before = maps.shared_limiter_uses.load(place, serial);
        maps.shared_limiter_uses.store(place, serial, before.wrapping_add(1));
    }
}

/// Finishes [`retire`] when no packet reads the previous rule set any more. If the main rule set
/// was loaded, state limiters get all their tokens back, as in pf.
pub(crate) fn finish(maps: &Maps, earlier: Earlier, new: &Record, loaded: bool) {
    for limiter in outdated(earlier, new) {
        clear(maps, place_of(limiter));
    }
    for limiter in new.ruleset.limiters.iter().filter(|_| loaded) {
        let saved_since = offset_of!(abi::LimiterUse, saved_since);
        maps.shared_limiter_uses.store_long(place_of(limiter), saved_since, FULL);
    }
}

/// Resets the counters and tokens of a limiter.
pub fn clear(maps: &Maps, place: u32) {
    let uses = &maps.shared_limiter_uses;
    uses.store_long(place, offset_of!(abi::LimiterUse, saved_since), FULL);
    for counter in [
        offset_of!(abi::LimiterUse, admitted),
        offset_of!(abi::LimiterUse, hard_limited),
        offset_of!(abi::LimiterUse, rate_limited),
        offset_of!(abi::LimiterUse, sources_made),
        offset_of!(abi::LimiterUse, sources_limited),
        offset_of!(abi::LimiterUse, sources_lost),
    ] {
        uses.store_long(place, counter, 0);
    }
    uses.store(place, offset_of!(abi::LimiterUse, states), 0);
    uses.store(place, offset_of!(abi::LimiterUse, sources), 0);
}

/// Removes sources from tables if some are due, as the next packet would.
pub(crate) fn settle(maps: &Maps, programs: &Programs) -> Result<()> {
    if maps.shared_status.load(0, offset_of!(abi::Status, leaving)) != 0 {
        let frame = [0; LEAST_FRAME];
        programs.settle.run_packet(&frame, &SkBuff::new(), 1)?;
    }
    Ok(())
}

/// Removes a source from a source limiter; its states stay and are not counted. Returns true if the
/// limiter had the source, and `None` if there is no such limiter.
pub(crate) fn forget(
    maps: &Maps,
    programs: &Programs,
    ruleset: &Ruleset,
    (id, rdomain, address): (u32, u32, IpAddr),
) -> Result<Option<bool>> {
    let mut of_sources = ruleset.limiters.iter().filter(|limiter| limiter.source);
    let Some(limiter) = of_sources.find(|limiter| limiter.id == id) else {
        return Ok(None);
    };
    let used = maps.limiter_uses.at(place_of(limiter))?;
    let address = limiter.masked(address).network();
    let key = abi::LimitedKey {
        serial: used.serial,
        id: limiter.id as u8,
        family: if address.is_ipv4() { abi::INET } else { abi::INET6 },
        pad: [0; 2],
        rdomain,
        address: abi::address_bytes(address),
    };
    Ok(Some(programs.forget_limited.call(&key)? != 0))
}

/// Returns all limiters of a rule set, state limiters first, each kind in the order of its numbers.
///
/// # Errors
/// Fails if a map cannot be read.
pub fn list(maps: &Maps, ruleset: &Ruleset) -> Result<Vec<LimiterView>> {
    let mut limiters: Vec<&Limiter> = ruleset.limiters.iter().collect();
    limiters.sort_by_key(|limiter| place_of(limiter));
    limiters.into_iter().map(|limiter| view(maps, limiter)).collect()
}

fn view(maps: &Maps, limiter: &Limiter) -> Result<LimiterView> {
    let used = maps.limiter_uses.at(place_of(limiter))?;
    Ok(LimiterView {
        limiter: limiter.clone(),
        states: used.states,
        counts: Admissions {
            admitted: used.admitted,
            hard_limited: used.hard_limited,
            rate_limited: used.rate_limited,
        },
        sources_made: used.sources_made,
        sources_limited: used.sources_limited,
        sources_lost: used.sources_lost,
        sources: if limiter.source { sources(maps, limiter, used.serial)? } else { Vec::new() },
    })
}

fn sources(maps: &Maps, limiter: &Limiter, serial: u32) -> Result<Vec<LimitedView>> {
    let keys = maps.limited_sources.keys();
    let keys = keys.filter(|key| key.serial == serial && u32::from(key.id) == limiter.id);
    let mut sources = Vec::new();
    for key in keys.collect::<Vec<_>>() {
        let Some(source) = maps.limited_sources.get(&key)?.filter(|source| source.gone == 0) else {
            continue;
        };
        let counts = Admissions {
            admitted: source.admitted,
            hard_limited: source.hard_limited,
            rate_limited: source.rate_limited,
        };
        sources.push(LimitedView {
            rdomain: key.rdomain,
            net: limiter.masked(abi::address_from(key.family, key.address)),
            states: source.states,
            counts,
        });
    }
    sources.sort_by_key(|source| (source.rdomain, source.net));
    Ok(sources)
}
