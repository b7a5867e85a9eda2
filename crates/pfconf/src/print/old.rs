//! Prints legacy rules as FreeBSD's pfctl does.

use skipstep_ruleset::{Not, OldKind, OldRule};

use super::pool::{Use, pool};
use super::{PrintOptions, head};

/// Returns a legacy rule as one line without line end.
pub fn rule(old: &OldRule, options: &PrintOptions) -> String {
    let rule = &old.rule;
    let mut text = String::new();
    if options.numbers {
        text += &format!("@{} ", rule.number);
    }
    text += if old.no { "no " } else { "" };
    text += match old.kind {
        OldKind::Scrub => "scrub",
        OldKind::Nat => "nat",
        OldKind::Binat => "binat",
        OldKind::Rdr => "rdr",
    };
    if let Some(call) = &rule.anchor {
        text += &format!("-anchor \"{}\"", call.name);
    }
    text += if old.pass { " pass" } else { "" };
    text += &head(rule, options);
    text += &scrub(old);
    text += &rule.tag.as_ref().map(|tag| format!(" tag {tag}")).unwrap_or_default();
    if let Some(Not { negated, value }) = rule.tagged.as_deref() {
        text += &format!("{} tagged {value}", if *negated { " !" } else { "" });
    }
    text += &rule.rtable.map(|rtable| format!(" rtable {rtable}")).unwrap_or_default();
    let source = rule.nat.as_ref().map(|nat| (nat, Use::Source));
    let destination = rule.rdr.as_ref().map(|rdr| (rdr, Use::Destination));
    if let Some((addresses, purpose)) = source.or(destination) {
        text += &format!(" -> {}", pool(addresses, rule.family, purpose, options));
    }
    text
}

/// Returns the options of `scrub`, in FreeBSD's order and without parentheses.
fn scrub(old: &OldRule) -> String {
    let (scrub, mut text) = (&old.rule.scrub, String::new());
    text += if scrub.no_df { " no-df" } else { "" };
    text += if scrub.random_id { " random-id" } else { "" };
    text += &scrub.min_ttl.map(|ttl| format!(" min-ttl {ttl}")).unwrap_or_default();
    text += &scrub.max_mss.map(|mss| format!(" max-mss {mss}")).unwrap_or_default();
    text += &old.rule.set_tos.map(|tos| format!(" set-tos 0x{tos:02x}")).unwrap_or_default();
    text += if scrub.reassemble_tcp { " reassemble tcp" } else { "" };
    text += match (old.kind, old.no, old.leave_fragments) {
        (OldKind::Scrub, false, false) => " fragment reassemble",
        (OldKind::Scrub, false, true) => " fragment no reassemble",
        _ => "",
    };
    text
}
