//! The manner in which rules of a superblock do what they do: codes of ICMP answers and timeouts of
//! states. It may differ among them, and is that of the rule that decides.

use crate::{BlockReturn, Family, Rule, Timeout};

/// Cuts a superblock where the manner of two rules that may match the same packet is not the same.
pub fn split(rules: Vec<Rule>) -> Vec<Vec<Rule>> {
    let mut blocks: Vec<Vec<Rule>> = Vec::new();
    let mut manner = Manner::default();
    for rule in rules {
        match blocks.last_mut() {
            Some(block) if manner.admit(&rule) => block.push(rule),
            _ => {
                manner = Manner::of(&rule);
                blocks.push(vec![rule]);
            }
        }
    }
    blocks
}

/// Whether [`split`] would leave a superblock whole.
pub fn is_one(rules: &[Rule]) -> bool {
    let mut manner = Manner::default();
    rules.iter().all(|rule| manner.admit(rule))
}

/// What several rules do with packets of each family and each protocol; `None` as long as no rule
/// matches such packets.
#[derive(Default)]
struct Manner {
    codes: [Option<(u8, u8)>; 2],
    timeouts: [Option<Vec<(Timeout, u32)>>; 4],
}

impl Manner {
    fn of(rule: &Rule) -> Self {
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

    /// Whether `rule` does the same; what it does alone is the manner of all then.
    fn admit(&mut self, rule: &Rule) -> bool {
        let other = Manner::of(rule);
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

/// What the timeouts of a protocol begin with.
fn class(protocol: u8) -> &'static str {
    match protocol {
        1 | 58 => "icmp",
        6 => "tcp",
        17 => "udp",
        _ => "other",
    }
}

/// Whether states of that class may have that timeout: all have the adaptive ones, for instance.
fn concerns(timeout: Timeout, class: &str) -> bool {
    let own = timeout.name().split('.').next().unwrap_or_default();
    own == class || !["icmp", "tcp", "udp", "other"].contains(&own)
}
