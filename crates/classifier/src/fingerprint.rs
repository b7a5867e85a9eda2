//! Compilation of fingerprints of operating systems.

use skipstep_abi as abi;
use skipstep_abi::fingerprint::{measure, syn_flags};
use skipstep_abi::limits::{FINGERPRINTS, SYSTEMS};
use skipstep_ruleset::Ruleset;
use skipstep_ruleset::fingerprint::{Fingerprint, Measure, Signature, Window};

use crate::Error;

/// Compiles the fingerprints of a rule set. Also returns the bits of the names that match a SYN
/// without a known fingerprint.
pub(crate) fn fingerprints(ruleset: &Ruleset) -> Result<(Vec<abi::Fingerprint>, u64), Error> {
    let (systems, fingerprints) = (&ruleset.systems, &ruleset.fingerprints);
    if systems.len() > SYSTEMS {
        return Err(Error::Systems { names: systems.len(), limit: SYSTEMS });
    }
    if fingerprints.len() > FINGERPRINTS as usize {
        return Err(Error::Fingerprints { count: fingerprints.len(), limit: FINGERPRINTS });
    }
    let names = |found: Option<&Fingerprint>| {
        let admitted = systems.values().map(|wanted| u64::from(wanted.admits(found)));
        admitted.zip(0..).fold(0, |all, (admitted, bit)| all | admitted << bit)
    };
    let compiled = fingerprints.iter().map(|fingerprint| abi::Fingerprint {
        systems: names(Some(fingerprint)),
        ..compile(&fingerprint.signature)
    });
    Ok((compiled.collect(), names(None)))
}

/// Returns the number of a name behind `os`, from 1.
pub(crate) fn number(ruleset: &Ruleset, name: &str) -> u8 {
    let place = ruleset.systems.keys().position(|system| system == name);
    // A name that was never resolved gets a number whose bit no fingerprint has.
    place.unwrap_or(SYSTEMS) as u8 + 1
}

fn compile(signature: &Signature) -> abi::Fingerprint {
    let (window_kind, window) = match signature.window {
        Window::Measure(of) => measured(of),
        Window::Segments(count) => (measure::SEGMENTS, count),
        Window::Packets(count) => (measure::PACKETS, count),
    };
    let (size_kind, size) = measured(signature.size);
    let (mss_kind, mss) = measured(signature.mss);
    let (scale_kind, scale) = measured(signature.scale);
    let df = if signature.df { syn_flags::DF } else { 0 };
    let zero = if signature.zero_timestamp { syn_flags::ZERO_TIMESTAMP } else { 0 };
    abi::Fingerprint {
        systems: 0,
        options: signature.options,
        window,
        size,
        mss,
        scale: scale.min(u8::MAX.into()) as u8,
        ttl: signature.ttl,
        option_count: signature.option_count,
        flags: df | zero,
        window_kind,
        size_kind,
        mss_kind,
        scale_kind,
        pad: [0; 2],
    }
}

fn measured(of: Measure) -> (u8, u16) {
    match of {
        Measure::Any => (measure::ANY, 0),
        Measure::Exactly(number) => (measure::EXACTLY, number),
        Measure::MultipleOf(number) => (measure::MULTIPLE, number),
    }
}
