//! Ports for data connections, in an order that starts at random.

use std::ops::RangeInclusive;

use anyhow::{Result, anyhow};

/// Returns all of `ports`, from a random one on, so that nobody can guess the first.
///
/// # Errors
/// Fails if no randomness is available.
pub fn from_random_start(ports: &RangeInclusive<u16>) -> Result<impl Iterator<Item = u16> + use<>> {
    let random = getrandom::u32().map_err(|error| anyhow!("random numbers: {error}"))?;
    let (first, count) = (*ports.start(), ports.len() as u32);
    Ok((0..count).map(move |number| first + ((random % count + number) % count) as u16))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_port_has_its_turn() {
        for _ in 0..10 {
            let mut ports: Vec<u16> = from_random_start(&(65_530..=65_535)).unwrap().collect();
            ports.sort_unstable();
            assert_eq!(ports, [65_530, 65_531, 65_532, 65_533, 65_534, 65_535]);
        }
    }
}
