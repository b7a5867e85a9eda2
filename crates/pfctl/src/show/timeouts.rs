//! `-s timeouts`: prints the timeouts.

use serde_json::{Value, json};
use skipstep_ruleset::{Timeout, Timeouts};

/// Returns the timeouts in OpenBSD's order. The timeout with the highest number belongs to TCP, so
/// it follows the other TCP timeouts.
fn in_order() -> impl Iterator<Item = Timeout> {
    let (youngest, others) = Timeout::ALL.split_last().expect("there are timeouts");
    let (tcp, rest) = others.split_at(Timeout::UdpFirst as usize);
    tcp.iter().chain([youngest]).chain(rest).copied()
}

/// Prints a line for each timeout.
pub fn text(timeouts: &Timeouts) -> String {
    in_order()
        .map(|timeout| {
            let unit = match timeout {
                Timeout::AdaptiveStart | Timeout::AdaptiveEnd => " states",
                _ => "s",
            };
            format!("{:<20} {:>10}{unit}\n", timeout.name(), timeouts.get(timeout))
        })
        .collect()
}

/// Returns an object with a number for each timeout, in seconds or, for `adaptive`, in states.
pub fn json(timeouts: &Timeouts) -> Value {
    in_order().map(|timeout| (timeout.name().to_string(), json!(timeouts.get(timeout)))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adaptive_timeouts_have_the_unit_states() {
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
