//! Prints legacy rules as FreeBSD's pfctl does.

use skipstep_ruleset::{LegacyKind, LegacyRule};

use super::pool::{PoolUse, pool};
use super::{PrintOptions, head, quoted, tags};

/// Returns a legacy rule as one line without line end.
pub fn rule(legacy: &LegacyRule, options: &PrintOptions) -> String {
    let rule = &legacy.rule;
    let mut text = String::new();
    if options.numbers {
        text += &format!("@{} ", rule.number);
    }
    text += if legacy.no { "no " } else { "" };
    text += match legacy.kind {
        LegacyKind::Scrub => "scrub",
        LegacyKind::Nat => "nat",
        LegacyKind::Binat => "binat",
        LegacyKind::Rdr => "rdr",
    };
    if let Some(call) = &rule.anchor {
        text += &format!("-anchor {}", quoted(&call.name));
    }
    text += if legacy.pass { " pass" } else { "" };
    text += &head(rule, options);
    text += &scrub(legacy);
    text += &tags(rule);
    text += &rule.rtable.map(|rtable| format!(" rtable {rtable}")).unwrap_or_default();
    let source = rule.nat.as_ref().map(|nat| (nat, PoolUse::Source));
    let destination = rule.rdr.as_ref().map(|rdr| (rdr, PoolUse::Destination));
    if let Some((addresses, purpose)) = source.or(destination) {
        text += &format!(" -> {}", pool(addresses, rule.family, purpose, options));
    }
    text
}

/// Returns the options of `scrub`, in FreeBSD's order and without parentheses.
fn scrub(legacy: &LegacyRule) -> String {
    let (scrub, mut text) = (&legacy.rule.scrub, String::new());
    text += if scrub.no_df { " no-df" } else { "" };
    text += if scrub.random_id { " random-id" } else { "" };
    text += &scrub.min_ttl.map(|ttl| format!(" min-ttl {ttl}")).unwrap_or_default();
    text += &scrub.max_mss.map(|mss| format!(" max-mss {mss}")).unwrap_or_default();
    text += &legacy.rule.set_tos.map(|tos| format!(" set-tos 0x{tos:02x}")).unwrap_or_default();
    text += if scrub.reassemble_tcp { " reassemble tcp" } else { "" };
    text += match (legacy.kind, legacy.no, legacy.leave_fragments) {
        (LegacyKind::Scrub, false, false) => " fragment reassemble",
        (LegacyKind::Scrub, false, true) => " fragment no reassemble",
        _ => "",
    };
    text
}
