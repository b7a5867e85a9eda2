//! Numbers for people, with a readable number of digits.

use crate::stats::Interval;

/// Writes a number with four significant digits, and thousands separated.
pub(crate) fn short(value: f64) -> String {
    let digits = match value.abs() {
        1000.0.. => return grouped(value.round()),
        100.0.. => 1,
        10.0.. => 2,
        0.0 => 0,
        _ => 3,
    };
    format!("{value:.digits$}")
}

/// Writes a whole number with a narrow space between thousands.
fn grouped(value: f64) -> String {
    let digits = format!("{:.0}", value.abs());
    let mut text = String::from(if value < 0.0 { "−" } else { "" });
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push('\u{202f}');
        }
        text.push(digit);
    }
    text
}

/// Writes a value with its interval.
pub(super) fn interval(interval: &Interval) -> String {
    format!("{} ({} – {})", short(interval.middle), short(interval.low), short(interval.high))
}

/// Writes a ratio with its interval.
pub(super) fn ratio(interval: &Interval) -> String {
    format!("{:.2} ({:.2} – {:.2})", interval.middle, interval.low, interval.high)
}

/// Writes a time, given in nanoseconds.
pub(super) fn time(ns: u64) -> String {
    let ns = ns as f64;
    match ns {
        1e9.. => format!("{} s", short(ns / 1e9)),
        1e6.. => format!("{} ms", short(ns / 1e6)),
        1e3.. => format!("{} µs", short(ns / 1e3)),
        _ => format!("{ns:.0} ns"),
    }
}

/// Writes a share (0 to 1) in percent. A small share other than zero never becomes "0 %".
pub(super) fn percent(share: f64) -> String {
    match share * 100.0 {
        0.0 => "0 %".to_string(),
        percent if percent.abs() < 0.001 => "< 0.001 %".to_string(),
        percent if percent.abs() < 0.1 => format!("{percent:.3} %"),
        percent => format!("{percent:.1} %"),
    }
}

/// Writes a number for an axis.
pub(super) fn tick(value: f64) -> String {
    match value.abs() {
        1e9.. => format!("{} G", trimmed(value / 1e9)),
        1e6.. => format!("{} M", trimmed(value / 1e6)),
        1e4.. => format!("{} k", trimmed(value / 1e3)),
        _ => trimmed(value),
    }
}

fn trimmed(value: f64) -> String {
    let text = format!("{value:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_that_matter() {
        let cases = [
            (0.0, "0"),
            (0.1234, "0.123"),
            (12.345, "12.35"),
            (123.45, "123.5"),
            (999.96, "1000.0"),
            (1234.6, "1\u{202f}235"),
            (-1_234_567.0, "−1\u{202f}234\u{202f}567"),
        ];
        for (value, expected) in cases {
            assert_eq!(short(value), expected);
        }
        assert_eq!(time(999), "999 ns");
        assert_eq!(time(12_345), "12.35 µs");
        assert_eq!(time(3_000_000_000), "3.000 s");
        assert_eq!(percent(0.0), "0 %");
        assert_eq!(percent(1e-7), "< 0.001 %");
        assert_eq!(percent(0.0002), "0.020 %");
        assert_eq!(percent(0.25), "25.0 %");
        assert_eq!(tick(1_500_000.0), "1.5 M");
        assert_eq!(tick(20_000.0), "20 k");
        assert_eq!(tick(0.5), "0.5");
    }
}
