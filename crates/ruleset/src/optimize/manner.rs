//! The manner of the rules in a superblock: ICMP codes of answers, and timeouts of states. Rules of
//! a superblock may differ in manner. The manner of the deciding rule counts.

use crate::{BlockReturn, Family, Rule, Timeout};

/// Splits a superblock where two rules that may match the same packet differ in manner.
pub fn split(rules: Vec<Rule>) -> Vec<Vec<Rule>> {
    let mut blocks: Vec<Vec<Rule>> = Vec::new();
    let mut manner = Manner::default();
    for rule in rules {
        match blocks.last_mut() {
            Some(block) if manner.add_if_equal(&rule) => block.push(rule),
            _ => {
                manner = Manner::from_rule(&rule);
                blocks.push(vec![rule]);
            }
        }
    }
    blocks
}

/// True if [`split`] would return the superblock in one part.
pub fn is_one(rules: &[Rule]) -> bool {
    let mut manner = Manner::default();
    rules.iter().all(|rule| manner.add_if_equal(rule))
}

/// The manner of several rules, by family and by protocol. `None` if no rule matches such packets.
#[derive(Default)]
struct Manner {
    codes: [Option<(u8, u8)>; 2],
    timeouts: [Option<Vec<(Timeout, u32)>>; 4],
}

impl Manner {
    fn from_rule(rule: &Rule) -> Self {
        let mut manner = Manner::default();
        if let BlockReturn::Icmp { inet, inet6 } = rule.block_return {
            manner.codes = [
                (rule.family != Some(Family::Inet6)).then_some(inet),
                (rule.family != Some(Family::Inet)).then_some(inet6),
            ];
        }
        if let Some(state) = &rule.state {
            let of_class = |class| {
                let timeouts = state.timeouts.iter().copied();
                timeouts.filter(|(timeout, _)| concerns(*timeout, class)).collect()
            };
            manner.timeouts = ["icmp", "tcp", "udp", "other"].map(|class| {
                rule.protocol
                    .is_none_or(|number| self::class(number) == class)
                    .then(|| of_class(class))
            });
        }
        manner
    }

    /// Adds a rule if its manner agrees, and returns true. The manner then covers both.
    fn add_if_equal(&mut self, rule: &Rule) -> bool {
        let other = Manner::from_rule(rule);
        let fits = self.codes.iter().zip(&other.codes).all(|(own, new)| fits(own, new))
            && self.timeouts.iter().zip(&other.timeouts).all(|(own, new)| fits(own, new));
        if fits {
            for (own, new) in self.codes.iter_mut().zip(other.codes) {
                *own = own.or(new);
            }
            for (own, new) in self.timeouts.iter_mut().zip(other.timeouts) {
                *own = own.take().or(new);
            }
        }
        fits
    }
}

fn fits<T: PartialEq>(own: &Option<T>, new: &Option<T>) -> bool {
    own == new || own.is_none() || new.is_none()
}

/// Returns the prefix of the names of a protocol's timeouts.
fn class(protocol: u8) -> &'static str {
    match protocol {
        1 | 58 => "icmp",
        6 => "tcp",
        17 => "udp",
        _ => "other",
    }
}

/// True if states of the class use the timeout. All classes use the adaptive timeouts, for example.
fn concerns(timeout: Timeout, class: &str) -> bool {
    let own = timeout.name().split('.').next().unwrap_or_default();
    own == class || !["icmp", "tcp", "udp", "other"].contains(&own)
}
