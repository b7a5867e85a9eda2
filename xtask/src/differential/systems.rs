//! `os` in rules, and SYNs of known operating systems.

use fastrand::Rng;

use super::pool::{one_in, pick};

/// Draws the `os` part of a rule for some rules.
pub fn os(rng: &mut Rng) -> Option<String> {
    let names = ["Linux", "Linux 6.1", "Windows", "windows xp", "OpenBSD", "unknown", "Plan9"];
    one_in(rng, 8).then(|| match rng.u8(..4) {
        0 => format!("os {{ \"{}\", \"{}\" }}", pick(rng, &names), pick(rng, &names)),
        _ => format!("os \"{}\"", pick(rng, &names)),
    })
}

/// Draws window and options of a SYN, as a known operating system sends it or with a small change.
pub fn syn(rng: &mut Rng) -> (u16, Vec<u8>) {
    let linux = [2, 4, 5, 180, 4, 2, 8, 10, 0, 0, 0, 1, 0, 0, 0, 0, 1, 3, 3, 10];
    let linux6 = [2, 4, 5, 160, 4, 2, 8, 10, 0, 0, 0, 1, 0, 0, 0, 0, 1, 3, 3, 7];
    let clamped = [2, 4, 5, 120, 4, 2, 8, 10, 0, 0, 0, 1, 0, 0, 0, 0, 1, 3, 3, 7];
    let openbsd = [2, 4, 5, 180, 1, 1, 4, 2, 1, 3, 3, 6, 1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 0];
    let (window, mut options): (u16, Vec<u8>) = match rng.u8(..7) {
        0 => (64240, linux.to_vec()),
        1 => (64800, linux6.to_vec()),
        2 => (pick(rng, &[64240, 64400]), clamped.to_vec()),
        3 => (16384, openbsd.to_vec()),
        4 => (65535, vec![2, 4, 5, 180, 1, 1, 4, 2]),
        5 => (64240, vec![2, 4, 5, 180, 1, 3, 3, 8, 1, 1, 4, 2]),
        _ => (65535, vec![2, 4, 5, 180, 1, 3, 3, 6, 4, 2, 8, 10, 0, 0, 0, 1, 0, 0, 0, 0]),
    };
    if one_in(rng, 4) {
        let place = rng.usize(..options.len());
        options[place] = pick(rng, &[0, 1, 2, 3, 8, 255]);
    }
    (if one_in(rng, 8) { window.wrapping_add(1) } else { window }, options)
}
