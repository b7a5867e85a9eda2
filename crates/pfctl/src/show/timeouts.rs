//! `-s timeouts`

use serde_json::{Value, json};
use skipstep_ruleset::{Timeout, Timeouts};

/// OpenBSD's order, which is not that of the numbers: the youngest stands with the others of TCP.
fn in_order() -> impl Iterator<Item = Timeout> {
    let (youngest, others) = Timeout::ALL.split_last().expect("there are timeouts");
    let (tcp, rest) = others.split_at(Timeout::UdpFirst as usize);
    tcp.iter().chain([youngest]).chain(rest).copied()
}

/// One line for each timeout.
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

/// An object with a number for each timeout.
pub fn json(timeouts: &Timeouts) -> Value {
    in_order().map(|timeout| (timeout.name().to_string(), json!(timeouts.get(timeout)))).collect()
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
