//! Numbers and times that fit a column.

use pfctl::show::states::clock;

/// Prints a number in at most `width` characters, with a unit if it is too long: `1234`, `1.2K`,
/// `56M`. A unit is `base` times as much as the unit below.
pub fn amount(number: u64, width: usize, base: u64) -> String {
    let whole = number.to_string();
    if whole.len() <= width {
        return whole;
    }
    let mut unit_size = 1u64;
    for unit in ["K", "M", "G", "T", "P", "E"] {
        let Some(size) = unit_size.checked_mul(base) else { break };
        unit_size = size;
        let units = number / unit_size;
        let tenths = (u128::from(number % unit_size) * 10 / u128::from(unit_size)) as u64;
        let exact = format!("{units}.{tenths}{unit}");
        if units < 10 && exact.len() <= width {
            return exact;
        }
        let rough = format!("{units}{unit}");
        if units > 0 && units < base && rough.len() <= width {
            return rough;
        }
    }
    "*".repeat(width)
}

/// Prints seconds in at most `width` characters: `01:02:03`, `02:03`, `26h`, `12d`.
pub fn span(seconds: u32, width: usize) -> String {
    let text = clock(seconds);
    let hours = seconds / 3600;
    match (text.len() <= width, hours) {
        (true, _) => text,
        (false, 0) => format!("{:02}:{:02}", seconds / 60, seconds % 60),
        (false, 1..=99) => format!("{hours}h"),
        (false, _) => format!("{}d", hours / 24),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_fit_their_column() {
        for (number, width, text) in [
            (0, 5, "0"),
            (99_999, 5, "99999"),
            (123_456, 5, "123K"),
            (1_234_567, 5, "1.2M"),
            (1_234_567, 3, "1M"),
            (999_999, 4, "999K"),
            (12_345_678_901, 4, "12G"),
        ] {
            assert_eq!(amount(number, width, 1000), text);
        }
        assert_eq!(amount(1 << 20, 5, 1024), "1.0M");
        assert_eq!(amount(u64::MAX, 5, 1000), "18E");
        assert_eq!(amount(u64::MAX, 5, 1024), "15E");
        assert_eq!(amount(123_456, 3, 1000), "***", "no unit makes it short enough");
        for number in [1, 12_345, 999_950, u64::MAX] {
            assert!(amount(number, 4, 1000).len() <= 4, "{number}");
        }
    }

    #[test]
    fn times_fit_their_column() {
        for (seconds, width, text) in [
            (3_723, 8, "01:02:03"),
            (3_723, 5, "1h"),
            (59, 5, "00:59"),
            (3_599, 5, "59:59"),
            (100 * 3600, 5, "4d"),
            (100 * 3600, 9, "100:00:00"),
        ] {
            assert_eq!(span(seconds, width), text);
        }
    }
}
