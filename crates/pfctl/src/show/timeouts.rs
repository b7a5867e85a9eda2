//! `-s timeouts`

use serde_json::{Value, json};
use skipstep_ruleset::{Timeout, Timeouts};

/// OpenBSD's order, which is not that of the numbers.
const ORDER: [Timeout; Timeout::COUNT] = [
    Timeout::TcpFirst,
    Timeout::TcpOpening,
    Timeout::TcpEstablished,
    Timeout::TcpClosing,
    Timeout::TcpFinwait,
    Timeout::TcpClosed,
    Timeout::TcpTsdiff,
    Timeout::UdpFirst,
    Timeout::UdpSingle,
    Timeout::UdpMultiple,
    Timeout::IcmpFirst,
    Timeout::IcmpError,
    Timeout::OtherFirst,
    Timeout::OtherSingle,
    Timeout::OtherMultiple,
    Timeout::Frag,
    Timeout::Interval,
    Timeout::AdaptiveStart,
    Timeout::AdaptiveEnd,
    Timeout::SrcTrack,
];

/// One line for each timeout.
pub fn text(timeouts: &Timeouts) -> String {
    ORDER
        .iter()
        .map(|&timeout| {
            let unit = match timeout {
                Timeout::AdaptiveStart | Timeout::AdaptiveEnd => " states",
                _ => "s",
            };
            format!("{:<20} {:>10}{unit}\n", timeout.name(), timeouts.get(timeout))
        })
        .collect()
}

/// An object with a number for each timeout.
pub fn json(timeouts: &Timeouts) -> Value {
    ORDER
        .iter()
        .map(|&timeout| (timeout.name().to_string(), json!(timeouts.get(timeout))))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adaptive_ones_count_states() {
        let text = text(&Timeouts::default());
        assert!(text.starts_with("tcp.first                   120s\n"));
        assert!(text.contains("adaptive.end             120000 states\n"));
    }

    #[test]
    fn json_has_every_timeout() {
        assert_eq!(json(&Timeouts::default())["udp.multiple"], 60);
        assert_eq!(json(&Timeouts::default()).as_object().unwrap().len(), Timeout::COUNT);
    }
}
